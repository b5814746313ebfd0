"""Ends of sequences of tokens: whether rows are padded, and whether the padding and the end before it are targets.

A row is padded if it ends in two or more of one token that is nowhere else in it, but perhaps at its beginning. Where a
row is longer than what is looked at, and all of that is one token, nothing is known of it.
"""

from __future__ import annotations

from typing import Any

import torch

ROWS, PLACES = 64, 256
"""Rows, and places at their ends, that are looked at."""


def ends(tokens: torch.Tensor, targets: torch.Tensor) -> dict[str, Any]:
    """The facts of the ends of rows by name, of shape ().

    Args:
        tokens: of shape (rows, places), of which there are three at least.
        targets: of shape (rows, places - 1): at each place the next token, or a negative number where none counts.
    """
    last = tokens[:, -1:]
    is_last = tokens == last
    # Of each row the ones at its end, whose number is how long that is.
    at_end = is_last.flip(1).cumprod(1).flip(1).bool()
    length = at_end.sum(1)
    elsewhere = (is_last & ~at_end)[:, 1:].any(1)
    padded = (length > 1) & (length < tokens.shape[1]) & ~elsewhere
    count = padded.sum()
    first, most = _span(last[:, 0], padded)
    count = count * (first == most)
    counts = targets >= 0
    # At these places the row goes over into its end, and is in it.
    over = at_end[:, 1:] & ~at_end[:, :-1] & padded[:, None]
    inside = at_end[:, :-1] & padded[:, None]
    before = (tokens[:, :-1] * over).sum(1)
    before_first, before_most = _span(before, padded)
    return {
        "padded": count,
        "padding": inside.sum(),
        "padding_counts": (inside & counts).sum() / inside.sum().clamp(min=1),
        "end_counts": (over & counts).sum() / over.sum().clamp(min=1),
        "same_end": (before_first == before_most).to(torch.float32),
    }


def _span(values: torch.Tensor, kept: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """The smallest and the largest of the values that are kept; any numbers where there is none."""
    values = values.to(torch.int64)
    bounds = torch.iinfo(torch.int64)
    return values.where(kept, bounds.max).min(), values.where(kept, bounds.min).max()
