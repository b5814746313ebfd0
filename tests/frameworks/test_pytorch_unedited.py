"""Scripts nobody edited: the model is found, the right values are saved, and the script cannot tell."""

from __future__ import annotations

import re
import signal
import time
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch")

import torch
from harness.compare import Both, assert_untouched, own_lines, run_both, said

import smd_agent.pytorch as smd
from smd_agent.analysis.trial import create_trial

EXAMPLE = Path(__file__).parents[2] / "examples" / "pytorch_digits.py"
EVERYTHING = {"HookParameters": {"save_interval": 7, "save_all": True}}

PRELUDE = """
import sys, torch, torch.nn.functional as F
from torch import nn
torch.manual_seed(0)
x, y = torch.randn(64, 5), torch.randint(0, 3, (64,))
def net(): return nn.Sequential(nn.Linear(5, 8), nn.ReLU(), nn.Linear(8, 3))
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1, self.fc2 = nn.Linear(5, 8), nn.Linear(8, 3)
    def forward(self, x): return self.fc2(F.relu(self.fc1(x)))
"""


def capture(runner, tmp_path, body, config=None, **variables):
    script = runner.write(PRELUDE + body)
    config = config or {"HookParameters": {"save_interval": 1, "save_all": True}}
    result = runner.by_variable(script, config=config, **variables)
    assert result.returncode == 0, result.stderr
    assert own_lines(result) == []
    return create_trial(str(tmp_path / "run")), result


def weights(path):
    return {name: tensor.numpy() for name, tensor in torch.load(path).items()}


@pytest.mark.cold
def test_the_example_trains_the_same_with_and_without_the_agent(runner, tmp_path):
    pytest.importorskip("sklearn")
    args = ("--epochs", "2", "--save", "weights.pt")
    results, trained = {}, {}
    hook = runner.hook_file("by_both", EVERYTHING)
    runs = {
        "plain": lambda: runner.plain(EXAMPLE, *args),
        "variable": lambda: runner.by_variable(EXAMPLE, *args, name="by_variable", config=EVERYTHING),
        "launcher": lambda: runner.by_launcher("--every", "7", "--out", "by_launcher", EXAMPLE, *args),
        "both": lambda: runner.by_launcher("--every", "5", EXAMPLE, *args, SMDEBUG_CONFIG_FILE_PATH=hook),
    }
    for door, run in runs.items():
        results[door] = run()
        trained[door] = weights(tmp_path / "weights.pt")
        (tmp_path / "weights.pt").unlink()
    plain = results.pop("plain")
    assert plain.stdout.count("epoch") == 2
    assert plain.stderr == ""
    for door, result in results.items():
        both = Both(plain, result, tmp_path / f"by_{door}")
        assert_untouched(both)
        assert trained[door].keys() == trained["plain"].keys()
        for name, array in trained["plain"].items():
            np.testing.assert_array_equal(trained[door][name], array, err_msg=f"{door} {name}")
        assert both.trial.steps(mode=smd.modes.TRAIN)[:3] == ([0, 5, 10] if door == "both" else [0, 7, 14])


@pytest.mark.cold
def test_the_example_is_captured_with_its_phases(runner, tmp_path):
    pytest.importorskip("sklearn")
    config = {
        "HookParameters": {"train.save_interval": 20, "eval.save_interval": 5},
        "CollectionConfigurations": [
            {"CollectionName": "weights", "CollectionParameters": {"reductions": "mean,l2"}},
            {"CollectionName": "gradients"},
        ],
    }
    result = runner.by_variable(EXAMPLE, "--epochs", "1", config=config)
    trial = create_trial(str(tmp_path / "run"))
    assert trial.steps(mode=smd.modes.TRAIN) == [0, 20, 40]
    assert trial.steps(mode=smd.modes.EVAL) == [0, 5, 10]
    assert trial.tensor_names(collection="losses") == ["CrossEntropyLoss_output_0"]
    assert trial.tensor("gradient/Net_conv1.weight").value(20, mode=smd.modes.TRAIN).shape == (16, 1, 3, 3)
    assert set(trial.tensor("Net_conv1.weight").reduction_values(0)) == {("mean", False), ("l2", False)}
    assert not trial.tensor_names(mode=smd.modes.EVAL, collection="gradients")
    assert said(result) == [
        f"smd_agent: saving losses, weights, gradients to {tmp_path / 'run'}",
        said(result)[1],
    ]
    pattern = r"smd_agent: saved 6 steps \(\d+ values, [\d.]+ kB, [\d.]+% of the process's time\); to see them: "
    assert re.match(pattern, said(result)[1])


