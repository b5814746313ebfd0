"""Padding at the ends of rows of tokens, in NumPy; for tensors of PyTorch see ``pytorch.capture.token_padding``.

A row is padded if it ends in two or more of one token that is nowhere else in it, but perhaps at its beginning. Where a
row is longer than what is looked at, and all of that is one token, nothing is known of it.
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
    at_end = np.logical_and.accumulate(is_last[:, ::-1], axis=1)[:, ::-1]
    length = at_end.sum(1)
    elsewhere = (is_last & ~at_end)[:, 1:].any(1)
    padded = (length > 1) & (length < tokens.shape[1]) & ~elsewhere
    by_one = np.unique(tokens[padded, -1]).size == 1
    places = length[padded].mean() if padded.any() else 0.0
    return {"rows": len(tokens), "padded_rows": padded.sum() if by_one else 0, "padding": places}
