"""A running PyTorch training, which saves more, a step whole, or stops when ``tap`` asks for it."""

from __future__ import annotations

import json

import numpy as np
import pytest

pytest.importorskip("torch")

from harness.runner import TORCHRUN, Runner
from harness.tapped import TappedRun

from smd_agent.analysis.trial import create_trial
from smd_agent.core.modes import ModeKeys

TRAIN = """
import sys, time, torch
from torch import nn
torch.manual_seed(0)
torch.set_num_threads(1)
net = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 2))
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
try:
    for step in range(20000):
        before = [one.detach().clone() for one in net.parameters()]
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(net(torch.randn(4, 8)), torch.randint(0, 2, (4,)))
        loss.backward()
        try:
            optimizer.step()
        except Exception:
            print("swallowed")
        time.sleep(0.01)
finally:
    print("finally", step, all(map(torch.equal, before, net.parameters())))
"""


@pytest.fixture(scope="module")
def asked(tmp_path_factory):
    """Return a run that was asked for this and that, the last time to stop, and what ``tap`` has said."""
    with TappedRun(tmp_path_factory.mktemp("tap"), TRAIN) as run:
        said = [
            run.tap("--collection", "layers", "--collection", "gradients", "--steps", "4"),
            run.tap("--dump"),
            run.tap("--collection", "nowhere"),
            run.tap("set", "train.save_interval", "7"),
            run.tap("--replay-next"),
            run.tap("--stop", "it is enough"),
        ]
        run.ended()
    return run, said


def test_collections_that_are_not_configured_are_saved_for_some_steps(asked):
    run, said = asked
    answer = run.answers()[0]
    assert said[0] == (0, f"worker_0: obeyed at step {answer['step']}, saved {answer['saved']} tensors in 4 steps\n")
    trial = create_trial(str(run.run))
    steps = [answer["step"] + more for more in range(4)]
    names = trial.tensor_names(collection="layers") + trial.tensor_names(collection="gradients")
    # Four layers, the model among them, and four gradients.
    assert answer["saved"] == 8
    assert set(names) >= {"0_output_0", "gradient/Sequential_0.weight"}
    whole = run.answers()[1]["step"]
    assert trial.tensor("0_output_0").steps(ModeKeys.TRAIN) == [*steps, whole]
    assert trial.tensor("0_output_0").value(steps[-1], ModeKeys.TRAIN).shape == (4, 16)


def test_one_step_is_saved_whole(asked):
    run, said = asked
    answer = run.answers()[1]
    assert said[1][0] == 0
    trial = create_trial(str(run.run))
    step = answer["step"]
    assert trial.tensor("Sequential_0.weight").steps(ModeKeys.TRAIN) == [step]
    assert answer["saved"] > 15
    assert trial.tensor("Sequential_0.weight").value(step, ModeKeys.TRAIN).shape == (16, 8)


def test_what_cannot_be_done_is_refused_in_one_sentence(asked):
    code, said = asked[1][2]
    assert code == 1
    assert said.startswith("worker_0: refused: there is no collection nowhere; there are all, biases, ")


def test_an_interval_is_changed(asked):
    run, said = asked
    assert said[3][0] == 0
    assert said[3][1].endswith("train.save_interval is 7 (it was 1000)\n")
    after = run.answers()[3]["step"]
    steps = [step for step in create_trial(str(run.run)).steps(ModeKeys.TRAIN) if step > after + 7]
    assert all(step % 7 == 0 for step in steps)


def test_a_step_is_kept_by_which_it_is_made_again(asked):
    run, said = asked
    step = run.answers()[4]["step"]
    command = f"replay {run.run} --step {step}"
    assert said[4] == (0, f"worker_0: obeyed at step {step}: python -m smd_agent {command} makes it again\n")
    again = Runner(run.folder).by_launcher("replay", run.run, "--step", str(step))
    assert again.returncode == 0, again.stderr
    assert again.stdout.startswith(f"Step       {step}, kept as it was asked for\n")
    assert "\nSame       as in the run, bit for bit\n" in again.stdout


def test_it_stops_before_the_update_of_a_step(asked):
    run, said = asked
    answer = run.answers()[-1]
    step = answer["step"]
    assert said[5] == (0, f"worker_0: obeyed at step {step}, before its update\n")
    assert run.process.returncode == 86
    # The weights are those of the step before; no except has seen it, and finally has run.
    assert run.printed == f"finally {step} True\n"
    assert f"smd_agent: stopped at step {step}: it is enough (asked by tap)\n" in run.said
    assert "smd_agent: saved " in run.said
    assert (run.run / "training_job_end.ts").exists()


def test_nobody_is_asked_when_the_run_has_ended(asked):
    code, said = asked[0].tap("--dump")
    assert code == 2
    assert "nobody writes to" in said
    assert "the run has ended" in said


BAD = {
    "no json": ("{", "the request is no JSON object"),
    "unknown key": ({"action": "dump", "run": "x", "code": "import os"}, "the key code is unknown; there are name, "),
    "no run": ({"action": "dump"}, "the request does not say which run it is for"),
    "no action": ({"run": "x"}, "action is missing"),
    "another action": ({"action": "eval", "run": "x"}, "action is 'eval', allowed is save, dump, keep, stop, set"),
    "a wrong kind": ({"action": "save", "run": "x", "steps": "5"}, "steps is '5', allowed is a whole number"),
    "no steps": (
        {"action": "save", "run": "x", "steps": 0, "collections": ["layers"]},
        "steps is 0, allowed is a whole",
    ),
    "an earlier run": (
        {"action": "stop", "run": "0123", "why": "old"},
        "it was meant for an earlier run in this folder",
    ),
}


