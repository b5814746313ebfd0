"""The verdict on a run, in one line when the program ends: by both doors, of several trainings, and who says none."""

from __future__ import annotations

import gc
import re
import signal
import threading
import time

import numpy as np
import pytest
from harness.compare import Both, assert_untouched, said
from harness.rule_runs import written

from smd_agent import create_trial, stalled_disk
from smd_agent.core.modes import ModeKeys
from smd_agent.patches import verdict_at_exit
from smd_agent.pytorch import Hook, SaveConfig
from smd_agent.rules import registry, verdict_in_time
from smd_agent.rules.built_in import BuiltInRule, Need

WARM = ("torch",)
# Where much else runs, a second may be too short.
ON = {"SMD_AGENT_VERDICT_SECONDS": "60"}
EVERY_STEP = {
    "HookParameters": {"save_interval": 1},
    "CollectionConfigurations": [{"CollectionName": name} for name in ("weights", "gradients", "parameters")],
}

TRAINING = """
import hashlib, sys, torch
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.head = nn.Linear(4, 8), nn.Linear(8, 2)

    def forward(self, x):
        return self.head(torch.tanh(self.body(x)))

torch.manual_seed(0)
net = Net()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
PREPARE
x = torch.randn(16, 4)
y = (x[:, 0] > 0).long()
for step in range(12):
    batch = x * float("nan") if step in NAN else x + 0.01 * step
    optimizer.zero_grad()
    nn.functional.cross_entropy(net(batch), y).backward()
    optimizer.step()
print(hashlib.sha256(b"".join(p.detach().numpy().tobytes() for p in net.parameters())).hexdigest(), torch.rand(1))
"""
NEW_HEAD = "net.head = nn.Linear(8, 2)"


def training(prepare="", nan="()", end=""):
    return TRAINING.replace("PREPARE", prepare).replace("NAN", nan) + end


KINDS = {
    "healthy": (training(), r"no findings in \d+ rules over 12 steps"),
    "nan": (
        training(nan="(7,)"),
        r"2 findings: loss not finite at step 7 \(finite at 6\); "
        r"not finite from step \d on: .* and \d+ more; more: CHECK",
    ),
    "new head": (
        training(NEW_HEAD),
        r"1 finding: in no optimizer: Net_head.bias and 1 more; more: CHECK",
    ),
}


def verdicts(result):
    """What the agent has said after that it has saved something, without its name."""
    lines = [line.removeprefix("smd_agent: ") for line in said(result)]
    after = [number for number, line in enumerate(lines) if line.startswith("saved ")]
    return lines[after[0] + 1 :] if after else lines


@pytest.mark.parametrize("kind", KINDS)
def test_it_is_said_by_both_doors_and_nothing_else_changes(runner, kind):
    text, expected = KINDS[kind]
    script = runner.write(text)
    plain = runner.plain(script)
    doors = {
        "run": runner.by_variable(script, config=EVERY_STEP, **ON),
        "launched": runner.by_launcher(
            *("--out", runner.folder / "launched", "--every", "1"),
            *("--save", "losses,weights,gradients,parameters", script),
            **ON,
        ),
    }
    for folder, agent in doors.items():
        assert_untouched(Both(plain, agent))
        (line,) = verdicts(agent)
        check = re.escape(f"python -m smd_agent check {runner.folder / folder}")
        assert re.fullmatch(expected.replace("CHECK", check), line), line
        assert len(line) < 200 + len(str(runner.folder)) - len("/some/run")


@pytest.mark.parametrize("end", ["sys.exit(3)", "raise ValueError('of the program')"])
def test_the_exit_code_stays(runner, end):
    script = runner.write(training(end=end))
    both = Both(runner.plain(script), runner.by_variable(script, config=EVERY_STEP, **ON))
    assert_untouched(both, code=None)
    assert both.plain.returncode
    assert re.match("no findings in ", verdicts(both.agent)[0])


def test_it_can_be_switched_off(runner):
    script = runner.write(training(nan="(7,)"))
    assert verdicts(runner.by_variable(script, config=EVERY_STEP, SMD_AGENT_VERDICT_SECONDS="0")) == []
    assert runner.by_variable(script, name="other", config=EVERY_STEP, USE_SMDEBUG="0", **ON).stderr == ""


CHILDREN = """
import multiprocessing, os

def train_more():
    for step in range(4):
        optimizer.zero_grad()
        nn.functional.cross_entropy(net(x), y).backward()
        optimizer.step()

def double(number):
    return 2 * number

with multiprocessing.get_context("fork").Pool(2) as pool:
    print(pool.map(double, range(4)))
loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(x, y), batch_size=8, num_workers=2)
print(len(list(loader)))
child = multiprocessing.get_context("fork").Process(target=train_more)
child.start()
child.join()
if os.fork() == 0:
    os._exit(0)
os.wait()
"""


def test_child_processes_say_none(runner):
    script = runner.write(training(end=CHILDREN))
    # With more threads PyTorch itself may hang in a child.
    agent = runner.by_variable(script, config=EVERY_STEP, OMP_NUM_THREADS="1", **ON)
    assert agent.returncode == 0, agent.stderr
    # The child that trained has a run of its own, and says that it has saved it.
    assert len([line for line in said(agent) if "saved " in line]) == 2
    assert len([line for line in said(agent) if " findings " in line]) == 1


