"""ParameterNotOptimized: a parameter that the loss depends on and that was given to no optimizer."""

from __future__ import annotations

from smd_agent.framework.training_facts import BEHIND, UNFROZEN, UNTRACKED
from smd_agent.rules.built_in import TRAINING, BuiltInRule, Severity, StepView
from smd_agent.rules.known_parameters import Fact, known_parameters

_IN_A_LIST = (
    "Its module, or the parameter, is in a plain list or dict of the model, which does not register it:"
    " model.parameters(), state_dict() and to(device) leave it out, in Gluon collect_params() and save_parameters()"
)
_USE_MODULE_LIST = (
    "Use nn.ModuleList or nn.ModuleDict (nn.ParameterList for parameters) in place of the list or dict, before the"
    " optimizer is made; in Gluon nn.Sequential, or register_child of each block"
)
_BEHIND = (
    "It works on what variables that are trained have made, can be trained itself, and was made after them: it was left"
    " out where gradients are taken"
)
_TAKE_ALL = (
    "Take gradients of its variables too, and hand them to the optimizer with the others; freeze what shall not be"
    " trained (trainable = False)"
)
_UNFROZEN = (
    "trainable was changed after compile(): the training step goes on with the variables that it had, to which this one"
    " did not belong"
)
_COMPILE_AGAIN = "Compile the model again after trainable is changed, before fit() is called"
_UNTRACKED = (
    "A layer holds it as a plain tf.Variable, of which Keras 3 does not know: it is not trained, and not saved with the"
    " model"
)
_ADD_WEIGHT = "Make it with add_weight() or as a keras.Variable; what shall stay as it is, with trainable=False"
_WORDS = {
    BEHIND: (_BEHIND, _TAKE_ALL),
    UNFROZEN: (_UNFROZEN, _COMPILE_AGAIN),
    UNTRACKED: (_UNTRACKED, _ADD_WEIGHT),
}


class ParameterNotOptimized(BuiltInRule):
    """A parameter that the loss depends on and that was given to no optimizer.

    One that is given to an optimizer later, as in gradual unfreezing, is no finding any more. In PyTorch and Gluon it
    is also found on parameters that a model does not know of, because their modules are in a plain list or dict in
    place of an `nn.ModuleList`. One module alone in a list, one in evaluation mode, or in Gluon one that was loaded
    from a file, is taken to be hidden on purpose.

    In a `tf.function` with a GradientTape it is also found on variables of which no gradient was taken, if they stand
    between those that are trained and the loss, were made after one of them, and have not changed: a warning, as they
    may be meant to stay as they are.

    In Keras 3 it is also found on variables that were frozen when the step function was traced, can be trained by now,
    and have not changed for ten steps since; and, as a warning, on variables of TensorFlow's that a layer holds and
    does not track, of more than one number.
    """

    meaning = "a parameter can be trained, the loss depends on it, and no optimizer has ever been given it"
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
        # By model, those that are told of only as long as nothing trains them.
        self._told: dict[str, set[str]] = {}

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
            left = [name for name, fact in facts.items() if _is_left(fact)]
            # Of a model that nothing trains, gradients are of no use, and no mistake.
            severity = Severity.PROBLEM if optimized else Severity.NOTE
            before = self._told.get(model, set())
            self._told[model] = {name for name, fact in facts.items() if fact.mark or not fact.registered}
            for name in (facts.keys() | before) - {*left}:
                self.withdraw(step, name)
            for name in left:
                evidence = {"not_optimized": len(left), "optimized": optimized}
                cause, advice = _words_on(facts[name])
                of_it = Severity.WARNING if facts[name].mark in (BEHIND, UNTRACKED) else severity
                self.found(step, name, evidence, severity=of_it, cause=cause, advice=advice)


def _is_left(fact: Fact) -> bool:
    return fact.requires_grad and not fact.optimizer and (fact.gradient or fact.mark != "")


def _words_on(fact: Fact) -> tuple[str, str]:
    """Return cause and advice, empty where they are those of the rule."""
    if fact.mark:
        return _WORDS[fact.mark]
    return ("", "") if fact.registered else (_IN_A_LIST, _USE_MODULE_LIST)
