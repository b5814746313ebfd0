"""TargetInInput: a column of what the model is given that is the target itself."""

from __future__ import annotations

from smd_agent.framework.training_facts import USAGE
from smd_agent.rules.built_in import Severity, StepView
from smd_agent.rules.parameters import Parameter, number
from smd_agent.rules.usage import Numbers, UsageInARow


class TargetInInput(UsageInARow):
    """A column of what the model is given that is the target itself.

    The target is compared with each number of a row of the model's input. One that is the same at several steps, but
    for a shift and a factor such as those of a scaler, gives it away: the model has but to copy it.
    """

    meaning = "one column of the model's input is the target, perhaps shifted and scaled"
    error = Parameter(number, 1e-9, "largest share of the target's variance that the column leaves open")
    kind = "target"
    facts = ("copy_error",)
    severity = Severity.WARNING
    evidence = {
        "column": "the number of the column, counted from 0, of the input made flat but for its first axis",
        "columns": "how many columns there are",
    }
    cause = (
        "This column of the input is the target, so that the model has but to copy it: the target was not taken out of"
        " the table, or a window goes on to what is to be predicted"
    )
    advice = "Take the column out of the input, or begin the target after the last element of the window"
    short = "the target is in the input: {}"

    def look_at(self, step: StepView, of: str, numbers: Numbers) -> None:
        """Look at the target of one loss."""
        column = numbers.get("copy_column", -1.0)
        is_copied = numbers.get("copy_error", 1.0) <= self.error
        for known in {*self._columns.get(of, ()), column}:
            is_so = is_copied and known == column
            if self.row(f"{of} {known}", is_so) >= self.patience:
                evidence = {"column": column, "columns": numbers["columns"]}
                self.found(step, f"{USAGE}{of}/copy_error", evidence)
        self._columns.setdefault(of, set()).add(column)

    def start(self) -> None:
        """Begin with nothing seen."""
        super().start()
        self._columns: dict[str, set[float]] = {}
