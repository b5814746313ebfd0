"""Trainings that go on until they are told to end, and what is said of them meanwhile."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from threading import Thread

from harness.runner import environment

# A finding is there within two seconds where the processors are free; here others may use them.
SECONDS = 60
# In a script: ``goes_on()`` is true until the test has seen what it waits for.
GOES_ON = f"""
import os, sys, time
_begun = time.time()
def goes_on():
    return not os.path.exists(sys.argv[1]) and time.time() < _begun + {2 * SECONDS}
"""
# Loss by loss, with what becomes of it from step 30 on.
PYTORCH = (
    GOES_ON
    + """
import torch
torch.manual_seed(0)
kind = sys.argv[2] if len(sys.argv) > 2 else "fine"
model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
x = torch.randn(64, 8)
y = x.sum(1, keepdim=True)
step = 0
while goes_on():
    optimizer.zero_grad()
    loss = (model(x) - y).pow(2).mean()
    if step >= 30 and kind == "nan":
        loss = loss * float("nan")
    if step >= 30 and kind == "explode":
        loss = loss * 10.0 ** min(step, 25)
    loss.backward()
    if kind in ("stall", "explode"):
        for parameter in model.parameters():
            parameter.grad.zero_()
    optimizer.step()
    step += 1
    time.sleep(0.005)
print("ended")
"""
)
# Its loss grows from round 20 on.
XGBOOST = (
    GOES_ON
    + """
import numpy, xgboost
x = numpy.random.default_rng(0).normal(size=(200, 4))
class Slowly(xgboost.callback.TrainingCallback):
    def after_iteration(self, model, epoch, evals_log):
        time.sleep(0.05)
        return not goes_on()
rounds = [0]
def objective(prediction, data):
    rounds[0] += 1
    sign = -50.0 if rounds[0] > 20 else 1.0
    return sign * (prediction - data.get_label()), numpy.ones(len(prediction))
data = xgboost.DMatrix(x, x.sum(1))
xgboost.train(
    {"nthread": 1}, data, 100000, evals=[(data, "train")], obj=objective, callbacks=[Slowly()], verbose_eval=False
)
print("ended")
"""
)


class LiveTraining:
    """A training in a process, whose lines are taken as they come.

    Args:
        folder: for the script and its run.
        script: its text; it is told where the file lies that ends it.
        options: of the launcher.
        words: of the script.
        variables: of the process.
    """

    def __init__(self, folder, script, options=(), words=(), command=(), **variables):
        self.run = folder / "run"
        self.lines = []
        path, self._end = folder / "training.py", folder / "end"
        path.write_text(script)
        self._log = open(folder / "stdout", "w+")  # noqa: SIM115
        launched = [sys.executable, "-m", "smd_agent", "--out", self.run, *options, *command, path, self._end, *words]
        self.process = subprocess.Popen(
            [*map(str, launched)],
            cwd=folder,
            env=environment(**variables),
            stdout=self._log,
            stderr=subprocess.PIPE,
            text=True,
        )
        self._reader = Thread(target=self._read, daemon=True)
        self._reader.start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        self._reader.join(SECONDS)
        self.process.stderr.close()
        self._log.close()

    def awaited(self, text):
        """The first line with a text, as soon as it is there."""
        wait_until(lambda: self._with(text) or self.process.poll() is not None)
        assert self._with(text), self.lines
        return self._with(text)[0]

    def watcher(self):
        """The pid of the process beside the training, as soon as there is one."""
        (pid,) = wait_until(lambda: watchers(self.run))
        return pid

    def end(self):
        """Have it end; return its exit code and what it has printed."""
        self._end.touch()
        code = self.process.wait(SECONDS)
        self._reader.join(SECONDS)
        self._log.seek(0)
        return code, self._log.read()

    def findings(self):
        """The content of the file of findings."""
        return json.loads((self.run / "findings.json").read_text())

    def _with(self, text):
        return [line for line in self.lines if text in line]

    def _read(self):
        for line in self.process.stderr:
            self.lines.append(line.rstrip("\n"))


def wait_until(condition):
    """Wait until something holds, and return it."""
    until = time.time() + SECONDS
    while not (found := condition()) and time.time() < until:
        time.sleep(0.05)
    return found


def watchers(run):
    """The pids of the processes that look at a run: their files are what tells them from others."""
    found = []
    for pid in filter(str.isdecimal, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as file:
                words = file.read()
            is_one = b"smd_agent.live" in words and os.readlink(f"/proc/{pid}/cwd") == str(run.parent)
        except OSError:
            continue
        if is_one:
            found.append(int(pid))
    return found
