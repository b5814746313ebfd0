"""TrainingInEvaluationMode: a model that is trained after ``eval()``, which nothing has undone."""

from __future__ import annotations

from smd_agent.framework.training_facts import USAGE
from smd_agent.rules.built_in import Severity, StepView
from smd_agent.rules.parameters import Parameter, whole
from smd_agent.rules.usage import Numbers, UsageInARow

_LAYERS = ("dropout", "batch_norm")
_NEVER = (
    "The model was in evaluation mode from the first step on, as one is that was loaded from elsewhere; in Keras, as it"
    " is called without training=True, or has a call without training"
)


class TrainingInEvaluationMode(UsageInARow):
    """A model that is trained after ``eval()``, which nothing has undone.

    Where it was never trained in another mode, that may be meant, as in fine-tuning, and is a note. Single layers in
    evaluation mode are frozen, and no finding.
    """

    meaning = "a model with dropout or batch normalisation is trained in evaluation mode, as a whole"
    patience = Parameter(whole, 2, "saved steps in a row")
    kind = "model"
    facts = ("training",)
    evidence = {
        "dropout": "the share of the model's dropout layers that are in training mode",
        "batch_norm": "the share of its batch normalisations that are",
        "last_in_training_mode": "the last saved step at which it was trained in training mode, if there is one",
    }
    cause = "model.eval() was called for an evaluation, and model.train() not after it"
    advice = "Call model.train() at the start of each epoch, not once before the loop; in Keras, use training=True"

    def start(self) -> None:
        """Begin with nothing seen."""
        super().start()
        self._last: dict[str, int] = {}

    def look_at(self, step: StepView, of: str, numbers: Numbers) -> None:
        """Look at one model."""
        shares = {kind: numbers[kind] for kind in _LAYERS if kind in numbers}
        if numbers["training"] and any(shares.values()):
            self._last[of] = step.step
        is_off = bool(shares) and not numbers["training"] and not any(shares.values())
        if self.row(of, is_off) < self.patience:
            return
        name = f"{USAGE}{of}/training"
        if of in self._last:
            self.found(step, name, {**shares, "last_in_training_mode": self._last[of]})
        else:
            self.found(step, name, shares, severity=Severity.NOTE, cause=_NEVER)
