"""Prints, as JSON, what smdebug has for reading a run: functions with their arguments and defaults, and exceptions.

Run by the interpreter that has the real smdebug. ``old_reading_api.json`` is its output.
"""

import inspect
import json

import smdebug.exceptions
from old_signatures import parameters
from smdebug.core.tensor import StepState, Tensor
from smdebug.trials import LocalTrial, S3Trial, create_trial
from smdebug.trials.trial import Trial

# What the reader calls while it fills itself; no program does.
INSIDE = {"Tensor": {"__init__", "add_step", "add_reduction_step"}, "Trial": {"__init__"}}


def methods(name, cls):
    own = {key: value for key, value in vars(cls).items() if callable(value)}
    asked = (key for key in own if key == "__init__" or not key.startswith("_"))
    return {key: parameters(own[key]) for key in sorted(asked) if key not in INSIDE.get(name, ())}


classes = {"Trial": Trial, "LocalTrial": LocalTrial, "S3Trial": S3Trial, "Tensor": Tensor}
errors = {
    name: {"bases": sorted(base.__name__ for base in error.__mro__[1:]), "arguments": parameters(error.__init__)}
    for name, error in sorted(vars(smdebug.exceptions).items())
    if inspect.isclass(error) and issubclass(error, Exception)
}
print(
    json.dumps(
        {
            "create_trial": parameters(create_trial),
            "classes": {name: methods(name, cls) for name, cls in classes.items()},
            "StepState": {state.name: state.value for state in StepState},
            "errors": errors,
        },
        indent=1,
        sort_keys=True,
    )
)
