"""Parameters that are trained: those that an optimizer was given, as long as they can be differentiated."""

from __future__ import annotations

import weakref
from collections.abc import Iterable, Sequence

import torch

_given: dict[int, weakref.ref[torch.Tensor]] = {}


def given_to_optimizer(parameters: Iterable[torch.Tensor]) -> None:
    """An optimizer has these."""
    for parameter in parameters:
        key = id(parameter)
        if not was_given(parameter):
            _given[key] = weakref.ref(parameter, lambda gone, key=key: _forget(key, gone))  # type: ignore[misc]


def are_trained(parameters: Sequence[torch.Tensor]) -> list[bool | None]:
    """True if each parameter of a model is trained; None for all of a model of which none is.

    Optimizers that are not seen, and those that have copies, leave nothing to go by but ``requires_grad``.
    """
    wanted = [parameter.requires_grad for parameter in parameters]
    given = [is_wanted and was_given(parameter) for parameter, is_wanted in zip(parameters, wanted, strict=True)]
    found = given if any(given) else wanted
    return [*found] if any(found) else [None] * len(found)


def was_given(parameter: torch.Tensor) -> bool:
    """True if an optimizer has this parameter."""
    known = _given.get(id(parameter))
    return known is not None and known() is parameter


def _forget(key: int, gone: weakref.ref[torch.Tensor]) -> None:
    if _given.get(key) is gone:
        del _given[key]
