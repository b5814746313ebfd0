"""EvaluationInTrainingMode: dropout or batch normalisation in training mode while a model is evaluated."""

from __future__ import annotations

from smd_agent.framework.training_facts import USAGE
from smd_agent.rules.built_in import CollectionKeys, ModeKeys, Severity, StepView
from smd_agent.rules.parameters import Parameter, whole
from smd_agent.rules.usage import Numbers, RuleOfUsage

_WHY = "model.eval() is not called before it; in Keras, as the model is called with training=True"
_CAUSES = {
    "dropout": f"Dropout is on in the evaluation, as {_WHY}",
    "batch_norm": (
        f"Batch normalisation takes the statistics of the batch, and learns from the data of the evaluation, as {_WHY}"
    ),
}


class EvaluationInTrainingMode(RuleOfUsage):
    """Dropout or batch normalisation in training mode while a model is evaluated.

    It is a warning where a loss is computed of it, and a note where such calls follow each other. Single calls without
    a loss are how samples are drawn from a generator. Layers that alone are in training mode, as for Monte Carlo
    dropout, are none.
    """

    meaning = "a model is called without gradients in training mode, and has dropout or batch normalisation"
    patience = Parameter(whole, 2, "saved steps of evaluation in a row")
    kind = "model"
    facts = ("training",)
    severity = Severity.WARNING
    evidence = {"in_training_mode": "the share of the model's layers of that kind that are in training mode"}
    cause = _CAUSES["dropout"]
    advice = "Call model.eval() before the evaluation and model.train() after it; in Keras, model(x, training=False)"

    def start(self) -> None:
        """Begin with nothing seen."""
        super().start()
        self._last: dict[str, tuple[int, int]] = {}

    def take(self, step: StepView) -> None:
        """Look at a step of evaluation; of a run that has none there is nothing to be said."""
        if step.mode is ModeKeys.EVAL:
            super().take(step)

    def look_at(self, step: StepView, of: str, numbers: Numbers) -> None:
        """Look at one model."""
        has_loss = bool(step.names(CollectionKeys.LOSSES, patterns=()))
        before = self._last.get(of)
        place = step.place
        # No other step lies between.
        follows = before is not None and place.global_step - before[0] == place.step - before[1]
        self._last[of] = place.global_step, place.step
        for kind, cause in _CAUSES.items():
            share = numbers.get(kind, 0.0)
            wrong = bool(numbers["training"] and share)
            key = f"{USAGE}{of}/{kind}"
            with_loss = self.row(f"{key} with a loss", wrong and has_loss) >= self.patience
            following = self.row(key, wrong and follows) >= self.patience
            if not (with_loss or following):
                continue
            known = self.finding_of(step, key)
            if with_loss and known is not None and known.severity is Severity.NOTE:
                self.withdraw(step, key)
            severity = Severity.WARNING if with_loss else Severity.NOTE
            self.found(step, key, {"in_training_mode": share}, severity=severity, cause=cause)
