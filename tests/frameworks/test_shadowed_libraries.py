"""Files of the program's that are called as libraries of the agent's are."""

from __future__ import annotations

import os

import pytest
from harness.runner import Runner

from smd_agent import create_trial

pytest.importorskip("torch")

NAMES = ["wrapt.py", "crc32c.py", "google.py"]
TRAINING = """
import hashlib, sys
{before}
import torch

torch.manual_seed(0)
model = torch.nn.Linear(4, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(3):
    loss = model(torch.randn(8, 4)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(hashlib.sha256(model.weight.detach().numpy().tobytes()).hexdigest())
{after}
theirs = ("wrapt", "crc32c", "google")
print(sorted(name for name in sys.modules if name.partition(".")[0] in theirs))
"""
IMPORTED = "import wrapt, crc32c, google\nprint(wrapt.theirs, crc32c.theirs, google.theirs, google.__file__)"


def write(folder, names):
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"theirs = {name!r}\nprint('executed', __name__)\n")


def check(runner, script, **variables):
    plain = runner.plain(script, **variables)
    assert plain.returncode == 0, plain.stderr
    run = runner.by_variable(script, config={"HookParameters": {"save_interval": 1}}, **variables)
    assert (run.returncode, run.stdout) == (0, plain.stdout)
    assert "failed" not in run.stderr
    assert "nothing" not in run.stderr
    trial = create_trial(runner.folder / "run")
    assert trial.steps() == [0, 1, 2]
    assert all(trial.tensor(name).value(2) is not None for name in trial.tensor_names())


@pytest.mark.parametrize("names", [NAMES, [*NAMES[:2], "google/__init__.py"]], ids=["files", "a package"])
@pytest.mark.parametrize("when", ["before", "after", "never"])
def test_a_file_called_as_a_library_of_ours_is_the_programs_alone(names, when, tmp_path):
    runner = Runner(tmp_path)
    write(tmp_path, names)
    code = {"before": "", "after": "", when: IMPORTED}
    check(runner, runner.write(TRAINING.format(before=code["before"], after=code["after"])))


def test_such_files_on_the_path_of_the_variable_are_too(tmp_path):
    runner = Runner(tmp_path)
    write(tmp_path / "beside", NAMES)
    path = os.pathsep.join(filter(None, [Runner.environment().get("PYTHONPATH"), str(tmp_path / "beside")]))
    check(runner, runner.write(TRAINING.format(before="", after=IMPORTED)), PYTHONPATH=path)


def test_a_module_that_was_made_by_hand_hides_none(tmp_path):
    runner = Runner(tmp_path)
    made = "import types\nfor one in ('wrapt', 'crc32c', 'google'):\n    sys.modules[one] = types.ModuleType(one)"
    check(runner, runner.write(TRAINING.format(before=made, after="import wrapt; print(vars(wrapt).keys())")))


def test_a_folder_of_the_name_of_a_shared_one_hides_none(tmp_path):
    runner = Runner(tmp_path)
    write(tmp_path, ["google/theirs.py"])
    used = "import google.theirs; print(google.theirs.theirs)"
    check(runner, runner.write(TRAINING.replace("print(sorted", "str(sorted").format(before="", after=used)))


def test_commands_read_a_run_from_a_folder_with_such_files(tmp_path):
    runner = Runner(tmp_path)
    script = runner.write(TRAINING.format(before="", after=""))
    assert runner.by_variable(script, config={"HookParameters": {"save_interval": 1}}).returncode == 0
    write(tmp_path, NAMES)
    shown = runner.by_launcher("show", tmp_path / "run")
    assert shown.returncode == 0, shown.stderr
    assert "Loss_output_0" in shown.stdout
    assert "executed" not in shown.stdout
