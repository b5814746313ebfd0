"""What losses are given: whether it has been through softmax or sigmoid before, which classes are meant, which shapes.

``usage/loss/<function>_<i>/<fact>``, of the step's first calls of ``cross_entropy_loss``, ``nll_loss`` and
``binary_cross_entropy_with_logits_loss``:

``input_min``, ``input_max``  the smallest and largest value of the input, of the rows that are looked at.
``row_sum_error``             by how much the sum over all classes differs from 1 at most, in those rows.
``activated``                 1 if the input is what softmax or sigmoid has returned, whichever the loss applies itself,
                              else 0; not where the graph does not tell.
``classes``                   how many classes there are.
``labels``                    how many labels are looked at, without those that are ignored.
``label_min``, ``label_max``  the smallest and largest of them; the smallest is above the largest where all are ignored.
``ignored``                   the share of labels that are ignored.

Of ``mse_loss``, ``l1_loss`` and ``smooth_l1_loss``:

``input_repeated``, ``target_repeated``  how often each element comes, as the shapes of the two are not the same.
"""

from __future__ import annotations

import math
from typing import Any

import torch

from smd_agent.core.modes import ModeKeys
from smd_agent.framework.training_facts import LOOKED_AT
from smd_agent.framework.usage import Usage
from smd_agent.pytorch.arrays import has_memory
from smd_agent.pytorch.tracing import graph_task, is_opaque

_OF_CLASSES = {"cross_entropy_loss": 4, "nll_loss": 4}
"""And where ``ignore_index`` stands among the arguments."""
_OF_LOGITS = "binary_cross_entropy_with_logits_loss"

_OF_NUMBERS = ("mse_loss", "l1_loss", "smooth_l1_loss")

# Calls of one function in a step, as the losses of several heads.
_CALLS = 4
_FEWEST_ROWS = 8
_IGNORED = -100
# Of places in an image or a text, in each direction.
_PLACES = 16

_APPLIED = {"cross_entropy_loss": "SoftmaxBackward0", _OF_LOGITS: "SigmoidBackward0"}
SAME_VALUES = {
    *("AliasBackward0", "CloneBackward0", "PermuteBackward0", "ReshapeAliasBackward0", "SqueezeBackward0"),
    *("SqueezeBackward1", "ToCopyBackward0", "TransposeBackward0", "UnsafeViewBackward0", "UnsqueezeBackward0"),
    *("ViewBackward0",),
}
"""What only gives another shape or dtype to values."""

_OPAQUE_NODES = ("CompiledFunctionBackward",)


class LossInputs:
    """The inputs of losses of one step that is saved.

    Args:
        usage: takes the numbers.
    """

    def __init__(self, usage: Usage) -> None:
        self._usage = usage
        self._calls: dict[str, int] = {}

    @torch.no_grad()
    def look_at(self, function: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Save what a call of a functional loss was given."""
        if not self._usage.wanted or function not in (*_OF_CLASSES, _OF_LOGITS, *_OF_NUMBERS):
            return
        values, target = _argument(args, kwargs, 0, "input"), _argument(args, kwargs, 1, "target")
        if not _can_be_read(values) or not _can_be_read(target) or not values.is_floating_point():
            return
        # A loss that is trained is none of an evaluation that comes between.
        if values.requires_grad and self._usage.writer.mode is ModeKeys.EVAL:
            return
        number = self._calls.get(function, 0)
        self._calls[function] = number + 1
        if number >= _CALLS:
            return
        if function in _OF_NUMBERS:
            repeated = {"input_repeated": times_repeated(values), "target_repeated": times_repeated(target)}
            self._usage.save(f"loss/{function}_{number}", repeated)
            return
        applied = _is_activated(values.grad_fn, _APPLIED.get(function))
        numbers: dict[str, Any] = {} if applied is None else {"activated": applied}
        if function == _OF_LOGITS:
            flat = values.detach().reshape(-1)[:LOOKED_AT]
            numbers.update(input_min=flat.amin(), input_max=flat.amax())
        else:
            numbers.update(_rows(values.detach()))
            if not target.is_floating_point():
                place = _OF_CLASSES[function]
                numbers.update(_labels(target, _argument(args, kwargs, place, "ignore_index", _IGNORED)))
        self._usage.save(f"loss/{function}_{number}", numbers)


def _argument(args: tuple[Any, ...], kwargs: dict[str, Any], place: int, name: str, default: Any = None) -> Any:
    return args[place] if len(args) > place else kwargs.get(name, default)


def _can_be_read(tensor: Any) -> bool:
    return isinstance(tensor, torch.Tensor) and graph_task() == -1 and not is_opaque() and has_memory(tensor)


def _is_activated(node: Any, wanted: str | None) -> float | None:
    """Whether a node is the wanted one, behind others that leave values as they are; None if that is not known."""
    while node is not None and node.name() in SAME_VALUES:
        node = node.next_functions[0][0]
    if wanted is None or node is None or node.name() in _OPAQUE_NODES:
        return None
    return float(node.name() == wanted)


def times_repeated(tensor: torch.Tensor) -> float:
    """How often each element of a tensor comes that has been broadcast, which has not copied it."""
    return float(math.prod(size for size, stride in zip(tensor.shape, tensor.stride(), strict=True) if not stride))


def _rows(values: torch.Tensor) -> dict[str, Any]:
    """Facts of values of which the second axis, or the only one, is that of the classes."""
    axis = 1 if values.dim() > 1 else 0
    classes = values.shape[axis]
    for other in range(2, values.dim()):
        size = values.shape[other]
        values = values[(slice(None),) * other + (slice(None, None, -(-size // _PLACES)),)]
    rows = max(_FEWEST_ROWS, LOOKED_AT * values.shape[0] // max(values.numel(), 1))
    part = (values[:rows] if axis else values).to(torch.float32)
    error = (part.sum(axis) - 1).abs().amax()
    return {"input_min": part.amin(), "input_max": part.amax(), "row_sum_error": error, "classes": classes}


def _labels(target: torch.Tensor, ignored: int) -> dict[str, Any]:
    part = target.detach().reshape(-1)[:LOOKED_AT].to(torch.int64)
    kept = part != ignored
    count = kept.sum()
    # Where all are ignored the smallest is above the largest.
    least = part.masked_fill(~kept, torch.iinfo(torch.int32).max).amin()
    most = part.masked_fill(~kept, torch.iinfo(torch.int32).min).amax()
    return {
        "labels": count,
        "label_min": least,
        "label_max": most,
        "ignored": 1 - count / part.shape[0],
    }
