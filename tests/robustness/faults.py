"""A failure inside of a function of the agent's: the training goes on, and at most one line says so.

Every function that is called from the start of the agent to the end of the program is one that may fail, on whatever
thread; the call of it that fails is chosen by the case.
"""

from __future__ import annotations

import hashlib
import json
import re
import shutil
from collections.abc import Iterable
from pathlib import Path

from harness.runner import SITE_HOOK

from robustness.part import Case, Part
from robustness.training import GLUON, KERAS, PYTORCH, XGBOOST, Training

START = Path(__file__).with_name("start_with_faults.py")
FAILED = re.compile(r"failed \(|cannot write to|is not captured \(|takes no more data|cannot be saved: ")
FENCED = "; capture is off for the rest of this run"
# What every failure of ours is caught by cannot be tried: a failure in it is nobody's.
NOT_TRIED = ("guard.py:",)
CASES = 1600
# What the sample is made of: one function of each kind that has let failures through, and those that are reached from
# a framework's loop.
PYTORCH_FIRST = (
    "framework/training_steps.py:TrainingSteps.updated",
    "pytorch/capture/saved_step.py:SavedStep._wrap_backward.backward",
    "pytorch/capture/saved_step.py:SavedStep.forward",
    "pytorch/capture/functional_losses.py:_wrap.loss_function",
    "pytorch/capture/persistent_hooks.py:_wrap_loss_call.call",
    "pytorch/discovery/model_finder.py:ModuleFinder._wrap_add.add_param_group",
    "pytorch/model/step_counter.py:_forward_of.forward",
    "framework/patching.py:Patch._present",
    "framework/captured_step.py:Installed.__init__",
    "framework/captured_step.py:Installed.close",
    "pytorch/tracing.py:is_opaque",
    "storage/step_file.py:_Output.write",
)
KERAS_FIRST = (
    "framework/keras/step.py:StepFunction._run_captured",
    "framework/keras/watch.py:KerasWatch._watch_maker.around.make",
    "tensorflow/graph/told_failures.py:ToldAsOf.__exit__",
    "tensorflow/keras_fit/compiled_function.py:CompiledFunction._is_recorded",
    "tensorflow/keras_fit/compiled_function.py:CompiledFunction._run",
    "tensorflow/keras_fit/tensor_watch.py:TensorWatch._around_update.update",
    "tensorflow/keras_fit/versions.py:leave_untraced",
)
GLUON_FIRST = (
    "mxnet/hybridized.py:GraphTap._make.show",
    "mxnet/saved_step.py:SavedStep._call",
    "mxnet/saved_step.py:SavedStep._run_building.wrap_build.build_cache",
    "mxnet/saved_step.py:SavedStep._wrap_update.update",
    "mxnet/step_counter.py:Counters._begins",
    "mxnet/updates.py:_Updates._wrap_update.update",
)
XGBOOST_FIRST = (
    "framework/boosting/calls.py:_with_callbacks.train",
    "framework/boosting/rounds.py:Rounds.after_round",
    "framework/boosting/rounds.py:Rounds.end_round",
    "framework/boosting/rounds.py:Rounds.close",
    "xgboost/rounds.py:_rounds_of",
    "core/recorder.py:Recorder.end_step",
)


class Faults:
    """The functions that a training calls, in an order that has nothing to do with their files.

    Args:
        training: the training.
        first: the functions that are tried first, of which a sample is made.
    """

    def __init__(self, training: Training, first: tuple[str, ...]) -> None:
        self.training = training
        self.functions: list[str] = []
        self._first = first
        self._calls: dict[str, list[int]] = {}

    def prepare(self, folder: Path) -> None:
        """Count the calls."""
        self.training.prepare(folder)
        if self.training.missing:
            return
        counts = folder / "counts.json"
        self.training.check_untouched(self._run(folder, counts=str(counts)))
        self._calls = json.loads(counts.read_text())
        self.functions = in_order(self._calls, self._first)
        assert len(self.functions) <= CASES, f"{len(self.functions)} functions are too many for {CASES} cases"

    def attempt(self, case: Case, folder: Path) -> str:
        """Have one function fail: each in its first call and, once all have been tried, in any other."""
        if self.training.missing:
            return "not tried: there is no interpreter with it"
        rounds, number = divmod(case.number, len(self.functions))
        function = self.functions[number]
        calls = self._calls[function]
        if not calls:
            return "not tried: the program itself calls it"
        call = calls[0] if not rounds else case.choice((case.choice(calls), calls[-1]))
        fired = folder / "fired"
        fired.unlink(missing_ok=True)
        shutil.rmtree(folder / "run", ignore_errors=True)
        ended = self._run(folder, function=function, call=call, fired=str(fired))
        try:
            lines = self.training.check_untouched(ended)
            ours = [line for line in lines if FAILED.search(line)]
            steps = self.training.check_listed(folder / "run", complete=not ours)
            if not fired.exists():
                return "not reached"
            assert sum(FENCED in line for line in ours) <= 1, f"{len(ours)} lines: {ours}"
            assert ours or steps == self.training.steps, f"{steps} steps, and no line: {lines}"
        except Exception as error:
            raise AssertionError(f"{function}, call {call} of {calls[-1]}: {error}") from error
        return "survived, one line" if ours else "survived, nothing lost"

    def _run(self, folder: Path, **job: object) -> object:
        fault = json.dumps({**job, "site_hook": str(SITE_HOOK)})
        return self.training.run(folder, START, ROBUSTNESS_FAULT=fault)


def in_order(calls: Iterable[str], first: tuple[str, ...]) -> list[str]:
    """Return the functions that can be tried: these first, the others in an order that their names alone decide.

    Raises:
        AssertionError: one of the first is not called.
    """
    names = {name for name in calls if not name.startswith(NOT_TRIED)}
    assert names.issuperset(first), f"not called: {sorted({*first} - names)}"
    return [*first, *sorted(names.difference(first), key=lambda name: hashlib.sha1(name.encode()).digest())]


def part(name: str, title: str, training: Training, first: tuple[str, ...]) -> Part:
    """Return the part of one framework; the functions that are tried ``first`` are the sample."""
    faults = Faults(training, first)
    told = (
        f"`tests/subjects/{training.script}` is trained while one call of one function of the agent's raises an error. "
        "Every function that the training reaches is tried, in its first call and then in any other. "
        "What the program itself calls is left out: before its first statement nothing of the agent's has begun. "
        "So is what every failure is caught by."
    )
    return Part("faults", title, told, CASES, faults.prepare, faults.attempt, 120, None, name, len(first))


WITH_PYTORCH = part("WITH_PYTORCH", "Failures inside of the agent with PyTorch", PYTORCH, PYTORCH_FIRST)
WITH_KERAS = part("WITH_KERAS", "Failures inside of the agent with Keras", KERAS, KERAS_FIRST)
WITH_GLUON = part("WITH_GLUON", "Failures inside of the agent with Gluon", GLUON, GLUON_FIRST)
WITH_XGBOOST = part("WITH_XGBOOST", "Failures inside of the agent with XGBoost", XGBOOST, XGBOOST_FIRST)
