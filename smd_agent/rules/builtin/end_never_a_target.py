"""EndNeverATarget: a language model that is never taught where a sequence ends."""

from __future__ import annotations

from smd_agent.framework.training_facts import USAGE
from smd_agent.rules.built_in import Severity, StepView
from smd_agent.rules.parameters import Parameter, whole
from smd_agent.rules.usage import Numbers, UsageInARow

_AXES = (1, 0)


class EndNeverATarget(UsageInARow):
    """A language model that is never taught where a sequence ends.

    Rows of the model's input are padded, the loss ignores the padding, and what comes before it differs from row to
    row. So it is where the token that ends a sequence is that of the padding, and all of these are ignored, or where no
    token ends sequences.
    """

    meaning = "rows of tokens are padded, and no token before the padding ends them"
    rows = Parameter(whole, 4, "padded rows at a step at least")
    kind = "target"
    facts = ("padded_0", "padded_1")
    severity = Severity.WARNING
    evidence = {
        "padded": "how many rows are padded, of those that are looked at",
    }
    cause = (
        "The token that ends a sequence is that of the padding, all of which the loss ignores, or there is none: the"
        " model does not learn to stop"
    )
    advice = (
        "Keep the label of the first padding token of each row, or pad with another token than the one that ends"
        " sequences (tokenizer.pad_token is not tokenizer.eos_token)"
    )
    short = "the end is never a target: {}"

    def look_at(self, step: StepView, of: str, numbers: Numbers) -> None:
        """Look at the targets of one loss."""
        for axis in _AXES:
            rows = numbers.get(f"padded_{axis}", 0.0)
            are_next = numbers.get(f"next_{axis}") == 1
            ignored = not numbers.get(f"padding_counts_{axis}", 1.0) and not numbers.get(f"end_counts_{axis}", 1.0)
            differ = numbers.get(f"same_end_{axis}") == 0
            if self.row(f"{of} {axis}", are_next and ignored and differ and rows >= self.rows) >= self.patience:
                self.found(step, f"{USAGE}{of}/padded_{axis}", {"padded": rows})
