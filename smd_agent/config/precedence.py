"""The order in which the keys of a hook configuration win, which is the old system's.

For each mode and each of the four step fields the last of these that sets it wins:

1. the framework's default: every 500 steps from step 0 on, without end or further steps
2. the hook's key (`save_interval`)
3. the hook's key for the mode (`train.save_interval`)
4. the collection's key
5. the collection's key for the mode

Reductions do not merge: a collection with a `reductions` key says everything itself. `save_raw_tensor`, `save_shape`
and `save_raw_up_to` without it change just that in what the hook says. Raw tensors are saved where there are no
reductions, and beside reductions where `save_raw_tensor` asks for it; `save_shape` never takes them away.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from smd_agent.config import keys
from smd_agent.config.keys import Section
from smd_agent.core.modes import ModeKeys
from smd_agent.core.reduction_config import ReductionConfig
from smd_agent.core.save_config import SaveConfig, SaveConfigMode

MODE_PREFIXES = tuple(mode.name.lower() for mode in ModeKeys)

# Values by key as it stands in the file, such as `end_step` or `eval.end_step`.
StepKeys = Mapping[str, Any]


def step_keys(section: Section) -> StepKeys:
    """The step keys of an object, as they stand in it."""
    section.lower_prefixes(MODE_PREFIXES)
    found = {}
    for prefix in ("", *(f"{mode}." for mode in MODE_PREFIXES)):
        for key in keys.STEPS:
            value = section.take(key, prefix)
            if value is not None:
                found[prefix + key.name] = value
    return found


def merged_steps(layers: list[StepKeys], default: SaveConfigMode) -> SaveConfig:
    """The steps of every mode.

    Args:
        layers: step keys of the hook and of the collection; a later one wins.
        default: the framework's.
    """
    rules = {}
    for mode in ModeKeys:
        fields = default.to_json_dict()
        for layer in layers:
            for prefix in ("", f"{mode.name.lower()}."):
                fields.update({name: layer[prefix + name] for name in fields if prefix + name in layer})
        rules[mode] = SaveConfigMode.from_dict(fields)
    return SaveConfig(rules)


def hook_reductions(hook: Section) -> ReductionConfig | None:
    """The reductions that the hook asks for; None if it says nothing of them."""
    given = _reduction_keys(hook)
    return _something(hook, given) if given else None


def collection_reductions(parameters: Section, of_hook: ReductionConfig | None) -> ReductionConfig | None:
    """The reductions of a collection, beside those of the hook; None if it says nothing of them."""
    given = _reduction_keys(parameters)
    if given and keys.REDUCTIONS.name not in given:
        base = of_hook or ReductionConfig(save_raw_tensor=True)
        kept = (base.to_tokens(), base.save_raw_tensor, base.save_shape, base.save_raw_up_to)
        given = {**{key.name: value for key, value in zip(_REDUCTION_KEYS, kept, strict=True)}, **given}
    return _something(parameters, given) if given else None


_REDUCTION_KEYS: tuple[keys.Key[Any], ...] = (
    keys.REDUCTIONS,
    keys.SAVE_RAW_TENSOR,
    keys.SAVE_SHAPE,
    keys.SAVE_RAW_UP_TO,
)


def _reduction_keys(section: Section) -> dict[str, Any]:
    found = {key.name: section.take(key) for key in _REDUCTION_KEYS}
    return {name: value for name, value in found.items() if value is not None}


def _something(section: Section, given: Mapping[str, Any]) -> ReductionConfig | None:
    tokens, raw, shape, up_to = (given.get(key.name) for key in _REDUCTION_KEYS)
    if raw is None:
        raw = not tokens
    if tokens or raw or shape:
        return ReductionConfig.from_tokens(tokens or [], raw, bool(shape), up_to or 0)
    section.warn(f"{section.path}save_raw_tensor is ignored: without reductions and save_shape nothing would be saved")
    return None
