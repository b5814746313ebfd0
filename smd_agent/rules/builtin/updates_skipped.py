"""UpdatesSkipped: a loss scaler that leaves out every update."""

from __future__ import annotations

from dataclasses import dataclass

from smd_agent.rules.built_in import TRAINING, BuiltInRule, CollectionKeys, Place, StepView
from smd_agent.rules.not_finite import not_finite
from smd_agent.rules.parameters import Parameter, whole
from smd_agent.rules.skipped_updates import has_skipped, says_so, scales_of

# A scale below 1 makes gradients smaller than they are: what still overflows is no matter of the scale.
_UNSCALED = 1.0

_CAUSES = {
    "weights": (
        "Weights were not finite when it began, so no gradient can be: they were loaded so, or an update broke them",
        "Find the first step at which a weight is not finite; clip gradients after scaler.unscale_, and check the rate",
    ),
    "loss": (
        "The loss itself is not finite, so its gradients are not at any scale",
        "Look at the first step at which the loss is not finite; an overflow in float16 is cured by bfloat16",
    ),
    "backward": (
        "The loss is finite and its gradients are not, at any scale: a derivative such as that of sqrt, norm or log at"
        " 0, or of a division by 0",
        "Add a small number inside of sqrt, norm, log and divisions; torch.autograd.set_detect_anomaly names the place",
    ),
}


@dataclass
class _Row:
    """Steps in a row of which the update was left out.

    Attributes:
        first: the first of them.
        first_scale: by what its loss was multiplied.
        why: what was not finite there.
        count: how many they are.
    """

    first: Place
    first_scale: float
    why: str
    count: int = 0


class UpdatesSkipped(BuiltInRule):
    """A loss scaler that leaves out every update.

    At the start, and now and then, a scaler leaves updates out until it has found a scale at which no gradient
    overflows. So it takes several saved steps in a row, to the last one, and either many steps or a scale below 1.
    """

    meaning = "a loss scaler has left out the updates of all saved steps since one, to the end"
    patience = Parameter(whole, 5, "saved steps in a row")
    steps = Parameter(whole, 20, "steps that they reach over, unless the scale has fallen below 1")
    brings = {"optimizer": {}}
    modes = TRAINING
    fewest_steps = 5
    evidence = {
        "skipped": "how many saved steps in a row had no update by then",
        "scale": "by what the loss was multiplied by then",
        "first_scale": "by what it was multiplied at the first of them",
    }
    cause, advice = _CAUSES["backward"]

    def start(self) -> None:
        """Begin with nothing seen."""
        self.fewest_steps = min(self.fewest_steps, self.patience)
        self._rows: dict[str, _Row] = {}
        self._scaled_steps = 0

    @property
    def is_concerned(self) -> bool:
        """True if losses were scaled at all."""
        return bool(self._scaled_steps)

    @property
    def steps_that_count(self) -> int:
        """Number of steps that had scaled losses."""
        return self._scaled_steps

    def take(self, step: StepView) -> None:
        """Look at the scalers of a step."""
        scales = scales_of(step)
        self._scaled_steps += bool(scales)
        for name, scale in scales.items():
            if not has_skipped(step, name):
                self._rows.pop(name, None)
                self.withdraw(step, name)
                continue
            row = self._rows.get(name)
            if row is None or scale > row.first_scale:
                row = self._rows[name] = _Row(step.place, scale, _why(step))
            row.count += 1
            is_long = step.step - row.first.step >= self.steps and (says_so(name) or scale < row.first_scale)
            if row.count >= self.patience and (is_long or scale < _UNSCALED):
                evidence = {"skipped": row.count, "scale": scale, "first_scale": row.first_scale}
                cause, advice = _CAUSES[row.why]
                self.found(row.first, name, evidence, cause=cause, advice=advice, until=step, steps=row.count)


def _why(step: StepView) -> str:
    if not_finite(step, step.names(CollectionKeys.WEIGHTS, CollectionKeys.BIASES)):
        return "weights"
    return "loss" if not_finite(step, step.names(CollectionKeys.LOSSES)) else "backward"
