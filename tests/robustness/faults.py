"""A failure inside of a function of the agent's: the training goes on, and at most one line says so.

Every function that is called from the start of the agent to the end of the program is one that may fail, on whatever
thread; the call of it that fails is chosen by the case.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path

from harness.runner import SITE_HOOK

from robustness.jobs import XGBOOST_AGAIN, XGBOOST_BESIDE, XGBOOST_JOB, XGBOOST_STORED
from robustness.part import Case, Part
from robustness.survival import survived
from robustness.training import GLUON, KERAS, PYTORCH, Training

LOG = os.environ.get("ROBUSTNESS_LOG")
START = Path(__file__).with_name("start_with_faults.py")
FAILED = re.compile(
    r"failed \(|cannot write |is not captured \(|takes no more data|cannot be saved: |is not noted|cannot be read \(|"
    r"is not used \(|of the run (?:is|are) not in |takes nothing \("
)
FENCED = "; capture is off for the rest of this run"
# What every failure of ours is caught by cannot be tried: a failure in it is nobody's.
NOT_TRIED = ("guard.py:",)
# What the sample is made of: one function of each kind that has let failures through, and those that are reached from
# a framework's loop.
PYTORCH_FIRST = (
    "framework/training_step.py:TrainingSteps.updated",
    "pytorch/capture/saved_step.py:SavedStep._wrap_backward.backward",
    "pytorch/capture/model_calls.py:ModelCalls.forward",
    "pytorch/capture/functional_losses.py:_wrap.loss_function",
    "pytorch/capture/persistent_hooks.py:_wrap_loss_call.call",
    "pytorch/discovery/model_finder.py:ModuleFinder._wrap_add.add_param_group",
    "pytorch/model/step_counter.py:_forward_of.forward",
    "framework/replaced_functions.py:Patch._present",
    "framework/captured_step.py:Installed.__init__",
    "framework/captured_step.py:Installed.close",
    "pytorch/tracing.py:is_opaque",
    "storage/step_output.py:StepOutput.write",
)
KERAS_FIRST = (
    "framework/keras/step_function.py:StepFunction._run_captured",
    "framework/keras/fit_watch.py:KerasWatch._watch_maker.around.make",
    "framework/keras/fit_watch.py:KerasWatch._publish_last",
    "core/open_step.py:OpenStep.publish",
    "tensorflow/graph/error_messages.py:ToldAsOf.__exit__",
    "tensorflow/keras_fit/compiled_function.py:CompiledFunction._is_recorded",
    "tensorflow/keras_fit/compiled_function.py:CompiledFunction._run",
    "tensorflow/keras_fit/tensor_watch.py:TensorWatch._around_update.update",
    "tensorflow/keras_fit/versions.py:leave_untraced",
)
GLUON_FIRST = (
    "mxnet/hybridized.py:GraphTap._make.show",
    "mxnet/saved_step.py:SavedStep._call",
    "mxnet/tapped_calls.py:TappedCalls._run_building.wrap_build.build_cache",
    "mxnet/saved_step.py:SavedStep._wrap_update.update",
    "mxnet/step_counter.py:Counters._begins",
    "mxnet/trainer_watch.py:_Updates._wrap_update.update",
)
XGBOOST_FIRST = (
    "framework/boosting/training_functions.py:_with_callbacks.train",
    "framework/boosting/saved_round.py:DataFacts.save",
    "framework/boosting/rounds.py:Rounds.after_round",
    "framework/boosting/rounds.py:Rounds.end_round",
    "framework/boosting/rounds.py:Rounds.close",
    "xgboost/round_callback.py:_rounds_of",
    "core/open_step.py:OpenStep.end_step",
)
# Of these, the first start calls some too.
RESTART_FIRST = (
    "framework/restarts.py:Restarts._read",
    "storage/folder_choice.py:RunFolder._go_on_as",
    "core/recorder.py:Recorder.go_on_after",
    "framework/restarts.py:Restarts.__init__",
    "framework/restarts.py:Restarts.begin",
    "framework/restarts.py:Restarts._start",
    "framework/restarts.py:Restarts._now",
    "framework/restarts.py:Restarts.settle",
    "storage/state_keeper.py:read_states",
    "storage/state_keeper.py:_read_states",
    "storage/state_keeper.py:write_states",
    "storage/state_keeper.py:StateKeeper.__init__",
    "storage/state_keeper.py:StateKeeper._take",
    "storage/state_keeper.py:StateKeeper._look",
    "storage/folder_choice.py:RunFolder.enter_alone",
)
STORE_FIRST = ("storage/uploads.py:Uploads._upload", "storage/stores.py:Store._run")


class Faults:
    """The functions that a training calls, in an order that has nothing to do with their files.

    Args:
        training: the training.
        first: the functions that are tried first, of which a sample is made.
        cases: how many there are.
        beyond: the functions that this training calls are not tried, but for the first.
    """

    def __init__(self, training: Training, first: tuple[str, ...], cases: int, beyond: Training | None) -> None:
        self.training = training
        self.functions: list[str] = []
        self._first = first
        self._cases = cases
        self._beyond = beyond
        self._calls: dict[str, list[int]] = {}

    def prepare(self, folder: Path) -> None:
        """Count the calls."""
        self.training.prepare(folder)
        if self.training.missing:
            return
        known = {} if self._beyond is None else self._counted(self._beyond, folder)
        counted = self._counted(self.training, folder)
        self._calls = {name: calls for name, calls in counted.items() if name not in known or name in self._first}
        self.functions = in_order(self._calls, self._first)
        number = len(self.functions)
        assert number <= self._cases, f"{number} functions are too many for {self._cases} cases"

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
        ended = self._run(self.training, folder, function=function, call=call, fired=str(fired))
        try:
            lines = self.training.check_untouched(ended)
            ours = [line for line in lines if FAILED.search(line)]
            root = self.training.root(folder)
            found = self.training.check_values(root, complete=not ours)
            kept = self.training.keeps(folder)
            if not fired.exists():
                return "not reached"
            assert sum(FENCED in line for line in ours) <= 1, f"{len(ours)} lines: {ours}"
            assert ours or kept == self.training.kept, f"{kept}, and no line: {lines}"
            training = self.training
            end = survived(function, root, training.whole, found, training.kinds, training.order, ours)
            if LOG:
                with open(LOG, "a") as log:
                    print(function, call, calls[-1], end, *ours[:1], sep="\t", file=log)
        except Exception as error:
            raise AssertionError(f"{function}, call {call} of {calls[-1]}: {error}") from error
        return str(end)

    def _counted(self, training: Training, folder: Path) -> dict[str, list[int]]:
        counts = folder / "counts.json"
        ended = self._run(training, folder, counts=str(counts))
        shutil.rmtree(folder / "run")
        assert ended.returncode == 0, ended.stderr
        calls: dict[str, list[int]] = json.loads(counts.read_text())
        return calls

    @staticmethod
    def _run(training: Training, folder: Path, **job: object) -> subprocess.CompletedProcess[str]:
        fault = json.dumps({**job, "site_hook": str(SITE_HOOK)})
        return training.run(folder, START, ROBUSTNESS_FAULT=fault)


def in_order(calls: Iterable[str], first: tuple[str, ...]) -> list[str]:
    """Return the functions that can be tried: these first, the others in an order that their names alone decide.

    Raises:
        AssertionError: one of the first is not called.
    """
    names = {name for name in calls if not name.startswith(NOT_TRIED)}
    assert names.issuperset(first), f"not called: {sorted({*first} - names)}"
    return [*first, *sorted(names.difference(first), key=lambda name: hashlib.sha1(name.encode()).digest())]


def part(
    name: str,
    title: str,
    training: Training,
    first: tuple[str, ...],
    cases: int,
    beyond: Training | None = None,
    sample: int | None = None,
) -> Part:
    """Return the part of one training.

    Args:
        name: under which this module has it.
        title: of its section.
        training: the training.
        first: the functions that are tried first, which are the sample.
        cases: how many there are.
        beyond: the functions that this training calls are not tried, but for the first.
        sample: of how many functions the sample is, instead.
    """
    faults = Faults(training, first, cases, beyond)
    which = "Every function that the training reaches is tried, in its first call and then in any other. "
    if beyond is not None:
        which = which.replace(" is tried", ", and the training with XGBoost does not, is tried")
    told = (
        f"`tests/subjects/{training.script}`{training.manner} is trained while one call of one function of the agent's "
        f"raises an error. {which}"
        "What the program itself calls is left out: before its first statement nothing of the agent's has begun. "
        "So is what every failure is caught by."
    )
    size = len(first) if sample is None else sample
    return Part("faults", title, told, cases, faults.prepare, faults.attempt, 120, None, name, size)


TITLE = "Failures inside of the agent"
WITH_PYTORCH = part("WITH_PYTORCH", f"{TITLE} with PyTorch", PYTORCH, PYTORCH_FIRST, 2000)
WITH_KERAS = part("WITH_KERAS", f"{TITLE} with Keras", KERAS, KERAS_FIRST, 1700)
WITH_GLUON = part("WITH_GLUON", f"{TITLE} with Gluon", GLUON, GLUON_FIRST, 1700)
WITH_XGBOOST = part("WITH_XGBOOST", f"{TITLE} with XGBoost", XGBOOST_JOB, XGBOOST_FIRST, 1500)
WITH_RESTART = part("WITH_RESTART", f"{TITLE} in a restart", XGBOOST_AGAIN, RESTART_FIRST, 100, XGBOOST_JOB, 4)
WITH_STORE = part("WITH_STORE", f"{TITLE} with a store", XGBOOST_STORED, STORE_FIRST, 100, XGBOOST_BESIDE)
