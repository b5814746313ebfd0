"""Modes in which Keras's models and layers are called; see ``framework.layer_modes``.

A model of Keras has no mode: each call is told whether it trains, by ``training`` or by the call around it, and so are
the layers inside. A normalisation that cannot be trained never runs in training mode. Layers are those that were called
in a model's call, so that of a compiled step they are seen while it is traced.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from smd_agent.core.failure_domains import MODES
from smd_agent.framework.keras.plain_access import attribute, is_of_keras
from smd_agent.framework.layer_modes import LayerModes as AnyModes
from smd_agent.framework.layer_modes import Modes
from smd_agent.framework.plain_access import bases_of, is_a
from smd_agent.framework.step_events import ModelReturn, on
from smd_agent.framework.weak_references import Reference

_DROPOUTS = ("AlphaDropout", "Dropout")
_RECURRENT = ("GRU", "LSTM", "SimpleRNN")
_NORMALISATIONS = ("BatchNormalization", "BatchNormalizationBase")
_NUMBERS = (bool, int)


class LayerModes(AnyModes, domain=MODES, doing="looking at the modes of layers"):
    """The modes of one step that is saved."""

    @on(ModelReturn)
    def after_model(self, call: ModelReturn) -> None:
        """Save the modes in which a model and its layers were called."""
        self.save(call.title, call.outputs)

    def modes_of(self, model: Modes) -> Modes:
        """Return those that were noted."""
        return model


class CallModes:
    """The modes of a model's layers in a call of it, the first one of a step or of a compiled function.

    Args:
        layer: Keras's class of layers.
    """

    def __init__(self, layer: type) -> None:
        # Keras 3 and 2 keep what the call around it is told in one of these.
        names = vars(sys.modules[layer.__module__])
        self._state = names.get("global_state")
        self._utils = names.get("base_layer_utils")
        self._owner: Callable[[], object] | None = None
        self._is_open = False

    def before(self, layer: Any, model: Any, owner: object) -> None:
        """A layer is about to be called.

        Args:
            layer: it, or the model.
            model: whose step it is.
            owner: the step, or the function that is traced.
        """
        if layer is model:
            self._is_open = self._owner is None or self._owner() is not owner
            self._owner = Reference(owner)
            if self._is_open:
                self._training: bool | None = None
                self._dropping: dict[int, tuple[bool, float]] = {}
                self._normalising: dict[int, bool] = {}
        elif self._is_open and self._training is None:
            self._training = _known(self._around())

    def after(self, layer: Any, model: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Modes | None:
        """A layer has returned; the modes, if it is the model."""
        if not self._is_open:
            return None
        if layer is model:
            self._is_open = False
            if self._training is None:
                return None
            return Modes(self._training, [*self._dropping.values()], [*self._normalising.values()])
        kinds = {kind.__name__ for kind in bases_of(type(layer)) if is_of_keras(kind)}
        share = _dropped(layer, kinds)
        is_normalisation = not kinds.isdisjoint(_NORMALISATIONS)
        if share or is_normalisation:
            training = _known(self._told(layer, args, kwargs))
            if training is not None and share:
                self._dropping.setdefault(id(layer), (training, share))
            elif training is not None:
                self._normalising.setdefault(id(layer), training and bool(attribute(layer, "trainable", True)))
        return None

    def _around(self) -> Any:
        """The mode of the call that goes on."""
        if self._state is not None:
            return attribute(self._state.get_global_attribute("current_call_ctx"), "training")
        return None if self._utils is None else self._utils.call_context().training

    def _told(self, layer: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """The mode in which a layer without others inside has been called."""
        around = self._around()
        spec = attribute(layer, "_call_spec")
        if self._state is not None or spec is None:
            # Keras 3 leaves there what the last call was told.
            return around
        was_told = spec.arg_was_passed("training", args, kwargs, True)
        given = spec.get_arg_value("training", args, kwargs, True) if was_told else None
        return next((value for value in (given, around, spec.default_training_arg) if value is not None), None)


def _known(value: Any) -> bool | None:
    """Training or not; None of a tensor, which only the step knows."""
    return bool(value) if value is None or is_a(value, _NUMBERS) else None


def _dropped(layer: Any, kinds: set[str]) -> float:
    """The share of its input that a layer drops; 0 for one that is no dropout."""
    if not kinds.isdisjoint(_DROPOUTS):
        shares = [attribute(layer, "rate")]
    elif not kinds.isdisjoint(_RECURRENT):
        cell = attribute(layer, "cell")
        shares = [attribute(cell, "dropout"), attribute(cell, "recurrent_dropout")]
    else:
        return 0.0
    return max((float(share) for share in shares if type(share) in (float, int)), default=0.0)
