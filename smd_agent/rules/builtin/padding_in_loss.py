"""PaddingInLoss: a model of sequences whose loss counts the padding of its rows."""

from __future__ import annotations

from smd_agent.framework.training_facts import USAGE
from smd_agent.rules.built_in import Severity, StepView
from smd_agent.rules.parameters import Parameter, whole
from smd_agent.rules.usage import Numbers, UsageInARow

_AXES = (1, 0)
_OF_CLASSES = (
    "The loss counts the labels that stand at the padding: the model learns that class of it, and the mean over all"
    " hides the others"
)


class PaddingInLoss(UsageInARow):
    """A model of sequences whose loss counts the padding of its rows.

    Rows of the model's input end in a token that is nowhere else in them, and the loss has a target for each token, for
    those of the padding too: the next token, or its class. Where the loss is told weights of classes, or gives one
    number for each target, which the program may leave out, nothing is said.
    """

    meaning = "rows of tokens are padded, and the loss counts the padding as targets"
    padding = Parameter(whole, 8, "elements of padding that are targets at a step at least")
    rows = Parameter(whole, 2, "padded rows at a step at least")
    kind = "target"
    facts = ("padded_0", "padded_1")
    severity = Severity.WARNING
    evidence = {
        "padded": "how many rows are padded, of those that are looked at",
        "padding": "how many targets are padding that follows on padding, all of which count",
    }
    cause = "The loss counts the padding: its mean falls as the model learns to predict that, which hides the rest"
    advice = "Give padding the label that the loss ignores, -100 in PyTorch, or its token as ignore_index"
    short = "padding counts in the loss: {}"

    def look_at(self, step: StepView, of: str, numbers: Numbers) -> None:
        """Look at the targets of one loss."""
        for axis in _AXES:
            rows, padding = (numbers.get(f"{name}_{axis}", 0.0) for name in ("padded", "padding"))
            counts = numbers.get(f"padding_counts_{axis}") == 1
            is_padded = rows >= self.rows and padding >= self.padding
            if self.row(f"{of} {axis}", counts and is_padded) >= self.patience:
                cause = "" if numbers.get(f"next_{axis}") == 1 else _OF_CLASSES
                self.found(step, f"{USAGE}{of}/padded_{axis}", {"padded": rows, "padding": padding}, cause=cause)
