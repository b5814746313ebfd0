"""OptimizerNotOfModel: an optimizer of parameters that are not, or no longer, those of the model that is trained."""

from __future__ import annotations

from smd_agent.framework.training_facts import USAGE
from smd_agent.printable import count_of, some_of
from smd_agent.rules.built_in import StepView
from smd_agent.rules.known_parameters import known_parameters
from smd_agent.rules.usage import Numbers, UsageInARow

_NAMED = 3


class OptimizerNotOfModel(UsageInARow):
    """An optimizer of parameters that are not, or no longer, those of the model that is trained.

    Free parameters, such as a temperature that is learned, are none where they have a gradient, or have ever changed.
    """

    meaning = "an optimizer has parameters that no module owns and that never had a gradient, or no gradient at all"
    kind = "optimizer"
    facts = ("unowned",)
    evidence = {
        "unowned": "how many of its parameters belong to no module, and have never had a gradient or changed",
        "with_gradient": "the share of all its parameters that have a gradient",
        "not_optimized": "how many parameters of models have a gradient and are in no optimizer",
    }
    cause = "A layer was replaced after the optimizer was made, which still has the parameters of the old one"
    advice = "Make the optimizer after the model is complete and on its device"

    def start(self) -> None:
        """Begin with nothing seen."""
        super().start()
        self._left: dict[str, None] = {}

    def take(self, step: StepView) -> None:
        """Look at what is known of the parameters by a step, and at its optimizers."""
        self._learn(step)
        super().take(step)

    def pass_over(self, step: StepView) -> None:
        """A step that may have facts of parameters and nothing else."""
        self._learn(step)

    def look_at(self, step: StepView, of: str, numbers: Numbers) -> None:
        """Look at one optimizer."""
        unowned, share = numbers["unowned"], numbers.get("with_gradient", 1.0)
        left = {"not_optimized": len(self._left)} if self._left else {}
        title = of.partition("/")[2]
        if self.row(f"{of} unowned", unowned > 0) >= self.patience:
            evidence = {"unowned": unowned, "with_gradient": share, **left}
            short = f"{title} has {count_of(int(unowned), 'parameter')} of no module"
            self.found(step, f"{USAGE}{of}/unowned", evidence, cause=self._cause(int(unowned)), short=short)
        elif self.row(f"{of} alone", not share) >= self.patience:
            cause = "None of its parameters has a gradient: it was made for another model, or for one that was copied"
            evidence = {"with_gradient": share, **left}
            short = f"no parameter of {title} has a gradient"
            self.found(step, f"{USAGE}{of}/with_gradient", evidence, cause=cause, short=short)

    def _cause(self, unowned: int) -> str:
        if not self._left:
            return self.cause
        names = some_of([*self._left], _NAMED)
        has = f"{count_of(unowned, 'parameter')} of no module"
        return f"The optimizer has {has}, and not {names}: a layer was replaced after it was made"

    def _learn(self, step: StepView) -> None:
        for facts in known_parameters(step).values():
            for name, fact in facts.items():
                if fact.requires_grad and fact.gradient and fact.optimizer is None and fact.registered:
                    self._left[name] = None
                else:
                    self._left.pop(name, None)
