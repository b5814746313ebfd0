"""Rules that are asked while training goes on: what is said when, and what the training notices of it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest
from harness.live import GOES_ON, PYTORCH, XGBOOST, LiveTraining, wait_until, watchers
from harness.runner import TORCHRUN, environment

from smd_agent import create_trial
from smd_agent.storage import side_process

pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or not side_process.LIBRARY.exists(), reason="it takes the compiled part, and Linux"
)

FIELDS = {
    *("rule", "severity", "step", "global_step", "mode", "worker", "tensors", "words", "evidence", "cause", "advice"),
    *("time", "run"),
}


def niceness(pid):
    with open(f"/proc/{pid}/stat") as file:
        return int(file.read().rpartition(")")[2].split()[16])


def gone(pid):
    return not os.path.exists(f"/proc/{pid}")


@pytest.mark.parametrize(
    "kind, rule, words",
    [
        ("nan", "LossNotFinite", "loss not finite at step 30 (finite at 29)"),
        ("explode", "LossExploding", "loss exploded at step 30: "),
        ("stall", "UnchangedTensor", "always the same: "),
    ],
)
def test_what_goes_wrong_is_said_while_training_goes_on(tmp_path, kind, rule, words):
    with LiveTraining(tmp_path, PYTORCH, ["--rules", f"{rule},NoGradient"], [kind]) as training:
        line = training.awaited(words)
        assert line.startswith("smd_agent: ")
        assert f" while training: {words}" in line
        assert line.endswith(f"; more: python -m smd_agent check {training.run}")
        # Before the line was said.
        (found,) = [one for one in training.findings()["findings"] if one["rule"] == rule]
        assert found.keys() == FIELDS
        assert (found["mode"], found["worker"]) == ("TRAIN", "worker_0")
        assert words in found["words"]
        assert training.findings()["ended"] is False
        pid = training.watcher()
        assert training.end() == (0, "ended\n")
        assert wait_until(lambda: gone(pid))
    assert sum(words in line for line in training.lines) == 1, training.lines
    assert training.findings()["ended"] is True
    assert [one["rule"] for one in training.findings()["findings"]].count(rule) == 1


def test_a_sound_training_gets_no_line(tmp_path):
    with LiveTraining(tmp_path, PYTORCH, ["--rules", "all"]) as training:
        wait_until(lambda: (training.run / "findings.json").exists())
        pid = training.watcher()
        assert wait_until(lambda: niceness(pid) == 19)
        assert training.end() == (0, "ended\n")
        assert wait_until(lambda: gone(pid))
    assert not [line for line in training.lines if "while training" in line]
    assert training.findings()["findings"] == []


def test_without_rules_nothing_is_started(tmp_path):
    with LiveTraining(tmp_path, PYTORCH, words=["nan"]) as training:
        wait_until(lambda: (training.run / "index").is_dir())
        assert watchers(training.run) == []
        training.end()
    assert not (training.run / "findings.json").exists()


@pytest.mark.parametrize("sent", [signal.SIGKILL, signal.SIGINT])
def test_the_watcher_ends_with_the_training(tmp_path, sent):
    with LiveTraining(tmp_path, PYTORCH, ["--rules", "LossNotFinite"], ["nan"]) as training:
        training.awaited("loss not finite")
        pid = training.watcher()
        training.process.send_signal(sent)
        training.process.wait(60)
        assert wait_until(lambda: gone(pid))
    # Whoever reads the training's output is at its end.
    assert [one["rule"] for one in training.findings()["findings"]] == ["LossNotFinite"]


WAITS_FOR_ANY_CHILD = (
    GOES_ON
    + """
import multiprocessing, signal, subprocess, torch
signals = []
def work(number):
    return number * 2
if __name__ == "__main__":
    signal.signal(signal.SIGCHLD, lambda number, frame: signals.append(number))
    model = torch.nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    step = 0
    while goes_on():
        optimizer.zero_grad()
        (model(torch.ones(2, 4)).sum() * (float("nan") if step > 5 else 1)).backward()
        optimizer.step()
        step += 1
        time.sleep(0.01)
    print(len(signals))
    try:
        print(os.wait())
    except ChildProcessError:
        print("no child")
    child = subprocess.Popen([sys.executable, "-c", "raise SystemExit(7)"])
    print(os.waitstatus_to_exitcode(os.wait()[1]), len(signals))
    with multiprocessing.get_context("fork").Pool(2) as pool:
        print(pool.map(work, range(3)))
    print(sorted(os.listdir("/proc/self/task")) != [], os.getpgid(0) == os.getpgrp())
