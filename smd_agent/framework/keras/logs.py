"""Base of the hooks that save what Keras logs for its callbacks, with the collections of Keras."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from smd_agent.core.collection_keys import CollectionKeys
from smd_agent.framework.hook import FrameworkHook
from smd_agent.framework.keras.types import Model

# The collections that there are from the start: "weights/<variable>:0" of tapes,
# "<layer>/weights/<variable>:0" of fit. The gradients of a v1 graph lie in a scope that is called "gradients" too,
# together with everything that leads to them.
BUILT_IN: Mapping[str, tuple[str, ...]] = {
    CollectionKeys.ALL: (),
    CollectionKeys.DEFAULT: (),
    CollectionKeys.WEIGHTS: ("(^|/)weights/((?!bias).)*$",),
    CollectionKeys.BIASES: ("(^|/)weights/.*bias",),
    CollectionKeys.GRADIENTS: ("^gradients/.*Grad(_[0-9]+)?$",),
    CollectionKeys.LOSSES: ("^(val_|batch_)?loss(_[0-9]+)?$",),
    CollectionKeys.METRICS: (),
    CollectionKeys.INPUTS: ("^inputs(_[0-9]+)?$",),
    CollectionKeys.OUTPUTS: ("^(labels|predictions)(_[0-9]+)?$",),
    CollectionKeys.LAYERS: ("/(inputs|outputs)(_[0-9]+)?$",),
    CollectionKeys.SM_METRICS: (),
    CollectionKeys.OPTIMIZER_VARIABLES: (),
}

# Saved whatever else is asked for; only end_step 0 takes them out.
DEFAULT_SAVED = (CollectionKeys.METRICS, CollectionKeys.LOSSES, CollectionKeys.SM_METRICS)


class KerasLogs(FrameworkHook):
    """Saves losses and metrics as Keras logs them; has the collections and names of Keras and TensorFlow."""

    built_in = BUILT_IN
    default_saved = DEFAULT_SAVED

    def set_up(self) -> None:
        """The reductions of a tensor are stored under its name without the output's number."""
        super().set_up()
        self.selection.other_names = _without_number

    def model_runs(self, model: Model) -> None:
        """The step that begins now is one of this model's."""

    def save_logs(self, logs: Mapping[str, Any], is_tensor: Callable[[Any], bool]) -> None:
        """Save the logs of a step in it."""
        pairs = list(_flat(logs, is_tensor))
        for name, _ in pairs:
            self.place_log(name)
        self.recorder.save_tensors([name for name, _ in pairs], [value for _, value in pairs])

    def save_epoch(self, logs: Mapping[str, Any]) -> None:
        """Save what an epoch's validation gave, in the current step, whatever that saves otherwise."""
        for name, value in logs.items():
            self.place_log(name)
            collection = CollectionKeys.LOSSES if name.endswith("loss") else CollectionKeys.METRICS
            captured = self.to_array(value)
            if captured is not None and captured[0].size and self._is_within(collection):
                self.recorder.save_number(name, captured[0].reshape(-1).copy(), None)

    def _is_within(self, collection: str) -> bool:
        """Whether the current step is not outside of those between which a collection is saved."""
        if collection not in self.include_collections:
            return False
        config = (self.get_collection(collection).save_config or self.save_config).get_save_config(self.mode)
        step = self.position.clock.step
        return step >= config.start_step and (config.end_step is None or step < config.end_step)

    def place_log(self, name: str) -> None:
        """Put a value of Keras's logs where it belongs."""
        if name in ("loss", "val_loss"):
            return
        self.selection.place(CollectionKeys.METRICS, name)
        if name.endswith("_loss"):
            self.selection.place(CollectionKeys.LOSSES, name)


def _without_number(tensor_name: str) -> Iterator[str]:
    name, colon, _ = tensor_name.rpartition(":")
    if colon:
        yield name


def _flat(logs: Mapping[str, Any], is_tensor: Callable[[Any], bool]) -> Iterator[tuple[str, Any]]:
    """Names and values of logs, those of outputs inside among them."""
    for name, value in logs.items():
        if isinstance(value, Mapping):
            yield from _flat(value, is_tensor)
        elif is_tensor(value) or isinstance(value, (int, float)):
            yield str(name), value
