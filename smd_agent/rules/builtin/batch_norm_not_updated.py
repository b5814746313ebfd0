"""BatchNormNotUpdated: a batch normalisation of Keras that is trained in inference mode, from the first step on."""

from __future__ import annotations

import re

from smd_agent.framework.training_facts import UPDATE
from smd_agent.rules.built_in import TRAINING, BuiltInRule, StepView
from smd_agent.rules.parameters import Parameter, whole

_STATISTICS = r"(?:^|/)weights/(.+/)moving_(mean|variance)(?:_\d+)?:0$"
# What both are made with.
_FIRST = {"mean": 0.0, "variance": 1.0}


class BatchNormNotUpdated(BuiltInRule):
    """A batch normalisation of Keras that is trained in inference mode, from the first step on.

    Its running mean is 0 and its running variance 1, as they were made, so that it normalises nothing, while its gamma
    or beta is trained. One that is frozen, and one that keeps the statistics of an earlier training, is none. Of a
    loop with a tape only one inside of a `tf.function` shows its statistics.
    """

    meaning = "running mean and variance of a batch normalisation stay 0 and 1 while its gamma or beta is trained"
    patience = Parameter(whole, 5, "saved steps in a row")
    brings = {"weights": {"reductions": "min,max"}, "updates": {}}
    modes = TRAINING
    fewest_steps = 5
    evidence = {
        "layers": "how many batch normalisations are so at this step",
        "of": "how many have running statistics and are trained",
    }
    cause = "The model is called without training=True, so that batch normalisation, and dropout, run in inference mode"
    advice = "Call model(x, training=True) where the loss is computed, in a GradientTape or a train_step"
    short = "normalises nothing: {}"

    def start(self) -> None:
        """Begin with nothing seen."""
        self._has_any = False

    def take(self, step: StepView) -> None:
        """Look at the running statistics of a step."""
        names = step.names(patterns=(_STATISTICS,))
        if not names:
            return
        self._has_any = True
        largest = dict(step.column("max", names).items())
        layers: dict[str, dict[str, str]] = {}
        untouched: dict[str, bool] = {}
        for name, least in step.column("min", names).items():
            found = re.search(_STATISTICS, name)
            assert found is not None, "it was chosen by this pattern"
            layer, kind = found[1], found[2]
            layers.setdefault(layer, {})[kind] = name
            is_first = least == largest.get(name) == _FIRST[kind]
            untouched[layer] = untouched.get(layer, True) and is_first
        moved = [name for name, by in step.numbers(step.names(patterns=(f"^{UPDATE}",))).items() if by > 0]
        trained = [layer for layer in layers if any(name.startswith(f"{UPDATE}{layer}") for name in moved)]
        idle = [layer for layer in trained if untouched[layer] and layers[layer].keys() == _FIRST.keys()]
        self._in_a_row = {layer: self._in_a_row.get(layer, 0) + 1 for layer in idle}
        for layer in idle:
            if self._in_a_row[layer] >= self.patience:
                self.found(step, layers[layer]["mean"], {"layers": len(idle), "of": len(trained)})

    @property
    def is_concerned(self) -> bool:
        """True if there were any running statistics."""
        return self._has_any
