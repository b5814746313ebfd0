"""AxesByView: a view or reshape in the place of a transpose, which mixes the scores that a loss is given."""

from __future__ import annotations

from smd_agent.rules.usage import Fault, Numbers, UsageInARow


class AxesByView(UsageInARow):
    """A view or reshape in the place of a transpose, which mixes the scores that a loss is given.

    A view gives other sizes to the same numbers in the same order. Where the scores of an element lie side by side, as
    of shape (batch, length, classes), and are viewed as (batch, classes, length), the loss takes scores of several
    elements for those of one. It is told from the graph of autograd, and so exact.

    Views that the classes come out of as they went in are right: (batch * length, classes), or the pixels of a
    convolution's output as (batch, classes, height * width).
    """

    meaning = "the scores of a loss of classes have got the order of their axes by a view, which has moved no number"
    kind = "loss"
    facts = ("classes_mixed",)
    evidence = {"classes": "how many classes there are"}
    cause = (
        "view or reshape stands where the axis of the classes has to be moved: it only cuts the same numbers anew, so"
        " that scores of different elements are mixed"
    )
    advice = (
        "Move the axis: logits.transpose(1, 2), or logits.movedim(-1, 1), for a loss of (batch, classes, ...); of the"
        " output of a convolution out.movedim(1, -1).flatten(0, -2) for one of (elements, classes)"
    )
    short = "axes swapped by a view"

    def fault(self, of: str, numbers: Numbers) -> Fault | None:
        """Return what is wrong with one loss."""
        return Fault() if numbers["classes_mixed"] == 1 else None
