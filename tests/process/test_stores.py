"""Scripts nobody has edited, captured into a store that speaks S3: what they see of it, and what it has of them."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("moto")
xgb = pytest.importorskip("xgboost")

import numpy as np
from harness.live import XGBOOST, LiveTraining, wait_until
from harness.store_server import contents, store_server

from smd_agent import cli, create_trial
from smd_agent.formats import paths
from smd_agent.storage import side_process

SCRIPT = """
import os, random, sys, time
import numpy as np, xgboost as xgb
rng = np.random.default_rng(0)
data = xgb.DMatrix(rng.normal(size=(50, 4)), rng.normal(size=50))
random.seed(3)

class Manner(xgb.callback.TrainingCallback):
    def after_iteration(self, model, epoch, log):
        if sys.argv[1] == "killed":
            time.sleep(0.05)
            if epoch == 30:
                os.kill(os.getpid(), 9)

def train():
    given = dict(evals=[(data, "train")], verbose_eval=False, callbacks=[Manner()])
    return xgb.train({"nthread": 1}, data, 40, **given)

model = train()
if sys.argv[1] == "forks":
    child = os.fork()
    if not child:
        train()
        sys.exit(0)
    os.waitpid(child, 0)
print(random.random(), hash(bytes(model.save_raw())), sys.argv)
sys.exit(7)
"""
# Its checkpoint is written in every tenth round, one that is saved. It is killed in the round that it is told, when the
# disk has what was saved before. The metric "start" tells which start has made a round.
SPOT = """
import os, sys, time
import numpy as np, xgboost as xgb
folder, kill, start = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
rng = np.random.default_rng(0)
data = xgb.DMatrix(rng.normal(size=(50, 4)), rng.normal(size=50))
path, model, made = os.path.join(folder, "last.ubj"), None, 0
if os.path.exists(path):
    model = xgb.Booster(model_file=path)
    made = model.num_boosted_rounds()

class Manner(xgb.callback.TrainingCallback):
    def after_iteration(self, model, epoch, log):
        global made
        made += 1
        if made % 10 == 1:
            os.makedirs(folder, exist_ok=True)
            model.save_model(os.path.join(folder, "new.ubj"))
            os.replace(os.path.join(folder, "new.ubj"), path)
        if made == kill:
            time.sleep(0.5)
            os.kill(os.getpid(), 9)

