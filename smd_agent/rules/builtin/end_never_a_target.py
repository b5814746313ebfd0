"""EndNeverATarget: a language model that is never taught where a sequence ends."""

from __future__ import annotations

from smd_agent.framework.training_facts import USAGE
from smd_agent.rules.built_in import Severity, StepView
from smd_agent.rules.parameters import Parameter, whole
from smd_agent.rules.usage import Numbers, UsageInARow

_AXES = (1, 0)
# Collators pad to multiples of it.
_MULTIPLE = 8


class EndNeverATarget(UsageInARow):
    """A language model that is never taught where a sequence ends.

    Rows of the model's input are padded, the loss ignores the padding, and what comes before it differs from row to
    row. So it is where the token that ends a sequence is that of the padding, and all of these are ignored, or where no
    token ends sequences.

    Of a model of transformers, what comes before the padding may be the same in all rows, such as a full stop, where
    the token that ends sequences by its configuration is the padding: also the longest row ends in it, which is not
    padded. Where all batches have one length, that is a note: rows with an end of their own may be padded by one.
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

    def start(self) -> None:
        """Begin with nothing seen."""
        super().start()
        # Those at which rows have ended in the padding themselves.
        self._lengths: dict[str, set[float]] = {}

    def look_at(self, step: StepView, of: str, numbers: Numbers) -> None:
        """Look at the targets of one loss."""
        for axis in _AXES:
            rows = numbers.get(f"padded_{axis}", 0.0)
            are_next = numbers.get(f"next_{axis}") == 1
            ignored = not numbers.get(f"padding_counts_{axis}", 1.0) and not numbers.get(f"end_counts_{axis}", 1.0)
            differs = numbers.get(f"same_end_{axis}") == 0
            is_taught_none = are_next and ignored and rows >= self.rows
            length, ends = numbers.get(f"length_{axis}", 0.0), numbers.get(f"padding_ends_{axis}") == 1
            has_other = self.row(f"{of} {axis}", is_taught_none and differs) >= self.patience
            has_own = self._has_own_end(f"{of} {axis}", is_taught_none and ends, length)
            if has_other or has_own:
                is_sure = has_other or len(self._lengths[f"{of} {axis}"]) > 1
                severity = None if is_sure else Severity.NOTE
                self.found(step, f"{USAGE}{of}/padded_{axis}", {"padded": rows}, severity=severity)

    def _has_own_end(self, what: str, ends: bool, length: float) -> bool:
        """Tell whether rows that end in the padding themselves have been seen often enough."""
        if ends and length % _MULTIPLE == 0:
            # Perhaps the batch was padded to such a length, by one element.
            return False
        lengths = self._lengths.setdefault(what, set())
        lengths.add(length)
        if not ends:
            lengths.clear()
        return self.row(f"{what} own", ends) >= self.patience