"""
)


def test_a_program_that_waits_for_any_child_is_told_of_its_own_alone(tmp_path):
    with LiveTraining(tmp_path, WAITS_FOR_ANY_CHILD, ["--rules", "LossNotFinite"]) as training:
        training.awaited("loss not finite")
        code, printed = training.end()
    assert (code, printed.splitlines()) == (0, ["0", "no child", "7 1", "[0, 2, 4]", "True True"])


def test_two_ranks_have_one_watcher(tmp_path):
    script = PYTORCH.replace("import torch\n", "import torch\nimport torch.distributed\n", 1).replace(
        "step = 0\n", 'torch.distributed.init_process_group("gloo")\nstep = 0\n', 1
    )
    hook = tmp_path / "hook.json"
    hook.write_text(json.dumps({"HookParameters": {"include_workers": "all", "save_interval": 10}}))
    options = ["--config", hook, "--rules", "LossNotFinite"]
    with LiveTraining(tmp_path, script, options, ["nan"], command=TORCHRUN) as training:
        wait_until(lambda: len(list((training.run / "collections").rglob("*worker_1*"))) > 0)
        line = training.awaited("loss not finite")
        assert len(watchers(training.run)) == 1
        training.end()
    assert sum("loss not finite at step 30" in line for line in training.lines) == 1, line


class Receiver(BaseHTTPRequestHandler):
    """Takes what is posted; an address that ends with "broken" is answered with an error."""

    def do_POST(self):
        """Take it."""
        body = self.rfile.read(int(self.headers["Content-Length"])).decode()
        self.server.received.append((self.path, self.headers["Content-Type"], body))
        self.send_response(500 if self.path.endswith("broken") else 200)
        answer = b"<PublishResponse><PublishResult><MessageId>1</MessageId></PublishResult></PublishResponse>"
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_):
        """Print nothing."""


@pytest.fixture
def receiver():
    server = HTTPServer(("127.0.0.1", 0), Receiver)
    server.received = []
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield server
    server.shutdown()
    server.server_close()


def test_each_action_follows_and_one_that_fails_costs_a_line(tmp_path, receiver):
    address = f"http://127.0.0.1:{receiver.server_port}"
    actions = [
        {"command": ["/nowhere/notify"]},
        {"command": [sys.executable, "-c", "import sys; sys.exit('not today')"]},
        {"webhook": f"{address}/broken"},
        {"webhook": f"{address}/hook"},
        {"command": [sys.executable, "-c", "import sys; open('by_command', 'w').write(sys.stdin.read())", "$HOME"]},
        {"shell": "cat > by_shell; echo $((1 + 1)) >> by_shell"},
        {"file": str(tmp_path / "log" / "findings.jsonl")},
        {"sns": "arn:aws:sns:eu-central-1:123456789012:findings"},
        {"file": str(tmp_path / "last.jsonl")},
    ]
    hook = tmp_path / "hook.json"
    content = {
        "RuleConfigurations": [{"RuleConfigurationName": "LossNotFinite", "Actions": actions[-1:]}],
        "HookParameters": {"actions": actions[:-1], "save_interval": 10},
    }
    hook.write_text(json.dumps(content))
    variables = {"AWS_ENDPOINT_URL_SNS": f"{address}/sns", "AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b"}
    pytest.importorskip("boto3")
    with LiveTraining(tmp_path, PYTORCH, ["--config", hook], ["nan"], **variables) as training:
        training.awaited("loss not finite")
        wait_until((tmp_path / "last.jsonl").exists)
        code, printed = training.end()
    assert (code, printed) == (0, "ended\n")
    failed = [line.partition("the action ")[2] for line in training.lines if "the action" in line]
    assert failed == [
        "command /nowhere/notify failed: No such file or directory",
        f"command {sys.executable} failed: exit code 1 (not today)",
        "webhook 127.0.0.1 failed: HTTP Error 500: Internal Server Error",
    ]
    told = [
        (tmp_path / "by_command").read_text(),
        (tmp_path / "by_shell").read_text().replace("}2\n", "}"),
        (tmp_path / "log" / "findings.jsonl").read_text(),
        *[body for path, kind, body in receiver.received if path == "/hook" and kind == "application/json"],
    ]
    assert [{**json.loads(text), "cause": "", "advice": ""} for text in told] == [
        {**training.findings()["findings"][0], "cause": "", "advice": ""}
    ] * 4
    (published,) = [body for path, _, body in receiver.received if path.startswith("/sns")]
    assert "Action=Publish" in published
    assert "LossNotFinite" in published


LOGS_TO_TRACKERS = (
    """
