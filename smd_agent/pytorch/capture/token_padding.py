"""Ends of sequences of tokens: whether rows are padded, and whether the padding and the end before it are targets.

A row is padded if it ends in two or more of one token that is nowhere else in it, but perhaps at its beginning. Where a
row is longer than what is looked at, and all of that is one token, nothing is known of it.

Steps of numbers are taken for padding under stricter terms, see ``of_steps``: they may be 0 for other reasons.
"""

from __future__ import annotations

from typing import Any

import torch

from smd_agent.framework.token_padding import PLACES, ROWS


def ends(tokens: torch.Tensor, targets: torch.Tensor, end: int | None = None) -> dict[str, Any]:
    """The facts of the ends of rows by name, of shape ().

    Args:
        tokens: of shape (rows, places), of which there are three at least.
        targets: of shape (rows, places - 1): at each place the next token, or a negative number where none counts.
        end: the token that ends a sequence, if it is known.
    """
    at_end, padded = _padded(tokens)
    own = {} if end is None else {"padding_ends": _is_end(tokens, at_end, end)}
    count = _by_one_token(tokens, padded)
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
        **own,
    }


def _is_end(tokens: torch.Tensor, at_end: torch.Tensor, end: int) -> torch.Tensor:
    """1 if each row ends in the token of the end, and the longest one in a single one; else 0."""
    fewest = at_end.sum(1).min()
    return ((tokens[:, -1] == end).all() & (fewest == 1)).to(torch.float32)


def padding(tokens: torch.Tensor, fitting: torch.Tensor | None = None) -> dict[str, Any]:
    """The facts of padding at the ends of rows, wherever targets are.

    Args:
        tokens: of shape (rows, places), of which there are three at least.
        fitting: which rows may count as padded; all if it is not given.
    """
    at_end, padded = _padded(tokens)
    padded = padded if fitting is None else padded & fitting
    places = (at_end & padded[:, None]).sum()
    count = _by_one_token(tokens, padded)
    return {"rows": tokens.shape[0], "padded_rows": count, "padding": places / padded.sum().clamp(min=1)}


def reading(tokens: torch.Tensor, read: torch.Tensor, token: int | None) -> dict[str, Any]:
    """The facts of padding at the ends of rows, and whether it is read.

    Args:
        tokens: of shape (rows, places), of which there are three at least.
        read: at which places tokens are read.
        token: that of the padding, if it is known.
    """
    tokens, read = tokens[:ROWS, -PLACES:], read[:ROWS, -PLACES:]
    inside, padded = _inside(tokens, token)
    lengths = inside.sum(1)
    return {
        "rows": tokens.shape[0],
        "padded_rows": _by_one_token(tokens, padded),
        "padding": lengths.sum() / padded.sum().clamp(min=1),
        "span": lengths.max() - lengths.min(),
        "padding_read": (inside & read).any().to(torch.float32),
    }


def hiding(tokens: torch.Tensor, hidden: torch.Tensor, token: int | None) -> dict[str, Any]:
    """The fact whether a mask shows nothing but the padding; none where the rows are longer than what is looked at.

    Args:
        tokens: of shape (rows, places), of which there are three at least.
        hidden: which of them a mask hides.
        token: that of the padding, if it is known.
    """
    if tokens.shape[1] > PLACES:
        return {}
    tokens, hidden = tokens[:ROWS], hidden[:ROWS]
    inside, padded = _inside(tokens, token)
    # In each padded row: hidden is what is no padding.
    is_upside_down = ((hidden != inside) | ~padded[:, None]).all() & (_by_one_token(tokens, padded) > 0)
    return {"padding_alone": is_upside_down.to(torch.float32)}


def _inside(tokens: torch.Tensor, token: int | None) -> tuple[torch.Tensor, torch.Tensor]:
    """The places of the padding, and which rows are padded: by this token, if one is known."""
    at_end, padded = _padded(tokens)
    if token is not None:
        padded = padded & (tokens[:, -1] == token)
    return at_end & padded[:, None], padded


def of_steps(values: torch.Tensor) -> dict[str, Any]:
    """The facts of steps of padding at the ends of rows of numbers.

    Padding is one step, such as of zeros, that rows end in, two or more times, and not all rows equally often. If it is
    anywhere else in a row, but at its beginning, it may be a step like others, and no row counts as padded.

    Args:
        values: of shape (rows, places, channels), none of which is 0.
    """
    values = values[:ROWS, -PLACES:]
    places = values.shape[1]
    lengths = _at_end(_same(values, values[:, -1:])).sum(1)
    # A row that is the same step all over may be shorter than any, or an input that does not change.
    row = lengths.where(lengths < places, 0).argmax()
    is_it = _same(values, values.index_select(0, row[None])[:, -1:])
    at_end = _at_end(is_it)
    lengths = at_end.sum(1)
    is_known = lengths < places
    first, most = _span(lengths, is_known)
    is_padding = (first < most) & ~(is_it & ~at_end)[:, 1:].any()
    padded = (lengths > 1) & is_known & is_padding
    mean = (lengths * padded).sum() / padded.sum().clamp(min=1)
    return {"rows": values.shape[0], "padded_rows": padded.sum(), "padding": mean, "steps": places}


def _same(values: torch.Tensor, step: torch.Tensor) -> torch.Tensor:
    return (values == step).all(2)


def _at_end(found: torch.Tensor) -> torch.Tensor:
    """The places of each row from which on all are found."""
    return found.flip(1).cumprod(1).flip(1).bool()


def _padded(tokens: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """The places of each row that have its last token, from the end on, and which rows are padded."""
    is_last = tokens == tokens[:, -1:]
    # Of each row the ones at its end, whose number is how long that is.
    at_end = _at_end(is_last)
    length = at_end.sum(1)
    elsewhere = (is_last & ~at_end)[:, 1:].any(1)
    return at_end, (length > 1) & (length < tokens.shape[1]) & ~elsewhere


def _by_one_token(tokens: torch.Tensor, padded: torch.Tensor) -> torch.Tensor:
    """The number of rows that are padded, all by the same token; 0 if by several."""
    first, most = _span(tokens[:, -1], padded)
    return padded.sum() * (first == most)


def _span(values: torch.Tensor, kept: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """The smallest and the largest of the values that are kept; any numbers where there is none."""
    values = values.to(torch.int64)
    bounds = torch.iinfo(torch.int64)
    return values.where(kept, bounds.max).min(), values.where(kept, bounds.min).max()
