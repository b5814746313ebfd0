"""ParameterNotOptimized: a parameter that has a gradient and was given to no optimizer."""

from __future__ import annotations

from smd_agent.rules.built_in import TRAINING, BuiltInRule, Severity, StepView
from smd_agent.rules.known_parameters import known_parameters

_IN_A_LIST = (
    "Its module, or the parameter, is in a plain list or dict of the model, which does not register it:"
    " model.parameters(), state_dict() and to(device) leave it out"
)
_USE_MODULE_LIST = (
    "Use nn.ModuleList or nn.ModuleDict (nn.ParameterList for parameters) in place of the list or dict, before the"
    " optimizer is made"
)


class ParameterNotOptimized(BuiltInRule):
    """A parameter that has a gradient and was given to no optimizer.

    One that is given to an optimizer later, as in gradual unfreezing, is no finding any more. In PyTorch it is
    also found on parameters that a model does not know of, because their modules are in a plain list or dict in place
    of an `nn.ModuleList`. One module alone in a list, or one in evaluation mode, is taken to be hidden on purpose.
    """

    meaning = "a parameter can be trained and has a gradient, and no optimizer has ever been given it"
    brings = {"parameters": {}}
    modes = TRAINING
    evidence = {
        "not_optimized": "how many parameters of the model are so",
        "optimized": "how many of its parameters an optimizer has",
    }
    cause = "The parameter was made after the optimizer, as by replacing a layer, or was left out of its list"
    advice = "Make the optimizer after the model is complete, or freeze what shall not be trained (requires_grad=False)"
    short = "in no optimizer: {}"

    def start(self) -> None:
        """Begin with nothing seen."""
        self._unregistered: dict[str, set[str]] = {}

    def pass_over(self, step: StepView) -> None:
        """Facts are saved when they change: at a step without any, what was found holds."""
        for found in self.findings:
            if (found.mode, found.worker) == (step.mode, step.worker):
                found.last_step = step.step
                found.steps += 1

    def take(self, step: StepView) -> None:
        """Look at what is known of the parameters by a step."""
        for model, facts in known_parameters(step).items():
            optimized = sum(fact.optimizer is not None for fact in facts.values())
            left = [name for name, fact in facts.items() if fact.requires_grad and fact.gradient and not fact.optimizer]
            # Of a model that nothing trains, gradients are of no use, and no mistake.
            severity = Severity.PROBLEM if optimized else Severity.NOTE
            # What the model does not know of is told only as long as it is trained by nothing.
            before = self._unregistered.get(model, set())
            self._unregistered[model] = {name for name, fact in facts.items() if not fact.registered}
            for name in (facts.keys() | before) - {*left}:
                self.withdraw(step, name)
            for name in left:
                evidence = {"not_optimized": len(left), "optimized": optimized}
                cause, advice = ("", "") if facts[name].registered else (_IN_A_LIST, _USE_MODULE_LIST)
                self.found(step, name, evidence, severity=severity, cause=cause, advice=advice)