LOOP = """
for i in range(3):
    optimizer.zero_grad()
    F.cross_entropy(model(x), y).backward()
    optimizer.step()
"""
SGD = "optimizer = torch.optim.SGD(model.parameters(), lr=0.1)\n"

FOUND = {
    "built before the optimizer": ("model = Net()\n" + SGD + LOOP, "Net"),
    "a Sequential": ("model = net()\n" + SGD + LOOP, "Sequential"),
    "called before there is an optimizer": ("model = Net(); model(x)\n" + SGD + LOOP, "Net"),
    "fed to the optimizer in groups": (
        "model = Net()\noptimizer = torch.optim.Adam([{'params': model.fc1.parameters()}])\n"
        "optimizer.add_param_group({'params': model.fc2.parameters()})\n" + LOOP,
        "Net",
    ),
    "with an EMA copy and a teacher": (
        "import copy\nmodel = Net(); teacher = copy.deepcopy(model).eval()\n" + SGD + "ema = copy.deepcopy(model)\n"
        "with torch.no_grad(): teacher(x)\n" + LOOP,
        "Net",
    ),
    "partly frozen": (
        "model = Net(); model.fc1.requires_grad_(False)\noptimizer = torch.optim.SGD(model.fc2.parameters(), lr=0.1)"
        + LOOP,
        "Net",
    ),
    "compiled": ("model = torch.compile(Net(), backend='eager', fullgraph=True)\n" + SGD + LOOP, "Net"),
    "compiled in place": ("model = Net()\n" + SGD + "model.compile(backend='eager', fullgraph=True)\n" + LOOP, "Net"),
    "in DataParallel": ("model = nn.DataParallel(Net())\n" + SGD + LOOP, "Net"),
}


@pytest.mark.parametrize("case", FOUND)
def test_the_model_is_found(runner, tmp_path, case):
    body, name = FOUND[case]
    trial, _ = capture(runner, tmp_path, body)
    assert trial.steps(mode=smd.modes.TRAIN) == [0, 1, 2]
    own = {n for n in trial.tensor_names() if n.startswith(f"{name}_") and "put" not in n}
    assert len(own) == 4
    gradients = set(trial.tensor_names(collection="gradients"))
    assert gradients == {f"gradient/{n}" for n in own if case != "partly frozen" or "fc2" in n}
    assert "Loss_output_0" in trial.tensor_names(collection="losses")
    w = trial.tensor(sorted(own)[-1])
    assert not np.array_equal(w.value(0, mode=smd.modes.TRAIN), w.value(2, mode=smd.modes.TRAIN))


def test_two_adversaries_are_both_found(runner, tmp_path):
    trial, _ = capture(
        runner,
        tmp_path,
        """
class D(nn.Linear): pass
class G(nn.Linear): pass
d, g = D(5, 1), G(3, 5)
od, og = torch.optim.SGD(d.parameters(), 0.1), torch.optim.SGD(g.parameters(), 0.1)
for i in range(3):
    z = torch.randn(8, 3)
    od.zero_grad(); (d(x).mean() - d(g(z).detach()).mean()).backward(); od.step()
    og.zero_grad(); d(g(z)).mean().backward(); og.step()
""",
        {"CollectionConfigurations": [{"CollectionName": "weights"}], "HookParameters": {"save_interval": 1}},
    )
    assert {"D_weight", "G_weight"} <= set(trial.tensor_names())


@pytest.mark.cold
def test_a_loop_without_an_optimizer_is_captured_from_its_second_step(runner, tmp_path):
    body = """
model = Net()
for i in range(3):
    loss = F.cross_entropy(model(x), y)
    model.zero_grad(); loss.backward()
    with torch.no_grad():
        for p in model.parameters(): p -= 0.1 * p.grad
    print(i)
"""
    trial, result = capture(runner, tmp_path, body)
    assert trial.steps(mode=smd.modes.TRAIN) == [1, 2]
    assert "gradient/Net_fc1.weight" in trial.tensor_names()
    assert sum("what is saved begins with step 1" in line for line in said(result)) == 1


def test_the_agents_hook_can_be_used_by_an_edited_script(runner, tmp_path):
    body = (
        """
import smd_agent.pytorch as smd
model = Net()
"""
        + SGD
        + LOOP
        + """
smd.get_hook().save_scalar("lr", 0.1)
print(smd.get_hook().out_dir)
"""
    )
    trial, _ = capture(runner, tmp_path, body)
    assert trial.tensor("scalar/lr").value(2).tolist() == [0.1]


