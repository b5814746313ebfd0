"""Base of the hooks that save what Keras logs for its callbacks, whatever Keras computes with."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from smd_agent.core.collection_keys import KERAS_COLLECTIONS, KERAS_DEFAULT_SAVED, CollectionKeys
from smd_agent.framework.hook import FrameworkHook
from smd_agent.framework.keras.types import Model


class KerasLogs(FrameworkHook):
    """Saves losses and metrics as Keras logs them; has the collections and names of Keras and TensorFlow."""

    built_in = KERAS_COLLECTIONS
    default_saved = KERAS_DEFAULT_SAVED

    def model_runs(self, model: Model) -> None:
        """The step that begins now is one of this model's."""

    def place(self, collection: str, tensor_name: str) -> None:
        """Make a tensor a member of a collection, and its reductions too."""
        super().place(collection, tensor_name)
        # They are stored under the name without the output's number.
        name, colon, _ = tensor_name.rpartition(":")
        if colon:
            self.get_collection(collection).add_tensor_name(name)

    def save_logs(self, logs: Mapping[str, Any], is_tensor: Callable[[Any], bool]) -> None:
        """Save the logs of a step in it."""
        pairs = list(_flat(logs, is_tensor))
        for name, _ in pairs:
            self.place_log(name)
        self.save_tensors([name for name, _ in pairs], [value for _, value in pairs])

    def save_epoch(self, logs: Mapping[str, Any]) -> None:
        """Save what an epoch's validation gave, in the current step, whatever that saves otherwise."""
        for name, value in logs.items():
            self.place_log(name)
            collection = CollectionKeys.LOSSES if name.endswith("loss") else CollectionKeys.METRICS
            captured = self.to_array(value)
            if captured is not None and captured[0].size and self._is_within(collection):
                self._write_scalar(name, captured[0].reshape(-1).copy(), None)

    def _is_within(self, collection: str) -> bool:
        """Whether the current step is not outside of those between which a collection is saved."""
        if collection not in self.include_collections:
            return False
        config = (self.get_collection(collection).save_config or self.save_config).get_save_config(self.mode)
        step = self.pulse.clock.step
        return step >= config.start_step and (config.end_step is None or step < config.end_step)

    def place_log(self, name: str) -> None:
        """Put a value of Keras's logs where it belongs."""
        if name in ("loss", "val_loss"):
            return
        self.place(CollectionKeys.METRICS, name)
        if name.endswith("_loss"):
            self.place(CollectionKeys.LOSSES, name)


def _flat(logs: Mapping[str, Any], is_tensor: Callable[[Any], bool]) -> Iterator[tuple[str, Any]]:
    """Names and values of logs, those of outputs inside among them."""
    for name, value in logs.items():
        if isinstance(value, Mapping):
            yield from _flat(value, is_tensor)
        elif is_tensor(value) or isinstance(value, (int, float)):
            yield str(name), value
