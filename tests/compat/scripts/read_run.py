"""What is read of a run, and asked of it by a rule, as with the old library: python read_run.py RUN; prints JSON."""

import json
import sys

import numpy as np
from smdebug import modes
from smdebug.analysis.utils import no_refresh, refresh
from smdebug.core.collection import CollectionKeys
from smdebug.core.tensor import StepState
from smdebug.exceptions import NoMoreData, RuleEvaluationConditionMet, StepUnavailable, TensorUnavailable
from smdebug.rules import Rule, invoke_rule
from smdebug.rules.action import Actions
from smdebug.trials import LocalTrial, Trial, create_trial
from smdebug.trials.utils import create_trial as same_function


class LargeGradients(Rule):
    def __init__(self, base_trial, threshold):
        super().__init__(base_trial, action_str="")
        self.threshold = threshold
        self.largest = {}

    def set_required_tensors(self, step):
        for name in self.base_trial.tensor_names(step=step, collection=CollectionKeys.GRADIENTS):
            self.req_tensors.add(name, steps=[step])

    def invoke_at_step(self, step):
        found = [float(np.abs(tensor.value(step)).max()) for tensor in self.req_tensors.get()]
        if found:
            self.largest[step] = max(found)
        return bool(found) and max(found) > self.threshold


def raised(function, *args, **kwargs):
    try:
        return function(*args, **kwargs)
    except (NoMoreData, RuleEvaluationConditionMet, StepUnavailable, TensorUnavailable) as error:
        return type(error).__name__


def main(run):
    trial = create_trial(run)
    assert isinstance(trial, (Trial, LocalTrial))
    assert same_function is create_trial
    name = trial.tensor_names(collection=CollectionKeys.GRADIENTS)[0]
    rule = LargeGradients(trial, threshold=0.0)
    answers = {
        "modes": sorted(mode.name for mode in trial.modes()),
        "steps": {mode.name: trial.steps(mode=mode) for mode in modes},
        "names": {key: trial.tensor_names(collection=key) for key in ("weights", "biases", "gradients", "losses")},
        "gradient": {step: trial.tensor(name).value(step).tolist() for step in trial.tensor(name).steps()},
        "state": trial.has_passed_step(0) is StepState.AVAILABLE,
        "missing": raised(trial.tensor, "nothing"),
        "met": raised(invoke_rule, rule, start_step=0, end_step=1, raise_eval_cond=True),
        "end": raised(invoke_rule, LargeGradients(trial, threshold=1e9)),
        "largest": rule.largest,
        "actions": type(Actions("", rule_name="mine")).__name__,
    }
    with no_refresh([trial]):
        answers["not refreshed"] = trial.dynamic_refresh
    with refresh(trial):
        answers["refreshed"] = trial.dynamic_refresh
    print(json.dumps(answers))


if __name__ == "__main__":
    main(sys.argv[1])