def test_each_worker_judges_its_own_steps(runner):
    config = {**EVERY_STEP, "HookParameters": {"save_interval": 1, "include_workers": "all"}}
    # The last one marks the run as ended.
    ranks = {1: training(nan="(7,)"), 0: training(NEW_HEAD)}
    found = {}
    for rank, text in ranks.items():
        variables = {"RANK": str(rank), "WORLD_SIZE": "2", **ON}
        agent = runner.by_variable(runner.write(text, f"rank{rank}.py"), config=config, **variables)
        (found[rank],) = verdicts(agent)
    assert found[0].startswith("1 finding: in no optimizer: Net_head.bias and 1 more")
    assert found[1].startswith("2 findings: loss not finite at step 7")


LONG = """
import torch
from torch import nn

def main():
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 2))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    x = torch.randn(16, 4)
    y = (x[:, 0] > 0).long()
    for step in range(STEPS):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(net(x), y)
        (loss * float("nan") if step >= BROKEN else loss).backward()
        optimizer.step()
    END

main()
"""


def long(steps, broken, end="pass"):
    return LONG.replace("STEPS", str(steps)).replace("BROKEN", str(broken)).replace("END", end)


EVALUATION = "net.eval(); [nn.functional.cross_entropy(net(x), y) for _ in range(9)]"


@pytest.mark.parametrize(
    "text, found",
    [
        # The default saves some of the first 100 steps, then every hundredth.
        (long(199, 137), r"2 findings: loss not finite at step 137\b.*; not finite from .*"),
        (long(199, 137, EVALUATION), r"\d findings?: .*not finite .*"),
        (
            long(199, 199),
            r"no findings in \d+ rules over \d+ saved steps and the loss of 199 training steps; 1 note: .*; more: .*",
        ),
        # The weights that an earlier training has ended with do not count. Its loss, after which others were finite, is
        # a warning.
        (long(60, 55) + long(60, 99), r"1 finding: loss not finite at step 55 .*; more: .*"),
    ],
    ids=["broken", "broken, evaluated", "healthy", "broken in an earlier training"],
)
def test_what_breaks_after_the_last_saved_step_is_said(runner, text, found):
    script = runner.write(text)
    (line,) = verdicts(runner.by_launcher("--out", runner.folder / "run", script, **ON))
    assert re.fullmatch(found, line), line
    checked = runner.by_launcher("check", runner.folder / "run")
    assert (checked.returncode == 1) is ("findings" in found and "no findings" not in found), checked.stdout


# In this process, with rules that are slow, broken, or wait for a disk.


class Slow(BuiltInRule):
    """Takes half a second of a processor for each step."""

    meaning = "made up"
    needs = (Need(("losses",)),)
    evidence = {"loss": "the loss"}  # noqa: RUF012

    def take(self, step):
        end = time.thread_time() + 0.5
        while time.thread_time() < end:
            pass


class Broken(Slow):
    """Fails."""

    def take(self, step):
        raise ValueError("of the rule's own")


@pytest.fixture
def judged(tmp_path, monkeypatch, capsys):
    """Judge a run of twenty steps, whose last loss is NaN if it shall be, by some rules more; what is said."""

    def judge(*rules, nan=False, seconds=60):
        known = {**registry.built_in_rules(), **{rule.__name__: rule for rule in rules}}
        monkeypatch.setattr(registry, "built_in_rules", lambda: known)
        monkeypatch.setenv("SMD_AGENT_VERDICT_SECONDS", str(seconds))
        # Tests of stores and disks that never answer leave threads that wait; what they wait for is nobody's here.
        monkeypatch.setattr(stalled_disk, "_standing", [])
        hook = Hook(str(tmp_path / "run"), save_config=SaveConfig(save_interval=1))
        for step in range(20):
            hook.next_step(hook.recorder.clocks[ModeKeys.TRAIN])
            hook.recorder.save_tensor_now(
                "CrossEntropyLoss_output_0", float("nan") if nan and step == 19 else 1.0 / (step + 1)
            )
        hook.close()
        capsys.readouterr()
        begun = time.monotonic()
        verdict_at_exit.judge_runs([hook])
        judge.seconds = time.monotonic() - begun
        return capsys.readouterr().err.removeprefix("smd_agent: ").strip()

    return judge


def test_what_takes_too_long_is_left_to_check(judged, tmp_path):
    line = judged(Slow, nan=True, seconds=4)
    rest = re.escape(f"; the rest: python -m smd_agent check {tmp_path / 'run'}")
    seen = r"in the first (?:\d+ )?and the last of 20 steps"
    assert re.fullmatch(rf"1 finding {seen}: loss not finite at step 19(?: \(finite at \d+\))?{rest}", line), line


@pytest.mark.parametrize("seconds", [0.01, 0.1])
def test_that_the_last_loss_is_not_finite_is_said_however_little_time_there_is(judged, seconds):
    assert re.match(r"\d findings?\b.*: loss not finite at step 19\b", judged(nan=True, seconds=seconds))


