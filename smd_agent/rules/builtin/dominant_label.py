"""DominantLabel: labels that are nearly all one and the same."""

from __future__ import annotations

from smd_agent.framework.training_facts import USAGE
from smd_agent.rules.built_in import TRAINING, Place, Severity, StepView
from smd_agent.rules.parameters import Parameter, number, whole
from smd_agent.rules.usage import Numbers, RuleOfUsage

# Of the labels of a row that are the most frequent one, those at its end.
_AT_END = 0.99

_PADDING = "It stands at the ends of rows only, as padding does: most of the loss is about padding"
_IGNORE = "Give the loss the padding as ignore_index, or mask it, and look at the accuracy without it"


class DominantLabel(RuleOfUsage):
    """Labels that are nearly all one and the same.

    Where it stands at the ends of rows only, as padding does, it is a warning. Elsewhere it may be the background of an
    image, or what is usual where something rare is looked for, and is a note.
    """

    meaning = "one label is most of those that a loss of classes counts, over all saved steps"
    padding = Parameter(number, 0.5, "largest share of a label with which rows end")
    share = Parameter(number, 0.95, "largest share of any other label")
    labels = Parameter(whole, 1000, "fewest labels that must have been seen")
    patience = Parameter(whole, 10, "fewest saved steps of such a loss")
    modes = TRAINING
    fewest_steps = 10
    kind = "loss"
    facts = ("top_share",)
    severity = Severity.NOTE
    evidence = {
        "top_share": "the share of the most frequent label, over these steps",
        "top_label": "which label it is",
        "top_at_end": "of those labels, the share with which their row ends",
        "classes": "how many classes the loss is given",
    }
    cause = "One class is far more frequent than all others: a loss without weights hardly tells the others apart"
    advice = "Look at precision and recall of the other classes; weigh them, or draw them more often"

    def start(self) -> None:
        """Begin with nothing seen."""
        super().start()
        self._seen: dict[str, _Labels] = {}

    def look_at(self, step: StepView, of: str, numbers: Numbers) -> None:
        """Count the labels of one loss."""
        known = self._seen.get(of)
        if known is None or known.classes != numbers.get("classes"):
            known = self._seen[of] = _Labels(step.place, numbers.get("classes", 0.0))
        known.add(step.place, numbers)

    def end(self) -> None:
        """Judge the labels of all steps."""
        for of, labels in self._seen.items():
            name = f"{USAGE}{of}/top_share"
            self.withdraw(labels.first, name)
            if labels.steps < self.patience or labels.count < self.labels:
                continue
            top = labels.top
            at_end, share = labels.at_end[top] / labels.tops[top], labels.tops[top] / labels.count
            evidence = {"top_share": share, "top_label": top, "classes": labels.classes}
            if at_end >= _AT_END and share > self.padding:
                evidence["top_at_end"] = at_end
                found = self.found(labels.first, name, evidence, until=labels.last, steps=labels.steps)
                found.severity, found.cause, found.advice = Severity.WARNING, _PADDING, _IGNORE
            elif self.share < share < 1:
                self.found(labels.first, name, evidence, until=labels.last, steps=labels.steps)


class _Labels:
    """The labels of one loss over the steps."""

    def __init__(self, first: Place, classes: float) -> None:
        self.first = self.last = first
        self.classes = classes
        self.steps = 0
        self.count = 0.0
        self.tops: dict[float, float] = {}
        self.at_end: dict[float, float] = {}

    def add(self, place: Place, numbers: Numbers) -> None:
        self.last = place
        self.steps += 1
        count, label = numbers["labels"], numbers["top_label"]
        tops = count * numbers["top_share"]
        self.count += count
        self.tops[label] = self.tops.get(label, 0.0) + tops
        self.at_end[label] = self.at_end.get(label, 0.0) + tops * numbers.get("top_at_end", 0.0)

    @property
    def top(self) -> float:
        """The label that was the most frequent one of most."""
        return max(self.tops, key=self.tops.__getitem__)