import random
import mlflow, wandb
wandb.init(mode="offline", project="p")
mlflow.set_tracking_uri("file:./mlruns")
begun = mlflow.start_run()
random.seed(1)
"""
    + PYTORCH
    + """
print(random.random())
def ours():
    tags = mlflow.MlflowClient().get_run(begun.info.run_id).data.tags
    return [f"{key}={text}" for key, text in tags.items() if key.startswith("smd_agent")]
# It comes last of all.
until = time.time() + 30
while not ours() and time.time() < until:
    time.sleep(0.05)
print(ours())
mlflow.end_run()
wandb.finish()
"""
)
# Of the interface of the two, as much as is used; what is told is noted with the thread that tells it.
MLFLOW = """
import threading
from types import SimpleNamespace
tags = {}
runs = threading.local()
run = SimpleNamespace(info=SimpleNamespace(run_id="1"), data=SimpleNamespace(tags=tags))
set_tracking_uri = lambda address: None
end_run = lambda: None
def start_run():
    runs.active = run
    return run
def active_run():
    return getattr(runs, "active", None)
class MlflowClient:
    def set_tag(self, run_id, key, value):
        assert threading.current_thread() is not threading.main_thread()
        tags[key] = value
    def get_run(self, run_id):
        return run
import mlflow.tracking.fluent
"""
FLUENT = """
import mlflow
_get_latest_active_run = lambda: mlflow.run
"""
WANDB = """
import os, threading
run = None
finish = lambda: None
class Run:
    def alert(self, title, text, level=None, wait_duration=None):
        assert threading.current_thread() is not threading.main_thread()
        os.makedirs("wandb_files", exist_ok=True)
        with open("wandb_files/run-1.wandb", "a") as file:
            file.write(f"{title}|{text}|{level}")
def init(**_):
    global run
    run = Run()
"""


@pytest.mark.parametrize("kind", ["modules of their interface", "the libraries"])
def test_the_trackers_of_the_script_are_told(tmp_path, kind):
    if kind == "the libraries":
        pytest.importorskip("wandb")
        pytest.importorskip("mlflow")
    else:
        for name, text in {"wandb": WANDB, "mlflow/__init__": MLFLOW, "mlflow/tracking/fluent": FLUENT}.items():
            path = tmp_path / f"{name}.py"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
    variables = {"WANDB_SILENT": "true", "MLFLOW_ALLOW_FILE_STORE": "true"}
    with LiveTraining(tmp_path, LOGS_TO_TRACKERS, ["--rules", "LossNotFinite"], ["nan"], **variables) as training:
        training.awaited("while training: loss not finite at step 30")
        code, printed = training.end()
    ended, number, tags = printed.splitlines()
    assert (code, ended, number) == (0, "ended", "0.13436424411240122")
    assert tags == "['smd_agent.LossNotFinite=problem: loss not finite at step 30 (finite at 29)']"
    alerts = b"".join(path.read_bytes() for path in tmp_path.glob("wandb*/**/run-*.wandb")).decode(errors="replace")
    assert "problem: LossNotFinite (TRAIN)" in alerts
    assert f"loss not finite at step 30 (finite at 29); more: python -m smd_agent check {training.run}" in alerts
    assert not [line for line in training.lines if "is not told" in line]


OWN_RULE = """
from smd_agent.rules import Rule

class LateStep(Rule):
    def invoke_at_step(self, step):
        return step >= 20
