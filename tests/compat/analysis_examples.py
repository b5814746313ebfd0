"""Programs that read a run and ask rules, as smdebug's documentation has them: ``python … PACKAGE RUN``; prints JSON.

PACKAGE is smdebug or smd_agent: nothing else differs between a program for the one and for the other.
"""

from __future__ import annotations

import json
import sys
from importlib import import_module

PACKAGE, RUN = sys.argv[1:]
package = import_module(PACKAGE)
trials = import_module(f"{PACKAGE}.trials")
exceptions = import_module(f"{PACKAGE}.exceptions")
rules = import_module(f"{PACKAGE}.rules")
invoke_rule = import_module(f"{PACKAGE}.rules.rule_invoker").invoke_rule
modes = package.modes

trial = trials.create_trial(path=RUN, name="a training")
answers = {}


def ask(words, function):
    """Keep the answer, or the name and the words of the exception."""
    try:
        answer = function()
    except exceptions.SMDebugError as error:
        answer = [type(error).__name__, str(error)]
    answers[words] = answer


def numbers(array):
    return array.tolist()


# The trial: names, modes, steps, workers, collections.
ask("name", lambda: trial.name)
ask("all names", lambda: trial.tensor_names())
ask("names of a collection", lambda: trial.tensor_names(collection="gradients"))
ask("names of a collection's object", lambda: trial.tensor_names(collection=trial.collection("losses")))
ask("names by a pattern", lambda: trial.tensor_names(regex="weight"))
ask("names by patterns", lambda: trial.tensor_names(regex=["^loss", "bias$"]))
ask("names of a step", lambda: trial.tensor_names(step=10))
ask("names of a mode", lambda: trial.tensor_names(mode=modes.EVAL))
ask("names of a mode's step", lambda: trial.tensor_names(step=1, mode=modes.EVAL, collection="losses"))
ask("steps", lambda: [trial.steps(), trial.steps(mode=modes.TRAIN), trial.steps(mode=modes.EVAL)])
ask("modes", lambda: sorted(mode.name for mode in trial.modes()))
ask("mode of a step", lambda: [trial.mode(step).name for step in trial.steps()])
ask("step of its mode", lambda: [trial.mode_step(step) for step in trial.steps()])
ask("step of all modes", lambda: [trial.global_step(modes.EVAL, step) for step in (0, 1)])
ask("workers", lambda: trial.workers())
ask("collections", lambda: {"losses", "gradients", "weights"} <= set(trial.collections()))
ask("patterns", lambda: trial.collection("gradients").include_regex)
ask("is there", lambda: [trial.has_tensor("loss"), trial.has_tensor("nothing")])
ask("a tensor that is not there", lambda: trial.tensor("nothing"))
ask("waiting", lambda: trial.wait_for_steps([0, 10], mode=modes.TRAIN))
ask("waiting for what was not saved", lambda: trial.wait_for_steps([5], mode=modes.TRAIN))
ask("waiting for what never comes", lambda: trial.wait_for_steps([10_000], mode=modes.TRAIN))
trial.dynamic_refresh = True
ask("passed", lambda: [trial.has_passed_step(step, modes.TRAIN).name for step in (0, 5, 10_000)])

# A tensor: its steps, values, reductions, shapes.
loss, weight = trial.tensor("loss"), trial.tensor("a_weight")
ask("tensor's name", lambda: loss.name)
ask("tensor's steps", lambda: [loss.steps(), loss.steps(mode=modes.TRAIN), loss.steps(mode=modes.EVAL)])
ask("value", lambda: numbers(loss.value(10)))
ask("value of a mode's step", lambda: numbers(loss.value(1, mode=modes.EVAL)))
ask("value of a worker", lambda: numbers(loss.value(10, worker="worker_0")))
ask("value of a worker that is not there", lambda: numbers(loss.value(10, worker="worker_7")))
ask("value that was not saved", lambda: numbers(loss.value(5, mode=modes.TRAIN)))
ask("all values", lambda: {step: numbers(value) for step, value in loss.values(mode=modes.TRAIN).items()})
ask("shape", lambda: list(weight.shape(10)))
ask("workers of a step", lambda: loss.workers(10))
ask("steps before", lambda: [loss.prev_steps(20, 2, mode=modes.TRAIN), loss.prev_steps(20, None, mode=modes.TRAIN)])
for name in ("min", "max", "mean", "std", "variance", "sum"):
    ask(f"{name} of a value", lambda name=name: round(float(weight.reduction_value(10, name)), 5))
    ask(f"{name} of its size", lambda name=name: round(float(weight.reduction_value(10, name, abs=True)), 5))
# Of a matrix smdebug takes other norms where it computes them on reading.
gradient = trial.tensor("gradient/a_bias")
ask("norms", lambda: [float(gradient.reduction_value(0, name)) for name in ("l1", "l2")])
ask("stored reductions", lambda: sorted(map(str, weight.reduction_values(10))))


# Rules.
class VanishingGradientRule(rules.Rule):
    """Looks at the mean size of gradients."""

    def __init__(self, base_trial, threshold=0.0000001):
        super().__init__(base_trial, other_trials=None, action_str="")
        self.threshold = float(threshold)

    def set_required_tensors(self, step):
        for name in self.base_trial.tensor_names(collection="gradients"):
            self.req_tensors.add(name=name, steps=[step])

    def invoke_at_step(self, step):
        tensors = self.req_tensors.get()
        return any(tensor.reduction_value(step, "mean", abs=True) < self.threshold for tensor in tensors)


class WeightsStandStill(rules.Rule):
    """Compares a step with the one before it."""

    def __init__(self, base_trial):
        super().__init__(base_trial, action_str="")
        self.ratios = {}

    def set_required_tensors(self, step):
        if step >= 10:
            self.req_tensors.add(name=".*weight", steps=[step - 10, step], should_match_regex=True)

    def invoke_at_step(self, step):
        if step >= 10:
            before, now = weight.value(step - 10), weight.value(step)
            self.ratios[step] = round(float(abs(now - before).mean() / abs(before).mean()), 6)
        return self.ratios.get(step, 1) < 0.02


def ends(rule, **options):
    """How asking a rule at each step ends."""
    try:
        invoke_rule(rule, **options)
    except exceptions.RuleEvaluationConditionMet as error:
        return ["met", str(error), error.step]
    except exceptions.NoMoreData as error:
        return ["no more data", error.last_step]
    return ["no more steps"]


ask("a rule until it is met", lambda: ends(VanishingGradientRule(trial), raise_eval_cond=True))
ask("a rule until the end", lambda: ends(VanishingGradientRule(trial)))
ask("a rule of some steps", lambda: ends(VanishingGradientRule(trial, "0.5"), start_step=0, end_step=11))
still = WeightsStandStill(trial)
ask("a rule of two steps", lambda: [ends(still, start_step=0, end_step=42, raise_eval_cond=True), still.ratios])
print(json.dumps(answers))
