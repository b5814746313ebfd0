"""AdapterFrozen: adapters such as LoRA that are all frozen, and add nothing, while something else is trained."""

from __future__ import annotations

import re

from smd_agent.rules.built_in import TRAINING, BuiltInRule, StepView
from smd_agent.rules.known_parameters import Fact, known_parameters
from smd_agent.rules.parameters import Parameter, whole

_ADAPTER = re.compile(r"lora[._]?(a|b|down|up)(?![a-z0-9])", re.IGNORECASE)


class AdapterFrozen(BuiltInRule):
    """Adapters such as LoRA that are all frozen, and add nothing, while something else is trained.

    Of an adapter that was just made the second matrix is 0, so that it adds nothing until that is trained. Adapters
    that were trained before may be frozen for a reason, and so may some of several. One that is trained later is no
    finding any more.
    """

    meaning = "no adapter of a model can be trained, the second matrix of one at least is all 0, and others are trained"
    patience = Parameter(whole, 3, "saved steps")
    brings = {"parameters": {}}
    modes = TRAINING
    evidence = {
        "frozen": "how many parameters of adapters the model has, all of them frozen",
        "idle": "how many second matrices of adapters are all 0, of the first eight",
        "trained": "how many other parameters of the model an optimizer trains",
    }
    cause = (
        "The parameters of the adapters were frozen with those of the model below, by a loop that comes after they were"
        " put in: requires_grad is False for both, and what is trained is the rest, such as the head"
    )
    advice = (
        "Freeze the model before the adapters are put in, or leave them out of the loop, as by"
        ' param.requires_grad = "lora_" in name or name.startswith("classifier"); make the optimizer after that'
    )
    short = "adapters frozen: {}"

    def start(self) -> None:
        """Begin with nothing seen."""
        # By model: the first matrix that is idle, and the numbers.
        self._known: dict[str, tuple[str, dict[str, float]]] = {}
        self._steps: dict[str, int] = {}

    def take(self, step: StepView) -> None:
        """Look at what is known of the parameters by a step."""
        for model, facts in known_parameters(step).items():
            before = self._known.pop(model, None)
            idle = [name for name, fact in facts.items() if fact.idle]
            evidence = _judged(facts, len(idle))
            if evidence:
                self._known[model] = idle[0], evidence
            if before is not None and before[0] not in idle[:1] * bool(evidence):
                self._steps.pop(model, None)
                self.withdraw(step, before[0])
        self.pass_over(step)

    def pass_over(self, step: StepView) -> None:
        """Facts are saved when they change: what is known holds at a step without any."""
        for model, (name, evidence) in self._known.items():
            self._steps[model] = self._steps.get(model, 0) + 1
            if self._steps[model] >= self.patience:
                self.found(step, name, evidence)


def _judged(facts: dict[str, Fact], idle: int) -> dict[str, float]:
    """The numbers of a model whose adapters are all frozen, one of them idle; else none."""
    adapters = [fact for name, fact in facts.items() if _ADAPTER.search(name)]
    trained = sum(fact.requires_grad and fact.optimizer is not None for fact in facts.values())
    if not idle or not trained or any(fact.requires_grad for fact in adapters):
        return {}
    return {"frozen": len(adapters), "idle": idle, "trained": trained}
