"""Calls of Keras's losses on PyTorch: what they are given, and in training what the graph of autograd tells of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch

from smd_agent.framework.keras.loss_inputs import KnownLoss, LossGiven, LossLook, arguments_of
from smd_agent.framework.loss_facts import Array, Numbers, swapped
from smd_agent.framework.plain_access import is_a
from smd_agent.framework.target_reach import Range
from smd_agent.framework.training_facts import LOOKED_AT
from smd_agent.pytorch.arrays import has_memory, to_array
from smd_agent.pytorch.capture import target_reach
from smd_agent.pytorch.capture.loss_inputs import OPAQUE_NODES, SAME_VALUES, behind, softmax_over
from smd_agent.pytorch.own_operations import apart, without_gradients

_ACTIVATIONS = ("SoftmaxBackward0", "SigmoidBackward0")
_LINEAR = ("AddBackward0", "AddmmBackward0", "BmmBackward0", "ConvolutionBackward0", "MmBackward0", "MvBackward0")
_VARIABLE = "torch::autograd::AccumulateGrad"
_TURNED = {*SAME_VALUES, "TBackward0"}


def look_at(
    loss: Any, args: Sequence[Any], kwargs: Mapping[str, Any], result: Any
) -> tuple[KnownLoss, LossLook] | None:
    """The facts of a call of a loss, and how that is set up; None of a loss that is not looked at."""
    found = arguments_of(loss, args, kwargs, torch.Tensor, _range_of)
    if found is None:
        return None
    kind, predictions, labels, returns_mean = found
    given = LossGiven(_array_of(predictions), _array_of(labels), _array_of(result) if returns_mean else None)
    trained = swapped(predictions.requires_grad, is_a(labels, torch.Tensor) and labels.requires_grad)
    return kind, kind.look(kind.told(tuple(predictions.shape), {**_origin(predictions), **trained}), given)


@apart
@without_gradients
def _array_of(value: Any) -> Array | None:
    """The values; of a tensor that is large and on an accelerator, its first rows."""
    if not is_a(value, torch.Tensor):
        return value if type(value) is np.ndarray else None
    if has_memory(value) and not value.is_cpu and value.numel() > LOOKED_AT:
        value = value[: max(8, LOOKED_AT * value.shape[0] // value.numel())]
    found = to_array(value)
    return None if found is None else found[0]


def _made_by(tensor: torch.Tensor) -> Any:
    """The node that has made the values of a tensor; None where there is no graph, or that does not show."""
    node = behind(tensor.grad_fn, SAME_VALUES)
    return None if node is None or node.name() in OPAQUE_NODES else node


def _range_of(tensor: torch.Tensor) -> Range | None:
    return target_reach.range_of(_made_by(tensor))


def _origin(tensor: torch.Tensor) -> Numbers:
    """The facts of what has given a tensor, as far as they show."""
    node = _made_by(tensor)
    if node is None:
        return {}
    if node.name() in _ACTIVATIONS:
        return {"activated": 1.0, "linear": 0.0, **softmax_over(node)}
    return {"activated": 0.0, **_linear(node)}


def _linear(node: Any) -> Numbers:
    if node.name() not in _LINEAR:
        return {"linear": 0.0}
    sources = [behind(source, _TURNED) for source, _ in node.next_functions]
    if any(source is not None and source.name() == _VARIABLE for source in sources):
        return {"linear": 1.0}
    # What has no gradient is a frozen variable, or data.
    return {} if None in sources else {"linear": 0.0}
