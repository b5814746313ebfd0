"""NotMoving: a parameter that its optimizer does not move, though it has a gradient and a learning rate."""

from __future__ import annotations

from statistics import median

from smd_agent.framework.training_facts import LOOKED_AT, NOT_NOW, UPDATE
from smd_agent.rules.built_in import TRAINING, BuiltInRule, CollectionKeys, StepView
from smd_agent.rules.known_parameters import known_parameters
from smd_agent.rules.parameters import Parameter, whole

_GRADIENT = "gradient/"
# A gradient below that part of the median is rounding, as that of a bias before a normalisation.
_NEGLIGIBLE = 1e-3
# A gradient below that part of its own largest one is that of a training that has converged.
_CONVERGED = 1e-3
# A rate below that part of the largest one is left to LearningRateVanished.
_VANISHED = 1e-3
# Of a large tensor a part is looked at, which says nothing of one with few rows that have a gradient.
_SPARSE = 0.5


class NotMoving(BuiltInRule):
    """A parameter that its optimizer does not move, though it has a gradient and a learning rate."""

    meaning = "an update moves a parameter by exactly 0 at several saved steps in a row, with a gradient and a rate"
    patience = Parameter(whole, 5, "saved steps in a row")
    brings = {"updates": {}, "gradients": {"reductions": "abs_mean,zero_share"}, "optimizer": {}}
    modes = TRAINING
    fewest_steps = 5
    evidence = {
        "gradient": "mean absolute value of its gradient, of the elements that have any",
        "usual_gradient": "the median of those of all parameters",
        "largest_gradient": "the largest one that the parameter has had so far",
        "learning_rate": "the smallest learning rate of the step",
    }
    cause = "The update is lost in rounding, as in bfloat16 or float16 weights, or the optimizer is not what updates it"
    advice = "Keep weights in float32, raise the learning rate, and check that nothing writes the old values back"
    short = "not moved by updates: {}"

    def start(self) -> None:
        """Begin with nothing seen."""
        self._optimizers: dict[str, str] = {}
        # Those whose gradient was taken away before the update.
        self._without: set[str] = set()
        self._largest: dict[str, float] = {}
        self._largest_rates: dict[str, float] = {}

    def take(self, step: StepView) -> None:
        """Look at the updates of a step."""
        for facts in known_parameters(step).values():
            self._optimizers.update({name: fact.optimizer for name, fact in facts.items() if fact.optimizer})
            self._without.difference_update(facts)
            self._without.update(
                name for name, fact in facts.items() if not fact.gradient and fact.optimizer not in (None, NOT_NOW)
            )
        names, moves = step.numbers(step.names(patterns=(f"^{UPDATE}",)))
        still = [names[place].removeprefix(UPDATE) for place in (moves == 0).nonzero()[0].tolist()]
        found = self._with_gradient(step, [name for name in still if name not in self._without])
        for name in [name for name in self._in_a_row if name not in found and UPDATE + name in names]:
            del self._in_a_row[name]
        for name, evidence in found.items():
            if self.row(name, True) >= self.patience:
                self.found(step, name, evidence)

    def _with_gradient(self, step: StepView, still: list[str]) -> dict[str, dict[str, float]]:
        """Return those that should have moved, with the evidence for it."""
        every = step.names(CollectionKeys.GRADIENTS)
        shares = dict(step.column("zero_share", every).items())
        gradients = {
            # Rows of an embedding that were not looked up have none.
            name: size / max(1 - shares.get(name, 0.0), 1e-30)
            for name, size in step.column("abs_mean", every).items()
        }
        for name, gradient in gradients.items():
            if self._largest.get(name, 0.0) < gradient < float("inf"):
                self._largest[name] = gradient
        rates = self._rates_of(step)
        if not still:
            return {}
        usual = median(gradients.values()) if gradients else 0.0
        found = {}
        for name in still:
            gradient = gradients.get(_GRADIENT + name, 0.0)
            rate = self._rate_of(name, rates)
            largest = self._largest.get(_GRADIENT + name, 0.0)
            if gradient <= max(_NEGLIGIBLE * usual, _CONVERGED * largest) or not rate or not gradient < float("inf"):
                continue
            if shares.get(_GRADIENT + name, 0.0) > _SPARSE and (step.size(_GRADIENT + name) or 0) > LOOKED_AT:
                continue
            found[name] = {
                "gradient": gradient,
                "usual_gradient": usual,
                "largest_gradient": largest,
                "learning_rate": rate,
            }
        return found

    def _rates_of(self, step: StepView) -> dict[str, float]:
        """Return the learning rates by optimizer; 0 for one that has all but vanished."""
        found = {}
        for name, rate in step.numbers(step.names(CollectionKeys.OPTIMIZER)).items():
            if name.endswith("/lr"):
                optimizer = name.removeprefix("optimizer/").removesuffix("/lr")
                largest = self._largest_rates[optimizer] = max(rate, self._largest_rates.get(optimizer, 0.0))
                found[optimizer] = rate if rate >= _VANISHED * largest else 0.0
        return found

    def _rate_of(self, name: str, rates: dict[str, float]) -> float:
        """Return the learning rate of a parameter; the smallest of all where its optimizer is not known."""
        optimizer = self._optimizers.get(name, "")
        # With one group, the optimizer's settings have its name alone.
        for known in (optimizer, optimizer.partition("/")[0]):
            if known in rates:
                return rates[known]
        return min(rates.values(), default=0.0)
