"""Parameters that XGBoost is given and does not read, of which the one that was meant is known.

XGBoost takes parameters by name and only warns of names that it does not know. A parameter is read if its name is in
the model's configuration, which has the names of all parts of the model and their aliases.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import xgboost
from xgboost.callback import EarlyStopping

from smd_agent.framework.plain_access import is_a

ROUNDS = "num_boost_round"
STOPPING = "early_stopping_rounds"
# Names of arguments of ``train``, and of the same in estimators and other libraries.
_OF_ROUNDS = (ROUNDS, "n_estimators", "num_round", "num_rounds", "nrounds", "n_rounds", "num_iterations", "max_iter")
_ARGUMENTS = {**dict.fromkeys(_OF_ROUNDS, ROUNDS), STOPPING: STOPPING, "early_stopping_round": STOPPING}
_ALIASES = (
    *({"eta", "learning_rate"}, {"gamma", "min_split_loss"}, {"alpha", "reg_alpha"}, {"lambda", "reg_lambda"}),
    *({"colsample_bytree"}, {"subsample"}),
)
# How fast and how it is told, which is no matter of the model.
_OF_NO_MATTER = {"nthread", "n_jobs", "seed", "random_state", "verbosity", "validate_parameters", "seed_per_iteration"}
_MAY_BE_LISTS = {"eval_metric", "monotone_constraints", "interaction_constraints"}
# Shorter words are often names of something else when a letter differs.
_SHORTEST = 6
# No class of the program's, which may compare in its own way.
_NUMBERS = (int, float, np.int32, np.int64, np.float32, np.float64)


def unread(call: Mapping[str, Any], config: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the name of each parameter that is not read, and of that which was meant and is not given either.

    Args:
        call: arguments of ``xgboost.train`` or ``xgboost.cv``, with ``params`` by name; ``told_rounds`` if the number
            of rounds is given.
        config: the model's configuration.
    """
    given = {name: value for name, value in (call.get("params") or {}).items() if value is not None}
    values = {**dict(_settings(config)), "eval_metric": "", "num_output_group": ""}
    read = {*values, *xgboost.get_config()}
    for name, value in given.items():
        if name in read or not name.replace("-", "_").isidentifier():
            continue
        argument = _ARGUMENTS.get(name.lower().replace("-", "_"))
        if argument:
            if _is_number(value) and _is_wanting(argument, value, call):
                yield name, argument
            continue
        for meant in sorted(read - _OF_NO_MATTER):
            if _is_misspelt(name, meant) and not _same(meant) & {*given} and _fits(value, meant, values.get(meant)):
                yield name, meant
                break


def _settings(config: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """All names of a configuration with their values, of whatever part."""
    for name, value in config.items():
        yield name, value
        for part in value if is_a(value, list) else (value,):
            if is_a(part, dict):
                yield from _settings(part)


def _is_wanting(argument: str, value: Any, call: Mapping[str, Any]) -> bool:
    """True if the training was not told this argument in any other way."""
    if argument == ROUNDS:
        return not call.get("told_rounds") and call.get("xgb_model") is None and value != call.get(ROUNDS)
    callbacks = call.get("callbacks") or ()
    if "evals" in call and not call["evals"]:
        return False
    return not call.get(STOPPING) and not any(is_a(one, EarlyStopping) for one in callbacks)


def _same(name: str) -> set[str]:
    return next((names for names in _ALIASES if name in names), {name})


def _is_number(value: Any) -> bool:
    return type(value) in _NUMBERS


def _fits(value: Any, name: str, used: Any) -> bool:
    """True if the value is of the kind that the parameter of this name has."""
    if name in _MAY_BE_LISTS:
        return is_a(value, (str, list, tuple))
    try:
        float(used)
    except (TypeError, ValueError):
        return is_a(used, str) and is_a(value, str)
    return _is_number(value) or is_a(value, bool)


def _is_misspelt(name: str, meant: str) -> bool:
    """True if the names differ in capitals and signs alone, or in one letter that is wrong, missing, added or moved."""
    one, other = (re.sub("[^a-z0-9]", "", text.lower()) for text in (name, meant))
    if one == other:
        return len(one) > 1
    if min(len(one), len(other)) < _SHORTEST or re.sub("[^0-9]", "", one) != re.sub("[^0-9]", "", other):
        return False
    start = next((i for i, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))
    left, right = one[start:], other[start:]
    moved = left[:2] == right[:2][::-1] and left[2:] == right[2:]
    return moved or left[1:] == right[1:] or left[1:] == right or left == right[1:]
