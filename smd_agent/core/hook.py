"""Base of every hook, which knows no framework: the calls that users make."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from smd_agent.core.clock import ModeClock, RunPosition
from smd_agent.core.collection import Collection
from smd_agent.core.collection_keys import CollectionKeys
from smd_agent.core.collection_manager import CollectionManager
from smd_agent.core.early_steps import EarlySteps
from smd_agent.core.manual_values import parts_of
from smd_agent.core.modes import ModeKeys
from smd_agent.core.names import SCALAR_PREFIX
from smd_agent.core.ports import RunSink
from smd_agent.core.recorder import Recorder
from smd_agent.core.reduction_config import ReductionConfig
from smd_agent.core.run_output import RunOutput, worker_name
from smd_agent.core.save_config import SaveConfig
from smd_agent.core.selection import Selection
from smd_agent.core.value_writing import Captured
from smd_agent.errors import SMDebugTypeError, SMDebugValueError


class BaseHook:
    """A hook of no framework: saves what it is given, step by step.

    Args:
        sink: where the values go.
        selection: what is saved.
        include_workers: ``"one"`` lets only worker 0 write, ``"all"`` every worker.
        position: makes what counts the steps.

    Attributes:
        recorder: takes the steps and their values.
        selection: the same.
        position: where the run stands.
        framework: the name by which its capture is switched off; empty for the folder of this package it is made in.
    """

    framework: ClassVar[str] = ""

    def __init__(
        self,
        sink: RunSink,
        selection: Selection,
        include_workers: str = "one",
        position: Callable[[ModeClock], RunPosition] = RunPosition,
    ) -> None:
        self.selection = selection
        self._output = RunOutput(sink, selection, include_workers, self.worker, self.environment)
        self.recorder = Recorder(selection, self._output, self.to_array, position)
        self.position = self.recorder.position

    @property
    def lock(self) -> threading.RLock:
        """Held by the thread that changes what the hook saves."""
        return self.selection.lock

    @property
    def out_dir(self) -> str:
        """The run's folder."""
        return self._output.sink.location

    @property
    def local_dir(self) -> str | None:
        """The folder on this machine that has all of the run; None where it is in a store alone."""
        return self._output.sink.folder

    @property
    def include_workers(self) -> str:
        """``"one"`` or ``"all"``."""
        return self._output.include_workers

    @property
    def collection_manager(self) -> CollectionManager:
        """All collections of the run."""
        return self.selection.manager

    @property
    def include_collections(self) -> list[str]:
        """Names of the collections that are saved."""
        return self.selection.names

    @property
    def save_config(self) -> SaveConfig:
        """The step rules of collections that have none of their own."""
        return self.selection.save_config

    @property
    def reduction_config(self) -> ReductionConfig | None:
        """Reductions for collections that have none of their own."""
        return self.selection.reduction_config

    @property
    def dry_run(self) -> bool:
        """True if everything is decided but no step is written."""
        return self._output.sink.dry_run

    @property
    def last_saved_step(self) -> int | None:
        """The last step, over all modes, of which something is saved; None if there is none."""
        step = self.recorder.step_saved
        return step if step >= 0 else None

    @property
    def step(self) -> int:
        """Number of the current step over all modes, -1 before the first."""
        return self.position.step

    @property
    def mode(self) -> ModeKeys:
        """The mode of the current step."""
        return self.position.clock.mode

    @property
    def mode_steps(self) -> dict[ModeKeys, int]:
        """The current step of every mode that has begun; GLOBAL counts the steps of all."""
        begun = {mode: clock.step for mode, clock in self.recorder.clocks.items() if clock.step >= 0}
        return {**begun, ModeKeys.GLOBAL: self.step}

    @property
    def writing(self) -> bool:
        """True if this process has begun to write the run."""
        return self._output.sink.started

    @property
    def ended_worker(self) -> str:
        """The worker as which this process has written the run and ended it; empty otherwise."""
        return self._output.ended_worker

    def set_mode(self, mode: ModeKeys) -> None:
        """Count the steps that follow in this mode.

        Raises:
            SMDebugValueError: it is not a mode.
        """
        if not isinstance(mode, ModeKeys):
            raise SMDebugValueError(f"Invalid mode {mode}. Valid modes are TRAIN,EVAL,PREDICT,GLOBAL.")
        self.recorder.use_clock(self.recorder.clocks[mode])

    def save_early(self, early: EarlySteps) -> None:
        """Save these steps beside those that the collections say."""
        early.is_shared = lambda: self._output.is_shared
        self.selection.manager.early = early

    def training_begins_anew(self, has_begun: bool = False) -> None:
        """Save early steps from the next step on: a model that is new is about to be trained.

        Args:
            has_begun: whether the current step is the first one of that training.
        """
        early = self.selection.manager.early
        if early is not None:
            early.begin_anew({mode: clock.step + (not has_begun) for mode, clock in self.recorder.clocks.items()})
            for clock in self.recorder.clocks.values():
                clock.due = 0

    def keep_apart(self, apart: bool = True) -> None:
        """Write a run of its own whatever other workers there are; to be called before the first step."""
        self._output.keep_apart(apart)

    def get_collection(self, name: str, create: bool = True) -> Collection:
        """The collection of this name, made now if it is missing.

        Raises:
            SMDebugError: it is missing and ``create`` is False.
        """
        return self.collection_manager.get(name, create)

    def get_collections(self) -> dict[str, Collection]:
        """All collections by name."""
        return self.collection_manager.get_collections()

    def add_collection(self, collection: Collection) -> None:
        """Add a collection; one of the same name is replaced.

        Raises:
            SMDebugTypeError: it is no Collection.
        """
        if not isinstance(collection, Collection):
            raise SMDebugTypeError(f"{collection!r} must be of type Collection")
        self.collection_manager.add(collection)
        self.selection.changed()

    def save_scalar(self, name: str, value: Any, sm_metric: bool = False, timestamp: float | None = None) -> None:
        """Save a number as ``scalar/<name>`` in its step, see ``save_tensor``, whatever that saves otherwise.

        Args:
            name: the scalar's name.
            value: a number, or an array or tensor of one element; stored with shape (1,).
            sm_metric: make it one of the metrics of a SageMaker job, see ``storage.metrics_file``; elsewhere that
                changes nothing.
            timestamp: seconds since the epoch; now, if None.

        Raises:
            SMDebugTypeError: the value is not one number.
        """
        name = f"{SCALAR_PREFIX}{name}"
        captured = self.to_array(value)
        if captured is None or captured[0].size != 1 or captured[0].dtype.kind not in "fiubc":
            raise SMDebugTypeError(f"{name} has non scalar value of type: {type(value)}")
        if sm_metric:
            self.selection.metric_names.add(name)
        else:
            self.selection.metric_names.discard(name)
        self.recorder.save_number(name, captured[0].reshape(1).copy(), timestamp)

    def save_tensor(
        self, tensor_name: str, tensor_value: Any, collections_to_write: str | Sequence[str] = CollectionKeys.DEFAULT
    ) -> None:
        """Save a value as it is, if the step in which it is given saves one of the collections it is put into.

        Given before the first step, it belongs to that, and later values of the name to the next step if the current
        one has ended. A value that waits when the run ends goes into the last step.

        Args:
            tensor_name: the name it is stored under.
            tensor_value: anything that converts to an array. The tensors of a list are stored as ``<tensor_name>_0``,
                ``<tensor_name>_1`` and so on, without those that are None.
            collections_to_write: names of collections that get the tensor; missing ones are made, and are saved. No
                other one is switched on: where none is saved, the tensor is saved with ``default``.
        """
        names = [collections_to_write] if isinstance(collections_to_write, str) else list(collections_to_write)
        for name, value in parts_of(tensor_name, tensor_value):
            self.selection.join(name, names)
            self.recorder.save_given(name, value)

    def should_save_tensor_or_collection(self, tensor_name: str, collection_name: str) -> bool:
        """True if the current step saves a tensor of this name, or whatever is in a collection that has no regexes.

        Args:
            tensor_name: a tensor's name; with the collection ``gradients``, that of the variable.
            collection_name: the collection that it may be in. Where the step saves that, its regexes decide, and
                elsewhere all collections of the step.
        """
        name = tensor_name
        if collection_name == CollectionKeys.GRADIENTS:
            name = f"gradients/{tensor_name.partition(':')[0]}Grad"
        if collection_name in self.recorder.collections_due():
            collection = self.get_collection(collection_name)
            return not collection.include_regex or collection.matches(name)
        return self.recorder.wants(name)

    def close(self) -> None:
        """Finish the run: the last step, the collections file and the end mark are on disk afterwards."""
        self.finish(end_marker=True)

    # What smdebug's exit called; programs and tests do, too.
    _cleanup = close

    def _get_worker_name(self) -> str:
        # Tests of the old library, and those written after them, ask for it.
        return worker_name(self.worker()[0])

    def flush(self) -> None:
        """Hand the current step to the disk and wait until it is there; the run goes on.

        Of what follows, only values that are given before the next step come to it.
        """
        self.recorder.flush()

    def publish_ended(self) -> None:
        """Have readers find all steps that have ended; the run goes on."""
        self.recorder.publish_ended()

    # What the session calls.

    def finish(self, end_marker: bool) -> None:
        """Put everything on disk and, if asked to, mark the run as ended. Repeating it is harmless."""
        self.recorder.finish(end_marker)

    def clear_away(self) -> None:
        """Remove what a run that is in a store has needed here; called after all else."""
        self._output.sink.clear_away()

    def note_failures(self) -> None:
        """Have what has failed of the agent's noted in the run."""
        self._output.note_failures()

    def begin_anew(self) -> None:
        """Go on as a run of its own, in a process that a fork has made; the step that was open is its parent's."""
        self.recorder.begin_anew()

    def disable(self) -> None:
        """Save nothing more. What has been handed to the disk stays; the current step is dropped."""
        self.recorder.disable()

    # What frameworks' hooks override.

    def to_array(self, value: Any) -> Captured | None:
        """The value as an array (not copied where that can be avoided) and, if it had to be widened, its dtype's name.

        None: there is no way to see it as an array.
        """
        try:
            array = np.asarray(value)
        except (TypeError, ValueError):
            return None
        return (array, None) if array.dtype.kind in "fiubcUV" else None

    def worker(self) -> tuple[int, int]:
        """This process's rank and the number of workers, as they are known when the first step is saved."""
        return 0, 1

    def environment(self) -> Mapping[str, Mapping[str, str]]:
        """Facts as text, by group and name, of where this process runs, as they are when the first step is saved."""
        return {}
