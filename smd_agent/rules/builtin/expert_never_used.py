"""ExpertNeverUsed: experts of a mixture that the router has never chosen."""

from __future__ import annotations

import re
from collections.abc import Iterator

from smd_agent.framework.training_facts import NOT_NOW
from smd_agent.rules.built_in import TRAINING, BuiltInRule, Place, Severity, StepView
from smd_agent.rules.known_parameters import Fact, known_parameters
from smd_agent.rules.parameters import Parameter, whole

_ROUTER = re.compile(r"\w*router\w*|gat(e|es|ing)|\w+_gate|switch", re.IGNORECASE)


class ExpertNeverUsed(BuiltInRule):
    """Experts of a mixture that the router has never chosen.

    Experts are modules in a list, beside which is a router or a gate by its name. Of these some have had gradients, and
    others have had none since the optimizer has them.
    """

    meaning = "of modules in a list beside a router some have never had a gradient, at several saved steps"
    patience = Parameter(whole, 8, "saved steps")
    brings = {"parameters": {}}
    modes = TRAINING
    severity = Severity.WARNING
    evidence = {
        "never": "how many experts of the list have had no gradient",
        "experts": "how many there are in the list",
    }
    cause = (
        "The router gives these experts nothing: it has settled on a few, as without a loss that balances them, or by"
        " how it is initialised"
    )
    advice = "Add a loss that balances the experts, noise to the router, or start its weights small and its bias at 0"
    short = "experts never used: {}"

    def start(self) -> None:
        """Begin with nothing seen."""
        self._first: Place | None = None
        # By list and by number, at how many saved steps it was known.
        self._steps: dict[str, dict[str, int]] = {}
        self._used: set[tuple[str, str]] = set()
        self._name_of: dict[tuple[str, str], str] = {}
        self._count = 0

    def take(self, step: StepView) -> None:
        """Look at what is known of the parameters by a step."""
        for model, facts in known_parameters(step).items():
            for experts, number, name, fact in _experts(model, facts):
                self._steps.setdefault(experts, {}).setdefault(number, 0)
                self._name_of.setdefault((experts, number), name)
                if fact.gradient:
                    self._used.add((experts, number))
        self.pass_over(step)

    def pass_over(self, step: StepView) -> None:
        """Facts are saved when they change: what is known holds at a step without any."""
        self._first = self._first or step.place
        self._count += 1
        for experts, steps in self._steps.items():
            for number in steps:
                steps[number] += 1
            never = [number for number in steps if (experts, number) not in self._used]
            for number in steps:
                name = self._name_of[experts, number]
                is_ripe = steps[number] >= self.patience and len(never) < len(steps)
                if number in never and is_ripe:
                    evidence = {"never": len(never), "experts": len(steps)}
                    self.found(self._first, name, evidence, until=step, steps=self._count)
                elif self.finding_of(step, name) is not None:
                    self.withdraw(step, name)


def _experts(model: str, facts: dict[str, Fact]) -> Iterator[tuple[str, str, str, Fact]]:
    """The parameters of experts that can be trained: their list, the number in it, their name, and what is known."""
    routed: dict[str, bool] = {}
    for name, fact in facts.items():
        if not fact.requires_grad or fact.optimizer in (None, NOT_NOW):
            continue
        # Such as MoE_blocks.0.experts.2.w1.weight, of which two parts are numbers in a list.
        parts = name.split(".")
        for place in range(1, len(parts) - 1):
            if not parts[place].isdecimal():
                continue
            parent = "".join(f"{part}." for part in parts[: place - 1]) if place > 1 else f"{model}_"
            if parent not in routed:
                routed[parent] = any(_is_router(one, parent) for one in facts)
            if routed[parent]:
                yield ".".join(parts[:place]), parts[place], name, fact


def _is_router(name: str, parent: str) -> bool:
    beside = name.removeprefix(parent).partition(".")[0]
    return name.startswith(parent) and _ROUTER.fullmatch(beside) is not None
