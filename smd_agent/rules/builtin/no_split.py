"""NoSplit: trees that are one leaf each."""

from __future__ import annotations

from smd_agent.rules.built_in import BuiltInRule, StepView
from smd_agent.rules.parameters import Parameter, whole

_NODES = "trees/Node"


class NoSplit(BuiltInRule):
    """Trees that are one leaf each, from the first round on, so that all rows get the same prediction.

    Late trees of a long training may rightly have no split, so it is over once any has one.
    """

    meaning = "no tree of any saved round has a split, from the first round on"
    patience = Parameter(whole, 3, "saved rounds, of which the first is that of step 0")
    brings = {"trees": {}}
    fewest_steps = 3
    evidence = {"trees": "how many trees the round has"}
    cause = (
        "No split gains anything: the labels are all the same, the features are constant or missing,"
        " min_child_weight, gamma or reg_alpha are too large for as many rows, or an objective of your own returns"
        " second derivatives near 0"
    )
    advice = (
        "Count the labels, look at the features that the training is given and at what your own objective returns, and"
        " lower min_child_weight and gamma"
    )
    short = "no tree has a split"

    def start(self) -> None:
        """Begin with nothing seen."""
        self._rounds = 0
        self._is_over = False

    def take(self, step: StepView) -> None:
        """Look at the trees of a round."""
        if not self._rounds and step.place.global_step:
            self._is_over = True
        self._rounds += 1
        nodes = None if self._is_over else step.value(_NODES)
        if nodes is None or not nodes.size:
            return
        if nodes.max() > 0:
            self._is_over = True
            self.withdraw(step)
        elif self._rounds >= self.patience:
            self.found(step, None, {"trees": int(nodes.size)})
