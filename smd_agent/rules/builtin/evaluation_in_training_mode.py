"""EvaluationInTrainingMode: dropout or batch normalisation in training mode while a model is evaluated."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

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
_BY_FUNCTION = "functional_dropout"
_STAYS_ON = (
    "Dropout stays on in the evaluation, as F.dropout is not told the mode: by default it drops, whether the model is"
    " in evaluation mode or not"
)
_TELL_IT = "Call F.dropout(x, p, training=self.training), or use an nn.Dropout layer"


class _Wrong(NamedTuple):
    """A kind of layers that is not as in an evaluation, if it is ``so``."""

    kind: str
    so: bool
    evidence: Numbers
    cause: str
    advice: str = ""


class EvaluationInTrainingMode(RuleOfUsage):
    """Dropout or batch normalisation in training mode while a model is evaluated.

    It is a warning where a loss is computed of it, and a note where such calls follow each other. Single calls without
    a loss are how samples are drawn from a generator. Layers that alone are in training mode, as for Monte Carlo
    dropout, are none.

    In PyTorch it is also found on dropout by functions, where the whole model is in evaluation mode and the call does
    not say whether it is a training, which it then takes for granted; ``training=True`` says that it is meant.
    """

    meaning = (
        "a model is called without gradients in training mode, and has dropout or batch normalisation; or its dropout"
        " is on whatever the mode"
    )
    patience = Parameter(whole, 2, "saved steps of evaluation in a row")
    kind = "model"
    facts = ("training",)
    severity = Severity.WARNING
    evidence = {
        "in_training_mode": "the share of the model's layers of that kind that are in training mode",
        "dropped": "of dropout by functions: the largest share that is dropped",
    }
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
        for kind, so, evidence, cause, advice in _kinds(numbers):
            key = f"{USAGE}{of}/{kind}"
            with_loss = self.row(f"{key} with a loss", so and has_loss) >= self.patience
            following = self.row(key, so and follows) >= self.patience
            if not (with_loss or following):
                continue
            known = self.finding_of(step, key)
            if with_loss and known is not None and known.severity is Severity.NOTE:
                self.withdraw(step, key)
            severity = Severity.WARNING if with_loss else Severity.NOTE
            self.found(step, key, evidence, severity=severity, cause=cause, advice=advice)


def _kinds(numbers: Numbers) -> Iterator[_Wrong]:
    for kind, cause in _CAUSES.items():
        share = numbers.get(kind, 0.0)
        yield _Wrong(kind, bool(numbers["training"] and share), {"in_training_mode": share}, cause)
    dropped = numbers.get(_BY_FUNCTION, 0.0)
    yield _Wrong(_BY_FUNCTION, dropped > 0, {"dropped": dropped}, _STAYS_ON, _TELL_IT)