given = dict(evals=[(data, "train")], verbose_eval=False, callbacks=[Manner()])
metric = lambda margins, data: ("start", start)
model = xgb.train({"nthread": 1}, data, 40 - made, custom_metric=metric, xgb_model=model, **given)
"""
OPTIONS = ("--save", "metrics,losses", "--every", "2")
# Of 40 rounds, every second is saved.
SAVED = [*range(0, 40, 2)]


@pytest.fixture(scope="module")
def server():
    with store_server() as running:
        yield running


@pytest.fixture
def store(server):
    server.heal()
    yield server
    server.heal()


@pytest.fixture(scope="module")
def script(tmp_path_factory):
    path = tmp_path_factory.mktemp("script") / "train.py"
    path.write_text(SCRIPT)
    return path


@pytest.fixture(scope="module")
def plain(script):
    return run(script.parent, "train.py", "plain")


def run(folder: Path, *words: str, **variables: str) -> subprocess.CompletedProcess[str]:
    fixed = {"OMP_NUM_THREADS": "1", "PYTHONHASHSEED": "0", "TMPDIR": str(folder), **variables}
    kept = {name: text for name, text in os.environ.items() if name not in fixed}
    command = [sys.executable, *words]
    return subprocess.run(command, cwd=folder, env={**kept, **fixed}, capture_output=True, text=True, timeout=120)


def captured(script: Path, manner: str, address: str, **variables: str) -> subprocess.CompletedProcess[str]:
    return run(script.parent, "-m", "smd_agent", "--out", address, *OPTIONS, script.name, manner, **variables)


def test_a_script_sees_nothing_of_a_bad_store_which_gets_all_of_it(store, script, plain, capsys):
    # What programs have left that other tests have killed.
    before = {*script.parent.glob("smd_agent-*")}
    store.faults.seconds, store.faults.refuse, store.faults.drop = 0.02, 4, 4
    done = captured(script, "plain", "s3://bucket/faults/run")
    assert (done.returncode, done.stdout) == (7, plain.stdout)
    saving, saved, verdict = done.stderr.splitlines()
    assert saving == "smd_agent: saving metrics, losses to s3://bucket/faults/run"
    assert saved.startswith("smd_agent: saved 20 steps (20 values")
    assert saved.endswith("to see them: python -m smd_agent ls s3://bucket/faults/run")
    assert verdict.startswith("smd_agent: no")
    assert {*script.parent.glob("smd_agent-*")} == before
    trial = create_trial("s3://bucket/faults/run")
    assert trial.steps() == SAVED
    names = contents("s3://bucket/faults/run").keys()
    assert {paths.END_MARKER, paths.collections_path("worker_0"), paths.about_path("worker_0")} <= names
    assert len(names) == 2 * len(SAVED) + 4
    assert cli.main(["ls", "s3://bucket/faults/run"]) == 0
    assert "State    finished\n" in capsys.readouterr().out


def test_a_store_that_takes_nothing_holds_the_end_up_for_a_moment_and_is_named(store, script, plain):
    store.faults.only, store.faults.hangs = "/events/", True
    done = captured(script, "plain", "s3://bucket/hangs/run", SMD_AGENT_UPLOAD_SECONDS="1")
    assert (done.returncode, done.stdout) == (7, plain.stdout)
    saving, left, saved, verdict = done.stderr.splitlines()
    found = re.fullmatch(
        r"smd_agent: \d+ files \([\d.]+ kB\) of the run are not in s3://bucket/hangs/run "
        r"\(it does not answer in time\), but in (/.+/smd_agent-\w+/run)",
        left,
    )
    assert found, left
    assert saved.endswith(f"python -m smd_agent ls {found[1]}")
    assert create_trial(found[1]).steps() == SAVED
    assert saving == "smd_agent: saving metrics, losses to s3://bucket/hangs/run"
    # Where the machine has no time for it, it is not judged.
    assert verdict.startswith("smd_agent: no")


def test_what_is_in_the_store_after_a_kill_can_be_read(store, script, capsys):
    done = captured(script, "killed", "s3://bucket/killed/run")
    assert done.returncode == -9
    there = contents("s3://bucket/killed/run")
    steps = [paths.parse_step_file(name.rpartition("/")[2])[0] for name in there if name.startswith("index/")]
    assert steps == SAVED[: len(steps)]
    assert len(steps) > 3
    trial = create_trial("s3://bucket/killed/run", timeout=0)
    assert trial.tensor("train-rmse").steps(show_incomplete_steps=True) == steps
    assert all(trial.tensor("train-rmse").value(step) > 0 for step in steps)
    assert cli.main(["ls", "s3://bucket/killed/run"]) == 0
    assert "State    was cut off: process " in capsys.readouterr().out


def test_a_folder_is_copied_and_a_fork_and_a_training_job_copy_nothing(store, script, tmp_path):
    hook = tmp_path / "hook.json"
    content = {
        "LocalPath": str(tmp_path / "run"),
        "S3OutputPath": "s3://bucket/copied/run",
        "HookParameters": {"save_interval": 2},
        "CollectionConfigurations": [{"CollectionName": "metrics"}],
    }
    hook.write_text(json.dumps(content))
    done = run(script.parent, script.name, "forks", SMDEBUG_CONFIG_FILE_PATH=str(hook))
    assert done.returncode == 7
    told = [line for line in done.stderr.splitlines() if "uploads" in line]
    folder = tmp_path / "run-2"
    assert told == [f"smd_agent: a process made by a fork uploads nothing: what it saves stays in {folder}"]
    there = contents("s3://bucket/copied/run")
    ours = tmp_path / "run"
    local = {path.relative_to(ours).as_posix(): path for path in ours.rglob("*") if path.is_file()}
    assert there == {name: path.read_bytes() for name, path in local.items()}
    assert len(create_trial(str(folder)).steps()) == len(SAVED)
    assert sum(line.count("; it is in s3://bucket/copied/run, too;") for line in done.stderr.splitlines()) == 1
    store.faults.seen.clear()
    job = {"SMDEBUG_CONFIG_FILE_PATH": str(hook), "TRAINING_JOB_NAME": "job"}
    done = run(script.parent, script.name, "plain", **job)
    assert done.returncode == 7
    assert "S3OutputPath" not in done.stderr
    assert store.faults.seen == []


def test_a_training_that_is_killed_goes_on_at_its_address(store, script, tmp_path):
    (script.parent / "spot.py").write_text(SPOT)
    folder, named, address = tmp_path / "checkpoints", tmp_path / "named.json", "s3://bucket/spot/run"
    named.write_text(json.dumps({"LocalPath": str(folder)}))

    def start(number: int, kill: int) -> list[str]:
        words = ("-m", "smd_agent", "--out", address, *OPTIONS, "spot.py", str(folder), str(kill), str(number))
        done = run(script.parent, *words, CHECKPOINT_CONFIG_FILE_PATH=str(named), TMPDIR=str(tmp_path))
        assert done.returncode == (-9 if kill else 0), done.stderr
        return [line.removeprefix("smd_agent: ") for line in done.stderr.splitlines()]

    def ways() -> list[Path]:
        return [*tmp_path.glob("smd_agent-*")]

    # What it has saved has not got there when it is killed; what lies here is lost with the machine the first time.
    store.faults.only, store.faults.hangs = "/events/", True
    start(0, 17)
    for left in ways():
        shutil.rmtree(left)
    second = start(1, 34)
    assert len(ways()) == 1
    store.heal()
    third = start(2, 0)
    assert ways() == []
    cut_off = "which had not taken all when the training was cut off"
    assert second == [
        f"steps go on after 10, as {folder}/metadata.json says",
        f"6 steps from 0 on are not in {address}, {cut_off}",
        f"saving metrics, losses to {address}",
    ]
    assert third[:3] == [
        f"steps go on after 30, as {folder}/metadata.json says",
        f"step 32 is removed from {address}: the training makes them anew",
        f"saving metrics, losses to {address}",
    ]
    trial = create_trial(address)
    assert trial.steps() == [*range(12, 40, 2)]
    # As a training that nobody interrupts has it, and each of the start that made it last.
    rng, expected = np.random.default_rng(0), {}
    data = xgb.DMatrix(rng.normal(size=(50, 4)), rng.normal(size=50))
    xgb.train({"nthread": 1}, data, 40, evals=[(data, "train")], verbose_eval=False, evals_result=expected)
    for step in trial.steps():
        loss, of_start = (trial.tensor(name).value(step)[0] for name in ("train-rmse", "train-start"))
        assert loss == pytest.approx(expected["train"]["rmse"][step], rel=1e-5)
        assert of_start == (1 if step <= 30 else 2)
    # With collections, notes, the series, lost steps, end mark and claim; what has no index is no file.
    names = contents(address).keys()
    assert len(names) == 2 * len(trial.steps()) + 6
    assert json.loads(contents(address)[paths.lost_path("worker_0")])["steps"] == [0, 2, 4, 6, 8, 10]
    assert contents(f"{address}-2") == {}


@pytest.mark.skipif(
    sys.platform != "linux" or not side_process.LIBRARY.exists(), reason="it takes the compiled part, and Linux"
)
def test_what_rules_find_while_training_is_in_the_store_meanwhile_and_afterwards(store, tmp_path):
    address, way = "s3://bucket/findings/run", tmp_path / "way"
    way.mkdir()

    def findings():
        return json.loads(contents(address).get("findings.json", b'{"findings": []}'))["findings"]

    options = ["--out", address, "--rules", "LossExploding", *OPTIONS]
    with LiveTraining(tmp_path, XGBOOST, options, TMPDIR=str(way)) as training:
        line = training.awaited("problem while training: loss exploded at step")
        assert line.endswith(f"; more: python -m smd_agent check {address}")
        assert wait_until(findings)
        assert paths.END_MARKER not in contents(address)
        assert training.end() == (0, "ended\n")
    (found,) = findings()
    assert (found["rule"], found["run"]) == ("LossExploding", address)
    assert paths.END_MARKER in contents(address)
    assert [*way.glob("smd_agent-*")] == []
