"""GradientDiscarded: gradients that are cleared before any update has used them."""

from __future__ import annotations

from smd_agent.framework.training_facts import USAGE
from smd_agent.rules.built_in import StepView
from smd_agent.rules.usage import Numbers, UsageInARow

_MOST_STEPS = 0.8


class GradientDiscarded(UsageInARow):
    """Gradients that are cleared before any update has used them.

    Only passes count that start from the same place of the program, in one loop, where no weights change in between and
    the update uses what the last of them has left; and only if that is so in four of five saved steps. So a batch that
    is skipped now and then is none, nor are passes that perturb weights or measure gradients.
    """

    meaning = "an update uses the last of several backward passes alone, as gradients are cleared before each of them"
    kind = "optimizer"
    facts = ("discarded_passes",)
    evidence = {
        "discarded_passes": "how many backward passes of the step were for nothing",
        "passes": "how many there were before the update",
    }
    cause = (
        'zero_grad is called before each backward pass, or Gluon\'s grad_req is "write", and the optimizer updates only'
        " after several of them"
    )
    advice = 'Call zero_grad() once for each update, right after optimizer.step(); in Gluon, with grad_req = "add"'

    def start(self) -> None:
        """Begin with nothing seen."""
        super().start()
        self._steps: dict[str, tuple[int, int]] = {}

    def look_at(self, step: StepView, of: str, numbers: Numbers) -> None:
        """Look at one optimizer."""
        discarded, tensor = numbers["discarded_passes"], f"{USAGE}{of}/discarded_passes"
        so, of_all = self._steps.get(of, (0, 0))
        so, of_all = self._steps[of] = so + (discarded > 0), of_all + 1
        is_row = self.row(of, discarded > 0) >= self.patience
        if so < _MOST_STEPS * of_all:
            self.withdraw(step, tensor)
        elif is_row:
            evidence = {"discarded_passes": discarded, "passes": numbers.get("passes", discarded + 1)}
            self.found(step, tensor, evidence)
