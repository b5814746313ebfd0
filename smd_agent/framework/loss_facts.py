"""Facts of what a loss is given, computed with NumPy: how its input looks, and which labels there are.

``expects_logits``        1 if the loss applies softmax or sigmoid itself, 0 if it expects what has been through it.
``expects_logarithms``    1 if it expects logarithms of probabilities, else 0.
``activated``             1 if the input is what softmax or sigmoid has returned, else 0; not where that is not known.
``softmax_over``          over how many numbers the softmax is that has returned it; not where that is not known.
``input_min``, ``input_max``  the smallest and largest value of the input, of the rows that are looked at.
``row_sum_error``         by how much the sum over all classes differs from 1 at most, in those rows.
``log_sum_error``         of a loss that expects logarithms: by how much that of the sum of exponentials differs from 0.
``classes``               how many classes there are.
``labels``                how many labels are looked at, without those that are ignored.
``label_min``, ``label_max``  the smallest and largest of them; the smallest is above the largest where all are ignored.
``ignored``               the share of labels that are ignored.

They are those of PyTorch's losses, see ``pytorch.capture.loss_inputs``, which has tensors that stay where they are.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from smd_agent.framework.training_facts import LOOKED_AT

Array = npt.NDArray[Any]
Numbers = dict[str, float]

CALLS = 4
"""Calls of one loss in a step that are looked at, as those of several heads."""

_FEWEST_ROWS = 8
# Of places in an image or a text, in each direction.
_PLACES = 16
_NO_LABEL = np.iinfo(np.int32)


def rows(values: Array, axis: int = -1, logarithms: bool = False) -> Numbers:
    """Facts of the input of a loss of classes.

    Args:
        values: floats, of any shape but ``()``.
        axis: that of the classes.
        logarithms: whether they should be logarithms of probabilities.
    """
    values = np.moveaxis(values, axis, -1)
    for other in range(1, values.ndim - 1):
        step = -(-values.shape[other] // _PLACES)
        values = values[(slice(None),) * other + (slice(None, None, step or 1),)]
    classes = values.shape[-1]
    if values.ndim > 1:
        values = values[: max(_FEWEST_ROWS, LOOKED_AT * values.shape[0] // max(values.size, 1))]
    if not values.size:
        return {"classes": classes}
    # Of what overflows the program is to hear no warning.
    with np.errstate(all="ignore"):
        return {"classes": classes, **_of_rows(values.astype(np.float32, copy=False), logarithms)}


def _of_rows(part: Array, logarithms: bool) -> Numbers:
    found = {"input_min": float(part.min()), "input_max": float(part.max())}
    found["row_sum_error"] = float(abs(part.sum(-1) - 1).max())
    if logarithms:
        top = part.max(-1, keepdims=True)
        found["log_sum_error"] = float(abs(np.log(np.exp(part - top).sum(-1, keepdims=True)) + top).max())
    return found


def ends(values: Array) -> Numbers:
    """Facts of the input of a loss of yes and no: floats of any shape."""
    flat = values.reshape(-1)[:LOOKED_AT]
    return {"input_min": float(flat.min()), "input_max": float(flat.max())} if flat.size else {}


def labels(target: Array, kept: Array | None = None, ignored: int | None = None) -> Numbers:
    """Facts of labels.

    Args:
        target: numbers of classes, integers or floats, of any shape.
        kept: of the same shape, which of them count; None: all.
        ignored: a label that does not count.
    """
    flat = target.reshape(-1)[:LOOKED_AT]
    if not flat.size:
        return {}
    counts = np.isfinite(flat) if flat.dtype.kind == "f" else np.ones(flat.shape, bool)
    if kept is not None:
        counts = counts & kept.reshape(-1)[:LOOKED_AT]
    if ignored is not None:
        counts = counts & (flat != ignored)
    found = flat[counts]
    return {
        "labels": found.size,
        "label_min": float(np.floor(found.min())) if found.size else float(_NO_LABEL.max),
        "label_max": float(np.floor(found.max())) if found.size else float(_NO_LABEL.min),
        "ignored": 1 - found.size / flat.size,
    }


def classes_of_one_hot(target: Array, axis: int = -1) -> Array | None:
    """The classes that rows of one 1 and zeros stand for; None where any of them is another one."""
    if not target.size:
        return None
    rows = np.moveaxis(target, axis, -1)
    rows = rows.reshape(-1, rows.shape[-1])
    rows = rows[: max(_FEWEST_ROWS, LOOKED_AT // rows.shape[-1])]
    if not ((rows == 0) | (rows == 1)).all() or not (rows.sum(-1) == 1).all():
        return None
    found: Array = rows.argmax(-1)
    return found