def test_a_script_with_its_own_hook_keeps_it(runner, tmp_path):
    body = (
        """
import smd_agent.pytorch as smd
model = Net()
"""
        + SGD
        + """
hook = smd.Hook("own", save_config=smd.SaveConfig(save_interval=1))
hook.register_module(model)
"""
        + LOOP
    )
    script = runner.write(PRELUDE + body)
    result = runner.by_variable(script)
    assert result.returncode == 0, result.stderr
    assert create_trial(str(tmp_path / "own")).steps() == [0, 1, 2]
    assert not (tmp_path / "run").exists()


def test_both_ways_write_the_same_files(runner, tmp_path):
    body = "model = Net()\n" + SGD + LOOP
    trial, _ = capture(runner, tmp_path, body)
    edited = tmp_path / "edited.py"
    edited.write_text(
        PRELUDE
        + "import smd_agent.pytorch as smd\nmodel = Net()\n"
        + "hook = smd.Hook('edited', save_all=True, save_config=smd.SaveConfig(save_interval=1))\n"
        + "hook.register_module(model); hook.set_mode(smd.modes.TRAIN)\n"
        + SGD
        + LOOP
    )
    assert runner.plain(edited).returncode == 0
    other = create_trial(str(tmp_path / "edited"))
    assert other.tensor_names() == trial.tensor_names()
    for name in trial.tensor_names():
        assert trial.tensor(name).steps() == other.tensor(name).steps()
        # The lines of the two programs are others.
        for step in trial.tensor(name).steps() if not name.startswith("line/") else ():
            np.testing.assert_array_equal(trial.tensor(name).value(step), other.tensor(name).value(step))
    files = [
        sorted(re.sub(r"\d{15}", "N", str(file.relative_to(root))) for file in root.rglob("*.*"))
        for root in (tmp_path / "run", tmp_path / "edited")
    ]
    assert files[0] == files[1]


@pytest.mark.cold
def test_worker_processes_of_a_data_loader_stay_out_of_it(runner, tmp_path):
    body = """
from torch.utils.data import DataLoader, TensorDataset
if __name__ == "__main__":
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for context in ("fork", "spawn"):
        loader = DataLoader(TensorDataset(x, y), 32, num_workers=2, multiprocessing_context=context)
        for a, b in loader:
            optimizer.zero_grad(); F.cross_entropy(model(a), b).backward(); optimizer.step()
"""
    trial, result = capture(runner, tmp_path, body)
    assert trial.steps(mode=smd.modes.TRAIN) == [0, 1, 2, 3]
    assert len(said(result)) == 2


@pytest.mark.cold
@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_training_in_a_child_process_is_saved_to_its_end(runner, tmp_path, method):
    body = f"""
import multiprocessing
def work():
    torch.set_num_threads(1)
    model = Net()
    {SGD}    for i in range(3):
        optimizer.zero_grad(); F.cross_entropy(model(x), y).backward(); optimizer.step()
if __name__ == "__main__":
    child = multiprocessing.get_context("{method}").Process(target=work)
    child.start(); child.join()
    sys.exit(child.exitcode)
"""
    trial, _ = capture(runner, tmp_path, body)
    assert trial.steps() == [0, 1, 2]
    assert (tmp_path / "run" / "training_job_end.ts").exists()


@pytest.mark.cold
def test_the_users_exception_and_exit_code_pass(runner, tmp_path):
    script = runner.write(
        PRELUDE
        + "class Bad(nn.Module):\n"
        + "    def __init__(self):\n        super().__init__()\n        self.fc = nn.Linear(5, 3)\n"
        + "    def forward(self, x):\n        if x.sum() > 1e9: raise KeyError('mine')\n        return self.fc(x)\n"
        + "model = Bad()\n"
        + SGD
        + LOOP
        + "try:\n    model(x + 1e9)\nexcept KeyError as error:\n    print('caught', error)\nsys.exit(7)\n"
    )
    both = run_both(runner, script, config=EVERYTHING)
    assert_untouched(both, code=7)
    assert both.plain.stdout == "caught 'mine'\n"


