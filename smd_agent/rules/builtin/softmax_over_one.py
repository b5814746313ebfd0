"""SoftmaxOverOne: a softmax over a single number, which is 1 whatever the model has learned."""

from __future__ import annotations

from smd_agent.rules.usage import Expected, Fault, Numbers, UsageInARow, expected_by

_IN_LOSS = "The loss applies softmax over the classes, and there is one: it is 0 whatever the model returns"
_USE_BINARY = (
    "For yes or no of one output take a loss that applies sigmoid, such as BCEWithLogitsLoss or BinaryCrossentropy; or"
    " let the model have an output for each class"
)


class SoftmaxOverOne(UsageInARow):
    """A softmax over a single number, which is 1 whatever the model has learned.

    It is the last layer of the model, or in a loss of classes that is given one class.
    """

    meaning = "the softmax before a loss, or in it, is over a single number, so that nothing can be learned"
    kind = "loss"
    facts = ("softmax_over", "classes")
    evidence = {
        "softmax_over": "over how many numbers the softmax is whose result the loss was given",
        "classes": "how many classes the loss was given",
    }
    cause = "The loss is given what a softmax over a single number has returned: that is always 1"
    advice = "For one output take a sigmoid; a softmax needs an output for each class"
    short = "softmax over a single number"

    def fault(self, of: str, numbers: Numbers) -> Fault | None:
        """Return what is wrong if there is but one number."""
        if numbers.get("softmax_over") == 1:
            return Fault()
        applies = expected_by(of, numbers) in (Expected.LOGITS, Expected.PROBABILITIES)
        return Fault(_IN_LOSS, advice=_USE_BINARY) if applies and numbers.get("classes") == 1 else None
