"""What a loss expects to be given: known by its name in PyTorch, and by what was saved of it elsewhere."""

from __future__ import annotations

import enum
from collections.abc import Mapping

_OF_PYTORCH = ("cross_entropy_loss", "binary_cross_entropy_with_logits_loss")


class Expected(enum.Enum):
    """What a loss expects."""

    LOGITS = "logits"
    PROBABILITIES = "probabilities"
    LOGARITHMS = "logarithms of probabilities"


def expected_by(of: str, numbers: Mapping[str, float]) -> Expected | None:
    """Return what a loss expects; None where it is none of probabilities.

    Args:
        of: the loss, such as ``loss/cross_entropy_loss_0``.
        numbers: facts of it by name.
    """
    function = of.partition("/")[2].rpartition("_")[0]
    if function == "nll_loss" or numbers.get("expects_logarithms"):
        return Expected.LOGARITHMS
    if function in _OF_PYTORCH or numbers.get("expects_logits"):
        return Expected.LOGITS
    return Expected.PROBABILITIES if "expects_logits" in numbers else None


def is_of_yes_or_no(of: str) -> bool:
    """Tell whether each number that a loss is given is a class of its own, so that a sigmoid belongs to it."""
    return "binary" in of.lower()