def test_a_killed_run_reads_up_to_its_last_complete_step(runner, tmp_path):
    script = runner.write(PRELUDE + "model = Net()\n" + SGD + LOOP.replace("3", "10**6"))
    config = {"HookParameters": {"save_interval": 1, "save_all": True}}
    indexes = tmp_path / "run" / "index" / "000000000"
    with runner.start(script, config=config) as process:
        deadline = time.monotonic() + 120
        while not (indexes.is_dir() and len(list(indexes.glob("*.json"))) > 50):
            assert process.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.01)
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert not (tmp_path / "run" / "training_job_end.ts").exists()
    complete = sorted(int(path.name[:12]) for path in (tmp_path / "run" / "index").glob("*/*.json"))
    trial = create_trial(str(tmp_path / "run"))
    assert trial.steps() == complete
    assert len(complete) > 50
    for step in complete:
        for name in trial.tensor_names(step=step):
            assert trial.tensor(name).value(step) is not None
    listing = runner.by_launcher("ls", tmp_path / "run")
    assert listing.returncode == 0
    assert re.search(rf"TRAIN +{len(complete)}\b", listing.stdout), listing.stdout


def test_a_killed_runs_folder_can_be_used_again(runner, tmp_path):
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "claim.smd").touch()
    trial, _ = capture(runner, tmp_path, "model = Net()\n" + SGD + LOOP)
    assert trial.steps() == [0, 1, 2]


def test_a_second_run_into_a_finished_folder_goes_beside_it(runner, tmp_path):
    body = "model = Net()\n" + SGD + LOOP
    capture(runner, tmp_path, body)
    files = {path: path.read_bytes() for path in (tmp_path / "run").rglob("*") if path.is_file()}
    result = runner.by_variable(tmp_path / "script.py")
    assert result.returncode == 0
    assert f"to {tmp_path / 'run-2'} ({tmp_path / 'run'} holds a finished run)" in said(result)[0]
    assert create_trial(str(tmp_path / "run-2")).steps() == [0]
    assert {path: path.read_bytes() for path in (tmp_path / "run").rglob("*") if path.is_file()} == files


@pytest.mark.cold
def test_a_wrong_configuration_is_one_line_and_the_script_runs(runner, tmp_path):
    script = runner.write(PRELUDE + "model = Net()\n" + SGD + LOOP + "print('trained')\n")
    config = {"HookParameters": {"save_interval": "often"}}
    result = runner.by_variable(script, config=config)
    assert (result.returncode, result.stdout) == (0, "trained\n")
    (line,) = said(result)
    assert "run.json" in line
    assert "save_interval" in line
    assert '"often"' in line
    strict = runner.by_variable(script, config=config, SMD_AGENT_STRICT="1")
    assert (strict.returncode, strict.stdout) == (2, "")
    launched = runner.by_launcher("--config", tmp_path / "run.json", script)
    assert (launched.returncode, launched.stdout) == (2, "")


@pytest.mark.cold
def test_the_switch_turns_everything_off(runner, tmp_path):
    script = runner.write(PRELUDE + "model = Net()\n" + SGD + LOOP + "print('smd_agent.pytorch' in sys.modules)\n")
    for word in ("0", "OFF"):
        result = runner.by_variable(script, USE_SMDEBUG=word)
        assert (result.returncode, result.stdout, result.stderr) == (0, "False\n", "")
    assert not (tmp_path / "run").exists()


def test_a_script_that_trains_nothing_is_told_under_the_launcher(runner, tmp_path):
    script = runner.write("import torch\nprint(torch.nn.Linear(2, 2).eval()(torch.ones(2)).shape)\n")
    result = runner.by_launcher("--out", "run", script)
    assert result.stdout == "torch.Size([2])\n"
    assert said(result) == [
        "smd_agent: nothing was captured: no training was seen (a torch.nn.Module called in train mode)"
    ]


def test_a_disk_that_cannot_be_written_does_not_stop_the_training(runner, tmp_path):
    (tmp_path / "run").write_text("a file where the folder should be")
    script = runner.write(PRELUDE + "model = Net()\n" + SGD + LOOP + "print('trained')\n")
    result = runner.by_variable(script)
    assert (result.returncode, result.stdout) == (0, "trained\n")
    assert len(said(result)) == 1


def test_calls_that_cannot_be_seen_are_not_put_down_to_a_compiler_where_there_is_none(runner):
    body = (
        "class Scale(nn.Module):\n"
        "    def __init__(self):\n        super().__init__()\n        self.weight = nn.Parameter(torch.ones(5))\n"
        "    def forward(self, x): return (x * self.weight).sum()\n"
        "model = Scale()\n" + SGD + "for _ in range(3):\n    model.forward(x).backward()\n"
    )
    lines = [line for line in said(runner.by_variable(runner.write(PRELUDE + body))) if "cannot be seen" in line]
    expected = "smd_agent: calls of Scale cannot be seen, as where forward or an own __call__ is what is called: "
    assert [line[: len(expected)] for line in lines] == [expected]
