"""Everything a trial tells, as plain data: made by the original library and by ours, the two can be compared.

usage: python trial_dump.py RUN OUT.pickle      by an interpreter that has the original library
"""

import pickle
import sys


def dump(trial, mode_keys):
    """Ask a trial, of either library, everything about its run."""
    modes = [mode_keys.GLOBAL, *sorted(trial.modes(), key=lambda mode: mode.value)]
    everywhere = trial.steps()
    return {
        "names": trial.tensor_names(),
        "names by mode": {mode.name: trial.tensor_names(mode=mode) for mode in modes},
        "names by step": {step: trial.tensor_names(step=step) for step in everywhere},
        "names by regex": [trial.tensor_names(regex=regex) for regex in ("weight$", "^gradient/", ["a", "1"])],
        "names by collection": {name: trial.tensor_names(collection=name) for name in trial.collections()},
        "modes": [mode.name for mode in modes],
        "steps": {mode.name: trial.steps(mode=mode) for mode in modes},
        "incomplete": {mode.name: trial.steps(mode=mode, show_incomplete_steps=True) for mode in modes},
        "mode of step": {step: trial.mode(step).name for step in everywhere},
        "mode step of step": {step: trial.mode_step(step) for step in everywhere},
        "global step": {mode.name: [trial.global_step(mode, step) for step in trial.steps(mode)] for mode in modes},
        "states": {
            (mode.name, step): trial.has_passed_step(step, mode).name
            for mode in modes
            for step in range(everywhere[-1] + 3)
        },
        "workers": trial.workers(),
        "collections": {name: _collection(collection) for name, collection in trial.collections().items()},
        "tensors": {name: _tensor(trial.tensor(name), modes) for name in trial.tensor_names()},
    }


def _collection(collection):
    fields = collection.to_json_dict()
    reductions = fields["reduction_config"]
    return {
        "include_regex": fields["include_regex"],
        "tensor_names": sorted(fields["tensor_names"]),
        "save_config": fields["save_config"],
        "reductions": reductions and sorted(filter(None, reductions["reductions"].split(","))),
        "raw": reductions and reductions["save_raw_tensor"],
        "shape": reductions and reductions["save_shape"],
    }


def _tensor(tensor, modes):
    found = {"steps": {mode.name: tensor.steps(mode) for mode in modes}, "original_name": tensor.original_name}
    for mode in modes:
        for step in tensor.steps(mode):
            found[mode.name, step] = {
                "value": _or_error(tensor.value, step, mode),
                "shape": _or_error(lambda *place: tuple(tensor.shape(*place)), step, mode),
                "workers": tensor.workers(step, mode),
                "stored": _or_error(tensor.reduction_values, step, mode),
                "computed": {
                    op: _or_error(tensor.reduction_value, step, op, mode)
                    for op in ("min", "max", "mean", "sum", "prod")
                },
                "before": tensor.prev_steps(step, 3, mode),
            }
        found[mode.name, "missing"] = _or_error(tensor.value, 1_000_000, mode)
    return found


def _or_error(function, *args):
    try:
        return _plain(function(*args))
    except Exception as error:
        return (type(error).__name__, str(error))


def _plain(value):
    # Pickled arrays do not pass from NumPy 1 to NumPy 2 without a warning.
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if hasattr(value, "dtype"):
        return (value.dtype.str, value.shape, value.tobytes()) if value.size != 1 else value.item()
    return value


if __name__ == "__main__":
    from smdebug import modes
    from smdebug.trials import create_trial

    with open(sys.argv[2], "wb") as file:
        pickle.dump(dump(create_trial(sys.argv[1]), modes), file)
