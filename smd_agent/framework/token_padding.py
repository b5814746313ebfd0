"""Padding at the ends of rows of tokens or numbers, in NumPy; of PyTorch's see ``pytorch.capture.token_padding``.

A row is padded if it ends in two or more of one token that is nowhere else in it, but perhaps at its beginning. Where a
row is longer than what is looked at, and all of that is one token, nothing is known of it.

Steps of numbers are taken for padding under stricter terms, see ``of_steps``.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

ROWS, PLACES = 64, 256
"""Rows, and places at their ends, that are looked at."""


def padding(tokens: npt.NDArray[Any]) -> dict[str, Any]:
    """The facts of padding at the ends of rows.

    Args:
        tokens: integers of shape (rows, places), neither of which is 0.
    """
    is_last = tokens == tokens[:, -1:]
    # Of each row the ones at its end, whose number is how long that is.
    at_end = _at_end(is_last)
    length = at_end.sum(1)
    elsewhere = (is_last & ~at_end)[:, 1:].any(1)
    padded = (length > 1) & (length < tokens.shape[1]) & ~elsewhere
    by_one = np.unique(tokens[padded, -1]).size == 1
    places = length[padded].mean() if padded.any() else 0.0
    return {"rows": len(tokens), "padded_rows": padded.sum() if by_one else 0, "padding": places}


def of_steps(values: npt.NDArray[Any]) -> dict[str, Any]:
    """The facts of steps of padding at the ends of rows of numbers.

    Padding is one step, such as of zeros, that rows end in, two or more times, and not all rows equally often. If it is
    anywhere else in a row, but at its beginning, it may be a step like others, and no row counts as padded.

    Args:
        values: of shape (rows, places, channels), none of which is 0.
    """
    places = values.shape[1]
    lengths = _at_end(_same(values, values[:, -1:])).sum(1)
    # A row that is the same step all over may be shorter than any, or an input that does not change.
    row = np.where(lengths < places, lengths, 0).argmax()
    is_it = _same(values, values[row, -1])
    at_end = _at_end(is_it)
    lengths = at_end.sum(1)
    is_known = lengths < places
    is_padding = np.unique(lengths[is_known]).size > 1 and not (is_it & ~at_end)[:, 1:].any()
    padded = (lengths > 1) & is_known & is_padding
    mean = lengths[padded].mean() if padded.any() else 0.0
    return {"rows": len(values), "padded_rows": padded.sum(), "padding": mean, "steps": places}


def _same(values: npt.NDArray[Any], step: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
    found: npt.NDArray[np.bool_] = (values == step).all(2)
    return found


def _at_end(found: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
    """The places of each row from which on all are found."""
    return np.logical_and.accumulate(found[:, ::-1], axis=1)[:, ::-1]
