"""Facts of what a loss is given: how its input looks, and which labels there are.

``expects_logits``        1 if the loss applies softmax or sigmoid itself, 0 if it expects what has been through it.
``expects_logarithms``    1 if it expects logarithms of probabilities, else 0.
``activated``             1 if the input is what softmax or sigmoid has returned, else 0; not where that is not known.
``softmax_over``          over how many numbers the softmax is that has returned it; not where that is not known.
``log_sum_error``         of a loss that expects logarithms: by how much that of the sum of exponentials differs from 0.
``swapped``               1 if what stands in the target's place is trained, and what stands in the prediction's is
                          not; 0 if the prediction is. Of losses for which the two are not alike.
``labels``, ...           see ``label_counts``.
``guess``, ``least``      see ``loss_guesses``.
The others                see ``FACTS``.

Arrays are those of NumPy, or tensors of PyTorch without gradients, whose numbers stay where they are.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from smd_agent.framework.label_counts import LabelCounts
from smd_agent.framework.training_facts import LOOKED_AT

Array = npt.NDArray[Any]
Numbers = dict[str, Any]

FACTS: Mapping[tuple[str, ...], str] = {
    ("input_min", "input_max"): "the smallest and the largest value that the loss was given, of the rows that are"
    " looked at",
    ("row_sum_error",): "by how much the sum of a row, over all classes, differs from 1 at most",
    ("sample_sum_error",): "by how much the sum of a class, over all samples, differs from 1 at most; of a loss that"
    " expects logarithms, the logarithm of the sum of probabilities from 0. Only of what is small enough to be"
    " looked at whole",
    ("classes",): "how many classes there are",
}
"""Those of the input of every loss of classes, by name, with what they are; the documentation has them from here."""

SWAPPED = "swapped"

CALLS = 4
"""Calls of one loss in a step that are looked at, as those of several heads."""

_FEWEST_ROWS = 8
# Of places in an image or a text, in each direction.
_PLACES = 16
_MOST_LABEL = 2.0**63


def rows(values: Any, axis: int = -1, logarithms: bool = False, library: Any = np) -> Numbers:
    """Facts of the input of a loss of classes.

    Args:
        values: floats, of any shape but ``()``.
        axis: that of the classes.
        logarithms: whether they should be logarithms of probabilities.
        library: NumPy or PyTorch.
    """
    values = library.moveaxis(values, axis, -1)
    # What is larger may have been cut short before.
    are_all_samples = math.prod(values.shape) <= LOOKED_AT // 2
    for other in range(1, len(values.shape) - 1):
        step = -(-values.shape[other] // _PLACES)
        values = values[(slice(None),) * other + (slice(None, None, step or 1),)]
    classes = values.shape[-1]
    if len(values.shape) > 1:
        values = values[: max(_FEWEST_ROWS, LOOKED_AT * values.shape[0] // max(math.prod(values.shape), 1))]
    if not math.prod(values.shape):
        return {"classes": classes}
    # Of what overflows the program is to hear no warning.
    with np.errstate(all="ignore"):
        part = library.asarray(values, dtype=library.float32)
        return {"classes": classes, **_of_rows(part, logarithms, are_all_samples, library)}


def _of_rows(part: Any, logarithms: bool, are_all_samples: bool, library: Any) -> Numbers:
    found = {"input_min": part.min(), "input_max": part.max(), "row_sum_error": abs(part.sum(-1) - 1).max()}
    if logarithms:
        found["log_sum_error"] = _log_sum_error(part, -1, library)
    if are_all_samples and len(part.shape) > 1:
        found["sample_sum_error"] = _log_sum_error(part, 0, library) if logarithms else abs(part.sum(0) - 1).max()
    return found


def _log_sum_error(part: Any, axis: int, library: Any) -> Any:
    top = library.amax(part, axis=axis, keepdims=True)
    sums = library.exp(part - top).sum(axis, keepdims=True)
    return abs(library.log(sums) + top).max()


def swapped(is_prediction_trained: bool, is_target_trained: bool) -> dict[str, float]:
    """The fact that tells whether prediction and target are in each other's place; nothing where none is trained."""
    if not is_prediction_trained and not is_target_trained:
        return {}
    return {SWAPPED: float(not is_prediction_trained)}


def ends(values: Any) -> Numbers:
    """Facts of the input of a loss of yes and no: floats of any shape."""
    flat = values.reshape(-1)[:LOOKED_AT]
    return {"input_min": flat.min(), "input_max": flat.max()} if len(flat) else {}


def counted(
    target: Array, kept: Array | None = None, ignored: int | None = None, classes: int | None = None
) -> LabelCounts | None:
    """The labels that are looked at, counted; None where there are none.

    Args:
        target: numbers of classes, integers or floats, of any shape.
        kept: of the same shape, which of them count; None: all.
        ignored: a label that does not count.
        classes: how many there are; None if that is not known.
    """
    flat = target.reshape(-1)[:LOOKED_AT]
    if not flat.size:
        return None
    counts = np.isfinite(flat) if flat.dtype.kind == "f" else np.ones(flat.shape, bool)
    if kept is not None:
        counts = counts & kept.reshape(-1)[:LOOKED_AT]
    if ignored is not None:
        counts = counts & (flat != ignored)
    is_wide = flat.dtype.kind == "f" or flat.dtype == np.uint64
    part = np.floor(flat.astype(np.float64)).clip(-_MOST_LABEL, _MOST_LABEL) if is_wide else flat.astype(np.int64)
    return LabelCounts(part, counts, classes, np)


def columns(target: Any) -> Any:
    """The rows of a target that are looked at, of shape (rows, columns)."""
    rows = target.reshape(target.shape[0], -1) if len(target.shape) > 1 else target.reshape(-1, 1)
    return rows[: max(1, LOOKED_AT // max(rows.shape[1], 1))]


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
