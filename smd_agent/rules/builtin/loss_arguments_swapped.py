"""LossArgumentsSwapped: a loss that is given the prediction as its target, and the target as its prediction."""

from __future__ import annotations

from smd_agent.framework.loss_facts import SWAPPED
from smd_agent.rules.built_in import StepView
from smd_agent.rules.parameters import Parameter, whole
from smd_agent.rules.usage import Fault, Numbers, UsageInARow, numbers_of


class LossArgumentsSwapped(UsageInARow):
    """A loss that is given the prediction as its target, and the target as its prediction.

    It is told from the graph: a gradient reaches what stands in the target's place, and none reaches the other. Judged
    are cross entropies and the loss of counts, Poisson's, whose arguments are not alike. A divergence of Kullback and
    Leibler is left alone, as both directions have a use. So is a step in which another loss is given the two as they
    belong: there the second one may be a term that is meant, as in a symmetric cross entropy.
    """

    meaning = "what stands at a loss's target is trained, and what stands at its prediction is not"
    patience = Parameter(whole, 2, "saved steps in a row")
    fewest_steps = 2
    kind = "loss"
    facts = (SWAPPED,)
    evidence = {SWAPPED: "1 if what stands at the target is trained, and what stands at the prediction is not"}
    cause = (
        "Prediction and target are in each other's place: what is minimised is no cross entropy of the model, and it"
        " pushes each output as far as it goes"
    )
    advice = "Call it as it is defined: loss(output, target) in PyTorch, loss(y_true, y_pred) in Keras"
    short = "prediction and target swapped"

    def start(self) -> None:
        """Begin with nothing seen."""
        super().start()
        self._has_other = False

    def take(self, step: StepView) -> None:
        """Look at each loss, once it is known whether there is one with both in their places."""
        losses = numbers_of(step, self.kind).values()
        self._has_other = any(numbers.get(SWAPPED) == 0 for numbers in losses)
        super().take(step)

    def fault(self, _: str, numbers: Numbers) -> Fault | None:
        """Return what is wrong if the two are swapped."""
        return Fault() if numbers.get(SWAPPED) and not self._has_other else None