def test_a_rule_that_fails_is_left_out_and_named(judged):
    line = judged(Broken, nan=True)
    assert line.startswith(
        "1 finding: loss not finite at step 19 (finite at 18); Broken failed (ValueError); the rest: "
    )


def test_a_disk_that_stands_still_is_not_waited_for(judged, monkeypatch, tmp_path):
    monkeypatch.setattr(verdict_at_exit, "_verdict", lambda *args: time.sleep(30))
    assert judged(seconds=1) == f"not judged within 3 s: python -m smd_agent check {tmp_path / 'run'}"
    assert judged.seconds < 10


def test_what_is_known_of_every_step_is_said_where_the_rest_takes_too_long(judged, monkeypatch, tmp_path):
    def early(folder, worker, seconds, check, tell):
        tell("1 finding: loss not finite at step 137; the rest: " + check)
        time.sleep(30)

    monkeypatch.setattr(verdict_at_exit, "_verdict", early)
    check = f"python -m smd_agent check {tmp_path / 'run'}"
    assert judged(seconds=1) == f"1 finding: loss not finite at step 137; the rest: {check}"


def test_a_failure_of_the_verdict_is_one_line(judged, monkeypatch):
    monkeypatch.setattr(verdict_in_time, "alike", None)
    line = judged(nan=True)
    assert line.startswith("judging the run failed (TypeError: ")
    assert "\n" not in line


@pytest.mark.parametrize("enabled", [True, False])
def test_the_garbage_collector_has_no_turn_meanwhile(judged, enabled):
    turns, before = [], gc.get_threshold()

    class Wasteful(Slow):
        def take(self, step):
            turns.append(gc.isenabled())
            assert [[] for _ in range(100)]

    (gc.enable if enabled else gc.disable)()
    gc.set_threshold(10)
    try:
        assert judged(Wasteful).startswith("no findings in ")
        assert gc.isenabled() is enabled
    finally:
        gc.set_threshold(*before)
        gc.enable()
    assert turns == [False] * 20


def test_large_values_are_not_read(monkeypatch, tmp_path):
    trial = written(tmp_path / "run", [{"loss": 1.0 / (step + 1), "a_weight": np.ones(5000)} for step in range(12)])
    monkeypatch.setattr(verdict_in_time, "LARGEST_VALUE", 10_000)
    steps = trial.step_table.steps(ModeKeys.GLOBAL, True)
    look = verdict_in_time.look_shortly(trial, steps, trial.step_table.files, 60)
    assert verdict_in_time.in_one_line(look).endswith(" over 12 steps; 1 large tensor not read")
    assert not look.is_whole


def test_a_reader_that_warns_does_not_reach_the_handlers_of_the_program(judged, tmp_path, caplog, monkeypatch):
    real = verdict_in_time.look_shortly

    def damaged(part, *args, **more):
        next((tmp_path / "run" / "index").rglob("*5_worker_0.json")).write_text("no index")
        return real(part, *args, **more)

    monkeypatch.setattr(verdict_in_time, "look_shortly", damaged)
    assert re.match(r"no findings in \d+ rules over 19 steps; 1 step cannot be read; the rest: ", judged())
    assert caplog.records == []
    create_trial(str(tmp_path / "run"), timeout=0)
    assert caplog.records != []


def test_of_several_runs_each_line_names_its_own(judged, tmp_path, capsys):
    hooks = []
    for name in ("one", "other"):
        hooks.append(Hook(str(tmp_path / name), save_config=SaveConfig(save_interval=1)))
        hooks[-1].next_step(hooks[-1].recorder.clocks[ModeKeys.TRAIN])
        hooks[-1].recorder.save_tensor_now("CrossEntropyLoss_output_0", 1.0)
        hooks[-1].close()
    capsys.readouterr()
    verdict_at_exit.judge_runs(hooks)
    ends = [line.rpartition(" ")[2] for line in capsys.readouterr().err.splitlines()]
    assert ends == [str(tmp_path / "one"), str(tmp_path / "other")]


def test_a_ctrl_c_while_a_run_is_judged_is_one_line(judged, tmp_path, monkeypatch, capsys):
    hook = Hook(str(tmp_path / "one"), save_config=SaveConfig(save_interval=1))
    hook.next_step(hook.recorder.clocks[ModeKeys.TRAIN])
    hook.recorder.save_tensor_now("CrossEntropyLoss_output_0", 1.0)
    hook.close()

    class Interrupted(threading.Thread):
        def join(self, timeout=None):
            super().join(timeout)
            # As Python does it: by the signal's handler, in the thread that waits.
            signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(threading, "Thread", Interrupted)
    monkeypatch.setenv("SMD_AGENT_VERDICT_SECONDS", "60")
    capsys.readouterr()
    # A job in the background is started without a handler.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        verdict_at_exit.judge_runs([hook])
    finally:
        signal.signal(signal.SIGINT, before)
    line = f"not judged, because that was interrupted: python -m smd_agent check {tmp_path / 'one'}"
    assert capsys.readouterr().err == f"smd_agent: {line}\n"
