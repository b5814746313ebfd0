"""Rules as programs for smdebug have them, invoked on one run: ``python old_rules.py PACKAGE RUN``; prints JSON.

PACKAGE is smdebug or smd_agent, under whose name everything is imported.
"""

from __future__ import annotations

import json
import sys
from importlib import import_module

PACKAGE, RUN = sys.argv[1:]
rules = import_module(f"{PACKAGE}.rules")
invoker = import_module(f"{PACKAGE}.rules.rule_invoker")
Rule = import_module(f"{PACKAGE}.rules.rule").Rule
exceptions = import_module(f"{PACKAGE}.exceptions")
create_trial = import_module(f"{PACKAGE}.trials").create_trial


class VanishingGradientRule(Rule):
    """The example of smdebug's documentation, which hands over no actions; smdebug itself insists on them."""

    def __init__(self, base_trial, threshold=0.0000001):
        actions = {"action_str": ""} if PACKAGE == "smdebug" else {}
        super().__init__(base_trial, other_trials=None, **actions)
        self.threshold = float(threshold)
        self.met = []

    def invoke_at_step(self, step):
        for name in self.base_trial.tensor_names(collection="gradients"):
            if self.base_trial.tensor(name).reduction_value(step, "mean", abs=True) < self.threshold:
                self.met.append(step)
                return True
        return False


class Required(Rule):
    """Asks for tensors by name, by pattern, of several steps and of another trial."""

    def __init__(self, base_trial, other):
        super().__init__(base_trial, "", other_trials=[other])
        self.other, self.met, self.seen = other, [], []

    def set_required_tensors(self, step):
        self.req_tensors.add("loss", [step])
        if step >= 10:
            self.req_tensors.add("loss", [step - 10])
            self.req_tensors.add("gradient/.*bias", [step], should_match_regex=True)
        self.req_tensors.add("loss", [step], trial=self.other)

    def invoke_at_step(self, step):
        names = sorted(self.req_tensors.get_names())
        values = [float(tensor.value(step).sum()) for tensor in self.req_tensors.get()]
        refreshing = [trial.dynamic_refresh for trial in self.trials]
        self.seen.append([step, names, self.req_tensors.get_tensor_steps("loss"), sorted(values), refreshing])
        of_other = [tensor.name for tensor in self.req_tensors.get(self.other)]
        if values and values[0] > 5:
            self.met.append([step, of_other])
        return values[0] > 5


class Missing(Rule):
    """Asks for a tensor that there is not."""

    def set_required_tensors(self, step):
        self.req_tensors.add("nothing", [step])

    def invoke_at_step(self, step):
        raise AssertionError


class Once(Rule):
    """Ends at its first finding."""

    def invoke(self, step):
        raise exceptions.RuleEvaluationConditionMet(self.rule_name, step, end_of_rule=True)

    def invoke_at_step(self, step):
        raise AssertionError


def outcome(call):
    """What a call raises: its class, and the step it tells."""
    try:
        return call()
    except Exception as error:
        return [type(error).__name__, str(error), getattr(error, "step", None)]


def main():
    trial, other = create_trial(RUN), create_trial(RUN, name="other")
    found = {}
    for threshold in ("1e-7", 0.5):
        rule = VanishingGradientRule(trial, threshold)
        ends = [outcome(lambda rule=rule: rules.invoke_rule(rule, start_step=0))]
        ends.append(outcome(lambda rule=rule: invoker.invoke_rule(rule, start_step=5, end_step=21)))
        ends.append(outcome(lambda rule=rule: rules.invoke_rule(rule, end_step=100, raise_eval_cond=True)))
        found[f"vanishing {threshold}"] = [rule.met, ends, rule.rule_name, rule.report]
    rule = Required(trial, other)
    found["required"] = [outcome(lambda: rules.invoke_rule(rule, end_step=100)), rule.met, rule.seen]
    found["after"] = [one.dynamic_refresh for one in (trial, other)]
    missing = Missing(trial, None)
    found["missing"] = [outcome(lambda: missing.invoke(0)), outcome(lambda: rules.invoke_rule(missing, None, 30))]
    found["unsaved"] = outcome(lambda: VanishingGradientRule(trial).invoke(3))
    found["once"] = outcome(lambda: rules.invoke_rule(Once(trial, "")))
    found["abstract"] = outcome(lambda: Rule(trial, "") and None)[0]
    found["actions"] = [
        outcome(lambda text=text: Once(trial, text) and None)
        for text in ("", " ", None, "{}", "[]", '[1, {"name": "other"}]', '{"name": "sms"}', '"text"')
    ]
    print(json.dumps(found))


main()
