"""LabelOutOfRange: labels for which the model has no output."""

from __future__ import annotations

from smd_agent.framework.training_facts import USAGE
from smd_agent.rules.built_in import ModeKeys, Severity, StepView
from smd_agent.rules.usage import Numbers, RuleOfUsage

_FROM_1 = (
    "Labels begin with 1, and classes with 0: the first output is never the right one, and the last label has none"
)
_BELOW = (
    "There are labels below 0, for which the model has no output. MXNet takes them for 0, so that they have to be taken"
    " out of the loss by weights of 0, or afterwards"
)


class LabelOutOfRange(RuleOfUsage):
    """Labels for which the model has no output.

    Where nothing fails, as with PyTorch, the nearest output is taken for the right one (MXNet), or the loss becomes NaN
    (TensorFlow on an accelerator, and compiled by XLA). Labels below 0 that a mask takes out of the loss afterwards
    cannot be told from others, and are a warning.
    """

    meaning = "a loss of classes is given labels that are no numbers of classes, and nothing fails"
    modes = (ModeKeys.TRAIN, ModeKeys.EVAL, ModeKeys.GLOBAL)
    kind = "loss"
    facts = ("label_max",)
    evidence = {
        "classes": "how many classes the loss is given, which are numbered from 0",
        "label_min": "the smallest label of the batch",
        "label_max": "the largest one",
    }
    cause = (
        "There are labels above the last class: the model has too few outputs, or they stand for what the loss should"
        " ignore. MXNet takes them for the last class, TensorFlow makes them NaN"
    )
    advice = "Number the classes from 0, and give the model an output for each"

    def look_at(self, step: StepView, of: str, numbers: Numbers) -> None:
        """Look at the labels of one loss."""
        least, most = numbers.get("label_min", 0.0), numbers["label_max"]
        classes = numbers.get("classes", 0.0)
        if classes < 1 or least > most:
            return
        evidence = {"classes": classes, "label_min": least, "label_max": most}
        if most >= classes:
            cause = _FROM_1 if least == 1 and most == classes else ""
            self.found(step, f"{USAGE}{of}/label_max", evidence, cause=cause)
        elif least < 0:
            self.found(step, f"{USAGE}{of}/label_min", evidence, severity=Severity.WARNING, cause=_BELOW)
