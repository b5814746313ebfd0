"""The number that logits are multiplied by before their loss, as a temperature or the scale of an angular margin does.

``usage/loss/<function>_<i>/scale``, of losses of classes in training: where the last thing that is done to the logits
is a product with one number, or a division by one, that number, or 1 through it. It is told from the graph of autograd.
"""

from __future__ import annotations

from typing import Any

import torch

from smd_agent.pytorch.capture.graph_behind import saved_by

_PRODUCT, _DIVISION = "MulBackward0", "DivBackward0"
# What leaves each number as it is, puts another one in the place of some, or takes a softmax's logarithm.
_BETWEEN = {
    *("AliasBackward0", "CloneBackward0", "IndexBackward0", "LogSoftmaxBackward0", "MaskedFillBackward0"),
    *("PermuteBackward0", "ReshapeAliasBackward0", "SliceBackward0", "SqueezeBackward0", "SqueezeBackward1"),
    *("ToCopyBackward0", "TransposeBackward0", "UnsafeViewBackward0", "UnsqueezeBackward0", "ViewBackward0"),
}


def facts(values: torch.Tensor) -> dict[str, Any]:
    """The facts of a loss's input by name; none where no number multiplies it."""
    node: Any = values.grad_fn
    while node is not None and node.name() in _BETWEEN:
        node = node.next_functions[0][0]
    if node is None or node.name() not in (_PRODUCT, _DIVISION):
        return {}
    # Of a product either may be the number.
    names = ("other", "self") if node.name() == _PRODUCT else ("other",)
    number = next((one for name in names if (one := _number(saved_by(node, name))) is not None), None)
    if number is None:
        return {}
    return {"scale": number if node.name() == _PRODUCT else 1 / number}


def _number(saved: Any) -> torch.Tensor | None:
    is_one = type(saved) in (torch.Tensor, torch.nn.Parameter) and saved.numel() == 1
    return saved.detach().reshape(()).to(torch.float32) if is_one else None
