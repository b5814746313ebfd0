"""AllZero: tensors of which all elements are 0."""

from __future__ import annotations

import math

from smd_agent.rules.built_in import BuiltInRule, CollectionKeys, Names, Need, Severity, StepView
from smd_agent.rules.parameters import TENSOR_REGEX, Parameter, number, whole


class AllZero(BuiltInRule):
    """Tensors of which all elements are 0.

    Many rightly begin so. What `check` judges by are gradients of matrices that stay so to the end, while those of most
    others do not, or that of a bias does not, or the loss is not 0: one that has come to 0 has no gradients at all.
    Steps with a loss of exactly 0 tell nothing. A matrix whose own bias has a gradient is given nothing but zeros, and
    is left alone where most others have gradients.
    """

    meaning = "the share of zeros reaches a threshold; of gradients of matrices, at many steps in a row and to the end"
    collection_names = Parameter.of_collections(CollectionKeys.GRADIENTS)
    tensor_regex = TENSOR_REGEX
    threshold = Parameter(number, 100.0, "share of zeros that is needed, in percent")
    patience = Parameter(
        whole, 10, "saved steps in a row; at 1 each tensor counts, whatever the others are", documented=1
    )
    brings = {"gradients": {"reductions": "zero_share"}}
    chosen_by = ("collection_names", "tensor_regex")
    fewest_steps = 10
    severity = Severity.WARNING
    evidence = {
        "zero_percent": "elements that are 0, in percent",
        "others": "how many tensors that were looked at have fewer",
    }
    cause = (
        "Nothing comes back to it from the loss: what it computes is not used, is detached, or is 0 after a dead ReLU"
    )
    advice = (
        "Check that the module's output reaches the loss, that nothing cuts it off from gradients on the way (detach,"
        " no_grad, stop_gradient), and that its units live"
    )
    short = "nearly all zeros: {}"

    def start(self) -> None:
        """Begin with nothing seen."""
        saved_by = "" if self.collection_names else "all to --save, with --reductions statistics or --raw"
        self.needs = (Need(self.collection_names or (), ("zero_share",), self.tensor_regex or (), saved_by),)
        self.fewest_steps = min(self.fewest_steps, self.patience)
        self._matrices: dict[Names, Names] = {}

    def take(self, step: StepView) -> None:
        """Look at the chosen tensors of a step."""
        names = self.needs[0].names(step)
        shares = dict(step.column("zero_share", names).items())
        if self.patience > 1:
            if names not in self._matrices:
                self._matrices = {names: tuple(filter(step.is_matrix, names))}
            names = self._matrices[names]
        percents = {name: 100 * shares[name] for name in names if name in shares}
        reached = {name for name, percent in percents.items() if percent >= self.threshold}
        if self.patience > 1 and reached and 0 in self._losses(step):
            return
        others = len(percents) - len(reached)
        if self.patience > 1 and others < len(reached):
            # A loss that is at rest has none of the vectors either.
            others = sum(share < 1 for name, share in shares.items() if name not in percents)
            if not others and not (len(reached) == len(percents) and any(map(math.isfinite, self._losses(step)))):
                return
        elif self.patience > 1:
            reached = {name for name in reached if shares.get(_bias_of(name), 1.0) >= 1}
        for name, percent in percents.items():
            row = self.row((name, step.mode), name in reached)
            if row >= self.patience:
                self.found(step, name, {"zero_percent": percent, "others": others})
            elif not row and self.patience > 1:
                self.withdraw(step, name)

    @staticmethod
    def _losses(step: StepView) -> list[float]:
        return [loss for _, loss in step.numbers(step.names(CollectionKeys.LOSSES)).items()]


def _bias_of(matrix: str) -> str:
    for kind in ("weight", "kernel"):
        before, found, after = matrix.rpartition(kind)
        if found:
            return f"{before}bias{after}"
    return matrix
