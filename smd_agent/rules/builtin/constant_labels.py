"""ConstantLabels: batches in which all labels are the same, or are ignored."""

from __future__ import annotations

from smd_agent.core.modes import ModeKeys
from smd_agent.framework.training_facts import USAGE
from smd_agent.rules import parameters
from smd_agent.rules.finding import Severity
from smd_agent.rules.parameters import Parameter
from smd_agent.rules.step_view import StepView
from smd_agent.rules.usage import Numbers, RuleOfUsage

_SORTED = "The data is sorted by class and not shuffled, so that the model learns one class after the other"
_SAME = "All labels seen are the same, as of a column that was mixed up; losses of contrasts have that by design"
_IGNORED = "All labels of the batch have the value that the loss ignores, as where padding or a mask covers everything"


class ConstantLabels(RuleOfUsage):
    """Batches in which all labels are the same, or are ignored.

    Where the label is one in one batch and another in the next, the data is not shuffled. Where it is always the same
    one, that may be meant, as in contrastive losses and in the critic of a GAN, and is a note.
    """

    meaning = "all labels that a loss of classes is given in a batch are the same, at several saved steps in a row"
    parameters = (
        Parameter("patience", parameters.whole, 5, "saved steps in a row"),
        Parameter("batch", parameters.whole, 8, "labels that a batch must have more of"),
    )
    modes = (ModeKeys.TRAIN, ModeKeys.GLOBAL)
    fewest_steps = 5
    kind = "loss"
    facts = ("labels",)
    severity = Severity.WARNING
    evidence = {
        "labels": "how many labels the batch has",
        "classes": "how many classes the loss is given",
        "different_labels": "how many different labels the batches of these steps had, one each",
    }
    cause = _SORTED
    advice = "Shuffle the data (shuffle=True in the DataLoader), and print the labels of a few batches"

    patience: int
    batch: int

    def start(self) -> None:
        """Begin with nothing seen."""
        super().start()
        self._labels: dict[str, set[float]] = {}

    def look_at(self, step: StepView, of: str, numbers: Numbers) -> None:
        """Look at the labels of one loss."""
        count, classes = numbers["labels"], numbers.get("classes", 0.0)
        name = f"{USAGE}{of}/labels"
        if self.row(f"{of} ignored", count == 0) >= self.patience:
            advice = "Check ignore_index, the mask and the length to which texts are cut"
            evidence = {"labels": count, "classes": classes}
            self.found(step, name, evidence, severity=Severity.PROBLEM, cause=_IGNORED, advice=advice)
        is_one = numbers.get("label_min") == numbers.get("label_max") and count > self.batch and classes > 1
        if not is_one:
            self._labels.pop(of, None)
        else:
            self._labels.setdefault(of, set()).add(numbers["label_min"])
        if self.row(of, is_one) >= self.patience:
            different = len(self._labels[of])
            severity, cause = (Severity.WARNING, _SORTED) if different > 1 else (Severity.NOTE, _SAME)
            known = self.finding_of(step, name)
            if known is not None and known.severity is Severity.NOTE and severity is Severity.WARNING:
                self.withdraw(step, name)
            evidence = {"labels": count, "classes": classes, "different_labels": different}
            self.found(step, name, evidence, severity=severity, cause=cause)
