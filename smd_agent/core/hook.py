"""The half of every hook that knows no framework: the calls users make."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy.typing as npt

from smd_agent.core.collection import Collection
from smd_agent.core.collection_keys import CollectionKeys
from smd_agent.core.modes import ModeKeys
from smd_agent.core.names import SCALAR_PREFIX
from smd_agent.core.recorder import Recorder
from smd_agent.core.turns import in_turn
from smd_agent.core.values import write_raw
from smd_agent.errors import SMDebugTypeError, SMDebugValueError


class BaseHook(Recorder):
    """What every framework's hook offers the user."""

    def set_mode(self, mode: ModeKeys) -> None:
        """Count the steps that follow in this mode.

        Raises:
            SMDebugValueError: it is not a mode.
        """
        if not isinstance(mode, ModeKeys):
            raise SMDebugValueError(f"Invalid mode {mode}. Valid modes are TRAIN,EVAL,PREDICT,GLOBAL.")
        self.use_clock(self.clocks[mode])

    def get_collection(self, name: str, create: bool = True) -> Collection:
        """The collection of this name, made now if it is missing.

        Raises:
            SMDebugError: it is missing and ``create`` is False.
        """
        return self.collection_manager.get(name, create)

    def get_collections(self) -> dict[str, Collection]:
        """All collections by name."""
        return self.collection_manager.get_collections()

    @in_turn
    def add_collection(self, collection: Collection) -> None:
        """Add a collection; one of the same name is replaced.

        Raises:
            SMDebugTypeError: it is no Collection.
        """
        if not isinstance(collection, Collection):
            raise SMDebugTypeError(f"{collection!r} must be of type Collection")
        self.collection_manager.add(collection)
        self.replan()

    def save_scalar(self, name: str, value: Any, sm_metric: bool = False, timestamp: float | None = None) -> None:
        """Save a number as ``scalar/<name>`` in the current step, whatever the step saves otherwise.

        Args:
            name: the scalar's name.
            value: a number, or an array or tensor of one element; stored with shape (1,).
            sm_metric: accepted for compatibility; there is no metric service to send it to.
            timestamp: seconds since the epoch; now, if None.

        Raises:
            SMDebugTypeError: the value is not one number.
        """
        name = f"{SCALAR_PREFIX}{name}"
        captured = self.to_array(value)
        if captured is None or captured[0].size != 1 or captured[0].dtype.kind not in "fiubc":
            raise SMDebugTypeError(f"{name} has non scalar value of type: {type(value)}")
        array = captured[0].reshape(1).copy()
        if self.step < 0:
            self._early_scalars.append((name, array, timestamp))
        else:
            self._write_scalar(name, array, timestamp)

    def save_tensor(
        self, tensor_name: str, tensor_value: Any, collections_to_write: str | Sequence[str] = CollectionKeys.DEFAULT
    ) -> None:
        """Save a value as it is in the current step, if the step saves one of the collections it is put into.

        Args:
            tensor_name: the name it is stored under.
            tensor_value: anything that converts to an array.
            collections_to_write: names of collections that get the tensor; missing ones are made, and are saved.
        """
        self._join_collections(tensor_name, collections_to_write)
        self._save_custom(tensor_name, tensor_value)

    def close(self) -> None:
        """Finish the run: the last step, the collections file and the end mark are on disk afterwards."""
        self.finish(end_marker=True)

    # How it is done.

    @in_turn
    def _join_collections(self, tensor_name: str, collections_to_write: str | Sequence[str]) -> None:
        names = [collections_to_write] if isinstance(collections_to_write, str) else list(collections_to_write)
        for name in names:
            self.collection_manager.get(name).add_tensor_name(tensor_name)
        if any(name not in self._included for name in names):
            self._included.update(dict.fromkeys(names))
            self.replan()

    @in_turn
    def _write_scalar(self, name: str, array: npt.NDArray[Any], timestamp: float | None) -> None:
        if self._off:
            return
        self._prepared()
        if self._begin_writing() and not self._sink.dry_run:
            self._step_file().add(name, array, wall_time=timestamp)

    @in_turn
    def _save_custom(self, name: str, value: Any) -> None:
        plan = self._prepared()
        plan.forget(name)
        if not self.pulse.saving:
            return
        self._due |= plan.due(self.pulse.clock.mode, self.pulse.clock.step)
        how = plan.how(name, self._due)
        found = None if how is None else self._capture(name, value)
        if found is not None:
            write_raw(self._step_file(), name, found)
