"""AxesByView: a view or reshape in the place of a transpose, which mixes scores of a loss, or heads of attention."""

from __future__ import annotations

from smd_agent.rules.built_in import StepView
from smd_agent.rules.usage import Fault, Numbers, UsageInARow, numbers_of

_ATTENTION = "attention"
_HEADS = (
    "view or reshape makes (batch, length, width) to (batch, heads, length, width / heads), where the axis of the heads"
    " has to be moved: each place of a head has numbers of several places, so that a causal mask hides nothing either"
)
_MOVED = "q.view(batch, length, heads, width // heads).transpose(1, 2), and the same of keys and values"


class AxesByView(UsageInARow):
    """A view or reshape in the place of a transpose, which mixes the scores of a loss, or the heads of an attention.

    A view gives other sizes to the same numbers in the same order. Where the scores of an element lie side by side, as
    of shape (batch, length, classes), and are viewed as (batch, classes, length), the loss takes scores of several
    elements for those of one. It is told from the graph of autograd, and so exact.

    Views that the classes come out of as they went in are right: (batch * length, classes), or the pixels of a
    convolution's output as (batch, classes, height * width).

    Of attention it finds queries of shape (batch, length, heads * size) that a view alone has made (batch, heads,
    length, size): a place of a head then has numbers of several places, and a causal mask does not hide later ones.
    """

    meaning = (
        "the scores of a loss of classes, or the heads of an attention, have got the order of their axes by a view,"
        " which has moved no number"
    )
    kind = "loss"
    facts = ("classes_mixed", "heads_mixed")
    evidence = {"classes": "how many classes there are", "length": "how long the sequence is that attends to itself"}
    cause = (
        "view or reshape stands where the axis of the classes has to be moved: it only cuts the same numbers anew, so"
        " that scores of different elements are mixed"
    )
    advice = (
        "Move the axis: logits.transpose(1, 2), or logits.movedim(-1, 1), for a loss of (batch, classes, ...); of the"
        " output of a convolution out.movedim(1, -1).flatten(0, -2) for one of (elements, classes)"
    )
    short = "axes swapped by a view"

    def take(self, step: StepView) -> None:
        """Look at the losses and the attentions of a step."""
        super().take(step)
        for of, numbers in numbers_of(step, _ATTENTION).items():
            if "heads_mixed" in numbers:
                self._has_any = True
                self.look_at(step, of, numbers)

    def fault(self, of: str, numbers: Numbers) -> Fault | None:
        """Return what is wrong with one loss, or one attention."""
        if "heads_mixed" in numbers:
            return Fault(cause=_HEADS, advice=_MOVED) if numbers["heads_mixed"] == 1 else None
        return Fault() if numbers["classes_mixed"] == 1 else None
