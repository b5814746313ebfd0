"""A failure inside of a function of the agent's: the training goes on, and at most one line says so.

Every function that is called from the start of the agent to the end of the program is one that may fail, on whatever
thread; the call of it that fails is chosen by the case.
"""

from __future__ import annotations

import json
import random
import re
import shutil
from pathlib import Path

from harness.runner import SITE_HOOK

from robustness.part import Case, Part
from robustness.training import GLUON, KERAS, PYTORCH, XGBOOST, Training

START = Path(__file__).with_name("start_with_faults.py")
FAILED = re.compile(r"failed \(|cannot write to|is not captured \(|takes no more data")
FENCED = "; capture is off for the rest of this run"
# What every failure of ours is caught by cannot be tried: a failure in it is nobody's.
NOT_TRIED = ("guard.py:",)


class Faults:
    """The functions that a training calls, in an order that has nothing to do with their files."""

    def __init__(self, training: Training) -> None:
        self.training = training
        self.functions: list[str] = []
        self._calls: dict[str, int] = {}
        self._entries: set[str] = set()

    def prepare(self, folder: Path) -> None:
        """Count the calls."""
        self.training.prepare(folder)
        if self.training.missing:
            return
        counts = folder / "counts.json"
        self.training.check_untouched(self._run(folder, counts=str(counts)))
        found = json.loads(counts.read_text())
        self._calls, self._entries = found["calls"], {*found["entries"]}
        self.functions = sorted(name for name in self._calls if not name.startswith(NOT_TRIED))
        random.Random(1).shuffle(self.functions)

    def attempt(self, case: Case, folder: Path) -> str:
        """Have one function fail."""
        if self.training.missing:
            return "not tried: there is no interpreter with it"
        function = self.functions[case.number % len(self.functions)]
        if function in self._entries:
            return "not tried: the program itself calls it"
        # Of the first calls there are few; most functions are called in every step.
        calls = self._calls[function]
        call = case.choice((1, case.randint(1, calls), calls))
        fired = folder / "fired"
        fired.unlink(missing_ok=True)
        shutil.rmtree(folder / "run", ignore_errors=True)
        ended = self._run(folder, function=function, call=call, fired=str(fired))
        try:
            lines = self.training.check_untouched(ended)
            steps = self.training.check_listed(folder / "run")
        except AssertionError as error:
            raise AssertionError(f"{function}, call {call} of {calls}: {error}") from None
        if not fired.exists():
            return "not reached"
        ours = [line for line in lines if FAILED.search(line)]
        assert sum(FENCED in line for line in ours) <= 1, (
            f"{function}, call {call} of {calls}: {len(ours)} lines: {ours}"
        )
        assert ours or steps == self.training.steps, f"{function}, call {call}: {steps} steps, and no line: {lines}"
        return "survived, one line" if ours else "survived, nothing lost"

    def _run(self, folder: Path, **job: object) -> object:
        fault = json.dumps({**job, "site_hook": str(SITE_HOOK)})
        return self.training.run(folder, START, ROBUSTNESS_FAULT=fault)


def part(name: str, title: str, training: Training, cases: int, sample: int) -> Part:
    """Return the part of one framework."""
    faults = Faults(training)
    told = (
        f"`tests/subjects/{training.script}` is trained while one call of one function of the agent's raises an error. "
        "Every function that the training reaches is tried in turn. "
        "Those that the program itself calls are left out: before their first statement nothing of the agent's has "
        "begun."
    )
    return Part("faults", title, told, cases, faults.prepare, faults.attempt, 120, None, name, sample)


WITH_PYTORCH = part("WITH_PYTORCH", "Failures inside of the agent with PyTorch", PYTORCH, 1000, 10)
WITH_KERAS = part("WITH_KERAS", "Failures inside of the agent with Keras", KERAS, 1000, 0)
WITH_GLUON = part("WITH_GLUON", "Failures inside of the agent with Gluon", GLUON, 1000, 0)
WITH_XGBOOST = part("WITH_XGBOOST", "Failures inside of the agent with XGBoost", XGBOOST, 1000, 0)