@pytest.fixture(scope="module")
def misled(tmp_path_factory):
    """Return a run in whose folder lies what an earlier one was asked for, and whatever else somebody writes."""
    folder = tmp_path_factory.mktemp("misled")
    (folder / "run/control").mkdir(parents=True)
    old = {"name": "0-old", "action": "stop", "run": "0123", "why": "old", "workers": 1, "at": 0}
    (folder / "run/control/0-old.plan.json").write_text(json.dumps(old))
    for number, (content, _) in enumerate(BAD.values()):
        text = content if isinstance(content, str) else json.dumps(content)
        (folder / f"run/control/{number}-bad.request.json").write_text(text)
    (folder / "run/control/pipe.request.json").symlink_to("/dev/zero")
    with TappedRun(folder, TRAIN) as run:
        run.wait_for(lambda: len(run.answers()) > len(BAD), "answers")
        assert run.tap("--dump")[0] == 0
    return run


@pytest.mark.parametrize("number", range(len(BAD)), ids=list(BAD))
def test_bad_input_is_refused_in_one_sentence(misled, number):
    (answer,) = [answer for answer in misled.answers() if answer["request"] == f"{number}-bad"]
    assert answer["result"] == "refused"
    assert answer["text"].startswith([*BAD.values()][number][1])
    assert "\n" not in answer["text"]


def test_it_is_not_obeyed_where_a_key_says_so(tmp_path):
    with TappedRun(tmp_path, TRAIN, config={"HookParameters": {"save_interval": 1000, "tap": False}}) as run:
        code, said = run.tap("--dump", "--wait", "4")
        assert code == 1
        assert "nobody has answered within 4 s: is the job running, on what host" in said


SAME = """
import hashlib, sys, time, torch
from torch import nn
torch.manual_seed(0)
torch.set_num_threads(1)
net = nn.Sequential(nn.Linear(8, 16), nn.Dropout(0.1), nn.Linear(16, 2))
optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
for step in range(1500):
    optimizer.zero_grad()
    nn.functional.cross_entropy(net(torch.randn(4, 8)), torch.randint(0, 2, (4,))).backward()
    optimizer.step()
    time.sleep(float(PAUSE))
print(hashlib.sha256(b"".join(one.detach().numpy().tobytes() for one in net.parameters())).hexdigest())
"""


def test_the_weights_are_those_of_a_training_that_nobody_asked(tmp_path):
    with TappedRun(tmp_path, SAME.replace("PAUSE", "0.006")) as run:
        assert run.tap("--collection", "layers", "--steps", "7")[0] == 0
        assert run.tap("--dump")[0] == 0
        assert run.ended() == 0
    runner = Runner(tmp_path)
    assert run.printed == runner.plain(runner.write(SAME.replace("PAUSE", "0"), "plain.py")).stdout


RANKS = """
import os, torch, torch.distributed as dist, time
from torch import nn
torch.manual_seed(0)
torch.set_num_threads(1)
dist.init_process_group("gloo")
net = nn.parallel.DistributedDataParallel(nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 2)))
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
try:
    for step in range(20000):
        before = [one.detach().clone() for one in net.parameters()]
        optimizer.zero_grad()
        nn.functional.cross_entropy(net(torch.randn(4, 8)), torch.randint(0, 2, (4,))).backward()
        optimizer.step()
        time.sleep(0.01)
finally:
    # In one piece: two ranks write into one pipe.
    os.write(1, f"finally {step} {all(map(torch.equal, before, net.parameters()))}\\n".encode())
"""


@pytest.mark.parametrize("workers", ["all", "one"])
def test_two_ranks_obey_at_one_step(tmp_path, workers):
    config = {"HookParameters": {"save_interval": 1000, "include_workers": workers}}
    with TappedRun(tmp_path, RANKS, config=config, launcher=TORCHRUN) as run:
        code, said = run.tap("--collection", "layers", "--steps", "3")
        assert code == 0, said
        saved = run.answers()
        assert len(saved) == (2 if workers == "all" else 1)
        assert len({answer["step"] for answer in saved}) == 1
        if workers == "all":
            trial = create_trial(str(run.run))
            step = saved[0]["step"]
            for worker in ("worker_0", "worker_1"):
                value = trial.tensor("0_output_0").value(step + 2, ModeKeys.TRAIN, worker)
                assert np.shape(value) == (4, 16)
        code, said = run.tap("--replay-next")
        assert (code, said.count("makes it again"), said.count("saves nothing")) == (
            (0, 2, 0) if workers == "all" else (0, 1, 0)
        )
        kept = run.answers()[len(saved) :]
        assert len({answer["step"] for answer in kept}) == 1
        code, said = run.tap("--stop", "both")
        assert code == 0, said
        run.ended()
    stopped = run.answers()[len(saved) + len(kept) :]
    assert [answer["worker"] for answer in stopped] == ["worker_0", "worker_1"]
    (step,) = {answer["step"] for answer in stopped}
    assert run.printed.splitlines() == [f"finally {step} True"] * 2
    assert run.said.count(f"stopped at step {step}: both (asked by tap)") == 2
