"""Finds the hook configuration and turns it into `HookSettings`: the old system's keys, merged in its order.

For each mode and each of the four step fields the last of these that sets it wins:

1. the framework's default: every 500 steps from step 0 on, without end or further steps
2. the hook's key (`save_interval`)
3. the hook's key for the mode (`train.save_interval`)
4. the collection's key
5. the collection's key for the mode

Reductions do not merge: a collection with a `reductions` key says everything itself. `save_raw_tensor` and
`save_shape` without it change just that in what the hook says. Raw tensors are saved where there are no
reductions, and beside reductions where `save_raw_tensor` asks for it; `save_shape` never takes them away.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, TypeVar

from smd_agent.config import env, keys, values
from smd_agent.config.json_file import Source, read_object
from smd_agent.config.keys import DEFAULT_OUT_DIR, Key
from smd_agent.config.settings import CollectionSettings, HookSettings
from smd_agent.config.values import Section
from smd_agent.core.collection_keys import BUILT_IN_NAMES
from smd_agent.core.modes import ModeKeys
from smd_agent.core.reduction_config import ReductionConfig
from smd_agent.core.save_config import DEFAULT_SAVE_INTERVAL, SaveConfig, SaveConfigMode
from smd_agent.errors import ConfigError

__all__ = ["DEFAULT_OUT_DIR", "Source", "find_source", "load_settings"]

T = TypeVar("T")

MODE_PREFIXES = tuple(mode.name.lower() for mode in ModeKeys)

# Values by key as it stands in the file, such as `end_step` or `eval.end_step`.
StepKeys = Mapping[str, Any]


def find_source() -> Source | None:
    """Return where this process is told what to capture, None if nowhere.

    The launcher's variable comes first, then the hook file's, then the standard place if a file is there.
    """
    inline = env.hook_json()
    if inline is not None:
        return Source(env.HOOK, text=inline)
    path = env.config_path()
    if path is not None:
        return Source(path, origin=env.CONFIG_PATH)
    return Source(env.DEFAULT_CONFIG_PATH) if os.path.isfile(env.DEFAULT_CONFIG_PATH) else None


def load_settings(source: Source, default_save_interval: int = DEFAULT_SAVE_INTERVAL) -> HookSettings:
    """Read, check and merge a hook configuration.

    Raises ConfigError, one sentence that names file, key, value and what is allowed.
    """
    content, twice = read_object(source)
    warnings: list[str] = []
    top = Section(source.name, "", content, warnings)
    for key in twice:
        top.warn(f"the key {key} stands there twice and the last one counts")
    out_dir = _take(top, keys.LOCAL_PATH) or DEFAULT_OUT_DIR
    hook = top.section(keys.HOOK_PARAMETERS.name)
    listed = _take(top, keys.COLLECTIONS) or []
    for ignored in keys.IGNORED:
        _take(top, ignored)
    top.warn_unknown()

    hook_steps = _step_keys(hook)
    default = SaveConfigMode(save_interval=default_save_interval)
    reduction_config = _hook_reductions(hook)
    include_regex = tuple(_regexes(hook))
    named = _take(hook, keys.INCLUDE_COLLECTIONS) or []
    save_all = _take(hook, keys.SAVE_ALL)
    include_workers = _take(hook, keys.INCLUDE_WORKERS)
    dry_run = _take(hook, keys.DRY_RUN)
    tensorboard_dir = _tensorboard_dir(hook, out_dir)
    hook.warn_unknown()

    collections: dict[str, CollectionSettings] = {}
    for number, entry in enumerate(listed):
        collection = _collection(top, number, entry, hook_steps, default, reduction_config)
        collections[collection.name] = _after(collections.get(collection.name), collection, top)
    _warn_of_empty(top, named, collections)
    return HookSettings(
        out_dir=out_dir,
        source=source.name,
        save_config=_merged([hook_steps], default),
        reduction_config=reduction_config,
        include_regex=include_regex,
        include_collections=tuple(dict.fromkeys([*named, *collections])),
        save_all=bool(save_all),
        include_workers=include_workers or "one",
        dry_run=bool(dry_run),
        export_tensorboard=tensorboard_dir is not None,
        tensorboard_dir=tensorboard_dir,
        collections=tuple(collections.values()),
        warnings=tuple(warnings),
    )


def _collection(
    top: Section,
    number: int,
    content: object,
    hook_steps: StepKeys,
    default: SaveConfigMode,
    hook_reductions: ReductionConfig | None,
) -> CollectionSettings:
    entry = top.item(keys.COLLECTIONS.name, number, content)
    name = _take(entry, keys.COLLECTION_NAME)
    if name is None:
        raise ConfigError(
            f"{entry.file}: {entry.path}CollectionName is missing, allowed is a collection's name (a string)"
        )
    parameters = entry.section(keys.COLLECTION_PARAMETERS.name)
    entry.warn_unknown()
    parameters.path = f"CollectionConfigurations[{name}]."
    own_steps = _step_keys(parameters)
    collection = CollectionSettings(
        name=name,
        include_regex=tuple(_regexes(parameters)),
        save_config=_merged([hook_steps, own_steps], default) if own_steps else None,
        reduction_config=_collection_reductions(parameters, hook_reductions),
        save_histogram=_take(parameters, keys.SAVE_HISTOGRAM),
    )
    parameters.warn_unknown()
    return collection


def _take(section: Section, key: Key[T]) -> T | None:
    return section.take(key.name, key.kind)


def _step_keys(section: Section) -> StepKeys:
    section.lower_prefixes(MODE_PREFIXES)
    found = {}
    for prefix in ("", *(f"{mode}." for mode in MODE_PREFIXES)):
        for key in keys.STEPS:
            value = section.take(prefix + key.name, key.kind)
            if value is not None:
                found[prefix + key.name] = value
    return found


def _merged(layers: list[StepKeys], default: SaveConfigMode) -> SaveConfig:
    rules = {}
    for mode in ModeKeys:
        fields = default.to_json_dict()
        for layer in layers:
            for prefix in ("", f"{mode.name.lower()}."):
                fields.update({name: layer[prefix + name] for name in fields if prefix + name in layer})
        rules[mode] = SaveConfigMode.from_dict(fields)
    return SaveConfig(rules)


def _hook_reductions(hook: Section) -> ReductionConfig | None:
    tokens, raw, shape = _reduction_keys(hook)
    if tokens is None and raw is None and shape is None:
        return None
    tokens = tokens or []
    return _something(hook, tokens, not tokens if raw is None else raw, bool(shape))


def _collection_reductions(parameters: Section, of_hook: ReductionConfig | None) -> ReductionConfig | None:
    tokens, raw, shape = _reduction_keys(parameters)
    if tokens is None and raw is None and shape is None:
        return None
    if tokens is not None:
        return _something(parameters, tokens, not tokens if raw is None else raw, bool(shape))
    base = of_hook or ReductionConfig(save_raw_tensor=True)
    return _something(
        parameters,
        base.to_tokens(),
        base.save_raw_tensor if raw is None else raw,
        base.save_shape if shape is None else shape,
    )


def _reduction_keys(section: Section) -> tuple[list[str] | None, bool | None, bool | None]:
    return (
        _take(section, keys.REDUCTIONS),
        _take(section, keys.SAVE_RAW_TENSOR),
        _take(section, keys.SAVE_SHAPE),
    )


def _something(section: Section, tokens: list[str], raw: bool, shape: bool) -> ReductionConfig | None:
    if tokens or raw or shape:
        return ReductionConfig.from_tokens(tokens, raw, shape)
    section.warn(f"{section.path}save_raw_tensor is ignored: without reductions and save_shape nothing would be saved")
    return None


def _regexes(section: Section) -> list[str]:
    found = _take(section, keys.INCLUDE_REGEX) or []
    if "" in found:
        section.warn(f"an empty regex in {section.path}include_regex is ignored: it would match every tensor")
    return [regex for regex in found if regex]


def _after(earlier: CollectionSettings | None, later: CollectionSettings, top: Section) -> CollectionSettings:
    if earlier is None:
        return later
    top.warn(
        f"CollectionConfigurations lists {later.name} more than once: "
        "the regexes add up, the steps are those of the last entry"
    )
    histogram = earlier.save_histogram if later.save_histogram is None else later.save_histogram
    return CollectionSettings(
        name=later.name,
        include_regex=(*earlier.include_regex, *later.include_regex),
        save_config=later.save_config,
        reduction_config=later.reduction_config or earlier.reduction_config,
        save_histogram=histogram,
    )


def _warn_of_empty(top: Section, named: list[str], collections: Mapping[str, CollectionSettings]) -> None:
    for name in dict.fromkeys([*named, *collections]):
        has_regex = name in collections and collections[name].include_regex
        if not has_regex and name not in BUILT_IN_NAMES:
            missing = "is not built in and has no include_regex, so nothing joins it by itself"
            top.warn(f"collection {name} {missing}{values.nearest(name, sorted(BUILT_IN_NAMES))}")


def _tensorboard_dir(hook: Section, out_dir: str) -> str | None:
    wanted = _take(hook, keys.EXPORT_TENSORBOARD)
    folder = _take(hook, keys.TENSORBOARD_DIR)
    if env.in_training_job():
        return _tensorboard_dir_of_job()
    if folder is None and wanted:
        folder = os.path.join(out_dir, "tensorboard")
    return None if wanted is False else folder


def _tensorboard_dir_of_job() -> str | None:
    path = env.tensorboard_config_path()
    if not os.path.isfile(path):
        return None
    content, _ = read_object(Source(path))
    return _take(Section(path, "", content, []), keys.LOCAL_PATH)