"""


def test_rules_of_ones_own_look_on_too(tmp_path):
    own = tmp_path / "own.py"
    own.write_text(OWN_RULE)
    with LiveTraining(tmp_path, PYTORCH, ["--rules", "own.py", "--every", "10"]) as training:
        training.awaited("problem while training: late step at step 20")
        training.end()


KERAS = (
    GOES_ON
    + """
import keras, numpy
keras.utils.set_random_seed(0)
model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(8, activation="relu"), keras.layers.Dense(1)])
model.compile("sgd", "mse", run_eagerly=False)
x = numpy.random.default_rng(0).normal(size=(320, 4)).astype("float32")
y = x.sum(1)
epoch = 0
while goes_on():
    if epoch == 3:
        y[:] = float("nan")
    model.fit(x, y, verbose=0)
    epoch += 1
print("ended")
"""
)


def test_a_training_with_keras_is_looked_at(tmp_path):
    pytest.importorskip("keras")
    with LiveTraining(tmp_path, KERAS, ["--rules", "LossNotFinite", "--every", "5"]) as training:
        training.awaited("loss not finite at step")
        assert training.end() == (0, "ended\n")


def test_boosting_is_looked_at(tmp_path):
    pytest.importorskip("xgboost")
    with LiveTraining(tmp_path, XGBOOST, ["--rules", "LossExploding"]) as training:
        training.awaited("problem while training: loss exploded at step")
        assert training.end() == (0, "ended\n")


@pytest.mark.parametrize(
    "words, said",
    [
        (["--rules", "LossNotFinit"], "option --rules names LossNotFinit, allowed are "),
        (["--on-find", "stop"], "option --on-find needs rules that are asked while training: --rules"),
        (["--rules", "all", "--on-find", "cry"], 'option --on-find is \'cry\', allowed is "warn", "dump" or "stop"'),
    ],
)
def test_options_that_cannot_be_followed_are_said_before_anything_starts(tmp_path, words, said):
    done = subprocess.run(
        [sys.executable, "-m", "smd_agent", *words, "-c", "print(1)"],
        cwd=tmp_path,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr


def stop_line(training):
    return [line for line in training.lines if "smd_agent: stopped " in line]


def test_a_problem_ends_the_training_before_the_update(tmp_path):
    options = ["--rules", "LossNotFinite", "--on-find", "stop"]
    with LiveTraining(tmp_path, PYTORCH, options, ["nan"]) as training:
        training.awaited("problem while training: loss not finite at step 30")
        code = training.process.wait(60)
        assert (code, training.end()) == (86, (86, ""))
    (line,) = stop_line(training)
    assert line.endswith("loss not finite at step 30 (finite at 29) (asked by the rule LossNotFinite)")


def test_a_warning_ends_nothing(tmp_path):
    options = ["--rules", "UnchangedTensor", "--on-find", "stop"]
    with LiveTraining(tmp_path, PYTORCH, options, ["stall"]) as training:
        training.awaited("warning while training: always the same")
        assert training.end() == (0, "ended\n")
    assert stop_line(training) == []


def test_the_next_step_is_saved_whole(tmp_path):
    options = ["--rules", "LossNotFinite", "--on-find", "dump", "--every", "100000"]
    with LiveTraining(tmp_path, PYTORCH, options, ["nan"]) as training:
        training.awaited("problem while training: loss not finite at step 30")
        wait_until(lambda: len([*(training.run / "index").rglob("*.json")]) > 1)
        assert training.end() == (0, "ended\n")
    trial = create_trial(str(training.run))
    # The last one has weights that are not finite, which are saved at the end.
    late = min(step for step in trial.steps() if step > 30)
    names = trial.tensor_names(step=late, collection="weights")
    assert [trial.tensor(name).value(late).shape for name in names] == [(16, 8), (1, 16)]


@pytest.mark.parametrize("script, rule", [(KERAS, "LossNotFinite"), (XGBOOST, "LossExploding")])
def test_other_frameworks_are_ended_too(tmp_path, script, rule):
    pytest.importorskip("keras" if script is KERAS else "xgboost")
    with LiveTraining(tmp_path, script, ["--rules", rule, "--on-find", "stop", "--every", "5"]) as training:
        training.awaited("problem while training: ")
        wait_until(lambda: stop_line(training))
        training.end()
    assert len(stop_line(training)) == 1, training.lines
