"""Hook with which a script, or the agent on its behalf, saves ``fit``, ``evaluate`` and ``predict``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from smd_agent.core.collection_keys import CollectionKeys
from smd_agent.core.failure_domains import STEPS
from smd_agent.framework.keras.every_step import EveryStep
from smd_agent.framework.keras.plain_access import attribute, variables_in
from smd_agent.framework.keras.types import Model
from smd_agent.framework.weak_references import Reference
from smd_agent.tensorflow.hook import TensorflowHook
from smd_agent.tensorflow.keras_fit.callback_bases import callback_of_each
from smd_agent.tensorflow.keras_fit.legacy_values import INPUTS, PREDICTIONS, legacy_values
from smd_agent.tensorflow.replicas import rank_and_size
from smd_agent.tensorflow.scalar_variables import TensorflowVariables


@STEPS.fence("watching Keras", again=True)
def _watch() -> None:
    # Here, because it needs parts of TensorFlow that are not public.
    from smd_agent.tensorflow.keras_fit.packages import watch_for_script

    watch_for_script()


def _no_model() -> None:
    return None


@callback_of_each
class KerasHook(TensorflowHook):
    """Saves Keras trainings. Passing it in ``callbacks=`` is allowed and changes nothing.

    The mode follows the call: ``fit`` TRAIN, its validation and ``evaluate`` EVAL, ``predict`` PREDICT. ``set_mode`` is
    for the steps of loops with a tape.

    Args: see ``FrameworkHook``.

    Attributes:
        watch_keras: has Keras watched, called for each new hook; None where the agent does so when Keras is imported.
        strategy: the distribution strategy of the model that runs.
    """

    watch_keras: ClassVar[Callable[[], object] | None] = staticmethod(_watch)

    # Keras asks a callback for these and methods of certain names.
    async_safe = True
    _supports_tf_logs = True
    _chief_worker_only = None
    params: Any = None
    strategy: Any = None

    def set_up(self) -> None:
        """Watch Keras, if the agent does not do so already."""
        super().set_up()
        self._model_reference: Callable[[], Any] = _no_model
        self.every_step = EveryStep(self.recorder, TensorflowVariables(), self.wrong_steps)
        self.follow_calls()
        watch = type(self).watch_keras
        if watch is not None:
            watch()

    def model_runs(self, model: Model) -> None:
        """The strategy of the model whose steps follow tells which worker this is."""
        super().model_runs(model)
        self.strategy = attribute(model, "distribute_strategy")

    def worker(self) -> tuple[int, int]:
        """Number of this process among the workers of the strategy that trains, and how many they are."""
        return rank_and_size(self.strategy)

    # What users call.

    @property
    def model(self) -> Any:
        """The model that trains, or that was registered; None if there is none."""
        return self._model_reference()

    @model.setter
    def model(self, model: object) -> None:
        # It is the program's, and we do not keep it.
        self._model_reference = _no_model if model is None else Reference(model)

    def register_model(self, model: Model) -> None:
        """Name the model whose variables ``save_smdebug_logs`` gets gradients of; every model is watched without it."""
        self.model = model

    def record_tensor_value(self, tensor_name: str, tensor_value: Any) -> None:
        """Save a tensor in the collection ``metrics``: ``save_tensor`` by the name that it had before."""
        self.save_tensor(tensor_name, tensor_value, CollectionKeys.METRICS)

    def should_save_layer(self, layer_name: str) -> bool:
        """True if the current step saves what goes into this layer or comes out of it."""
        return any(self.recorder.wants(f"{layer_name}/{kind}") for kind in ("inputs", "outputs"))

    def save_tape_logs(self, model_inputs: Any = None, outputs: Any = None) -> None:
        """Save what a model was given and what it returned, for loops with a tape; see ``save_smdebug_logs``."""
        self.save_smdebug_logs({PREDICTIONS: outputs, INPUTS: model_inputs})

    def save_smdebug_logs(self, logs: Mapping[str, Any] | None) -> None:
        """Save the values that have keys of smdebug's, as they are, each if its step saves its collection.

        They go into the steps that ``save_tensor`` would put them into.

        Args:
            logs: ``smdebug_x``, ``smdebug_y`` and ``smdebug_y_pred`` are saved as ``inputs``, ``labels`` and
                ``predictions``; ``smdebug_gradients`` as ``gradients/<variable>Grad``, ``smdebug_layer_outputs`` as
                ``<layer>/inputs`` and ``<layer>/outputs``; see ``legacy_values``. Other keys are passed over.
        """
        for collection, name, value in legacy_values(logs or {}, variables_in(self.model, "trainable_variables")):
            self.selection.place(collection, name)
            self.recorder.save_given(name, value)

    # What Keras calls.

    def set_params(self, params: object) -> None:
        """Keep what Keras says of the call, for classes made from this one."""
        self.params = params

    def set_model(self, model: object) -> None:
        """Keep the model, for classes made from this one; every model is watched without it."""
        self.model = model

    def _implements_train_batch_hooks(self) -> bool:
        return False

    _implements_test_batch_hooks = _implements_predict_batch_hooks = _implements_train_batch_hooks


def _nothing(self: KerasHook, *args: object, **kwargs: object) -> None:
    """Called by Keras; what it tells is known already."""


for _what in ("train", "test", "predict", "epoch", "batch", "train_batch", "test_batch", "predict_batch"):
    for _when in ("begin", "end"):
        setattr(KerasHook, f"on_{_what}_{_when}", _nothing)
