"""The way from a hook file to `HookSettings`: it is read, checked and merged."""

from __future__ import annotations

from collections.abc import Mapping

from smd_agent.config import env, keys, precedence
from smd_agent.config.hook_file import Source, find_source, is_there, read_object
from smd_agent.config.job_files import folder_wanted
from smd_agent.config.keys import DEFAULT_OUT_DIR, LONGEST_NAME, Key, Section
from smd_agent.config.live import live_keys, live_rules
from smd_agent.config.placeholders import names_rank
from smd_agent.config.settings import (
    DEFAULT_BUNDLE_MEGABYTES,
    DEFAULT_SERIES_MEGABYTES,
    CollectionSettings,
    HookSettings,
    RuleSettings,
)
from smd_agent.config.suggestions import nearest
from smd_agent.core.budget import SHARE
from smd_agent.core.collection_keys import BUILT_IN_NAMES
from smd_agent.core.modes import ModeKeys
from smd_agent.core.reduction_config import ReductionConfig
from smd_agent.core.save_config import DEFAULT_SAVE_INTERVAL, SaveConfig, SaveConfigMode
from smd_agent.errors import ConfigError
from smd_agent.formats.addresses import is_address, plain
from smd_agent.printable import shortened

_DOUBLED_KEYS_TOLD = 5
_OFF_BY_DEFAULT = (keys.SAVE_ALL, keys.SAVE_EARLY, keys.SAVE_LAST, keys.WITHIN_BUDGET, keys.DRY_RUN, keys.BLAME)


def read_settings(path: str | None = None, default_save_interval: int = DEFAULT_SAVE_INTERVAL) -> HookSettings:
    """The settings in this file; with None, in the place where the environment says what to capture.

    ``default_save_interval``, in steps, is the framework's.

    Raises:
        FileNotFoundError: there is no such file, or no such place.
        ConfigError: its content is wrong.
    """
    source = Source(path) if path is not None else find_source()
    if source is None or not is_there(source):
        name = env.DEFAULT_CONFIG_PATH if source is None else source.name
        raise FileNotFoundError(f"there is no hook configuration at {name}")
    return load_settings(source, default_save_interval)


def load_settings(source: Source, default_save_interval: int = DEFAULT_SAVE_INTERVAL) -> HookSettings:
    """Read, check and merge a hook configuration.

    Raises ConfigError, one sentence that names file, key, value and what is allowed.
    """
    content, twice = read_object(source)
    warnings: list[str] = []
    top = Section(source.name, "", content, warnings)
    for key in twice[:_DOUBLED_KEYS_TOLD]:
        top.warn(f"the key {shortened(key, LONGEST_NAME)} stands there twice and the last one counts")
    out_dir = top.take(keys.LOCAL_PATH) or DEFAULT_OUT_DIR
    hook = top.section(keys.HOOK_PARAMETERS)
    listed = top.take(keys.COLLECTIONS) or []
    listed_rules, ignored = top.take(keys.RULES) or [], top.take(keys.IGNORED_RULES) or []
    upload_to = _upload_to(top, out_dir)
    top.warn_unknown()

    hook_steps = precedence.step_keys(hook)
    default = SaveConfigMode(save_interval=default_save_interval)
    reduction_config = precedence.hook_reductions(hook)
    include_regex = tuple(_regexes(hook))
    named = hook.take(keys.INCLUDE_COLLECTIONS) or []
    on = {key: bool(hook.take(key)) for key in _OFF_BY_DEFAULT}
    include_workers, step = hook.take(keys.INCLUDE_WORKERS), hook.take(keys.STEP)
    live = live_keys(hook)
    series_megabytes = _megabytes(hook, keys.SERIES, keys.SERIES_MEGABYTES, DEFAULT_SERIES_MEGABYTES)
    bundle_megabytes = _megabytes(hook, keys.BUNDLES, keys.BUNDLE_MEGABYTES, DEFAULT_BUNDLE_MEGABYTES)
    tap, budget = hook.take(keys.TAP), hook.take(keys.BUDGET)
    tensorboard_dir = _tensorboard_dir(hook, out_dir)
    hook.warn_unknown()

    collections: dict[str, CollectionSettings] = {}
    for number, entry in enumerate(listed):
        collection = _collection(top, number, entry, hook_steps, default, reduction_config)
        collections[collection.name] = _after(collections.get(collection.name), collection, top)
    unfilled = _warn_of_empty(top, named, collections)
    included = tuple(dict.fromkeys([*named, *collections]))
    rules: list[RuleSettings] = []
    if listed_rules or ignored:
        # Not for every program that starts: few files have any.
        from smd_agent.config.rules import Hook, is_report, known_rules, rules_of, with_rules

        asked = rules_of(top, listed_rules)
        ignored = known_rules(top, keys.IGNORED_RULES.name, ignored)
        all_of = Hook(hook_steps, default, reduction_config, frozenset(included), on[keys.SAVE_ALL])
        collections = with_rules(collections, asked, all_of, top)
        included = tuple(dict.fromkeys([*included, *collections]))
        rules = [rule for rule in asked if not is_report(rule)]
    save_config = precedence.merged_steps([hook_steps], default)
    _warn_of_ends(top, save_config, collections)
    return HookSettings(
        out_dir=out_dir,
        apart=names_rank(str(content.get(keys.LOCAL_PATH.name))),
        source=source.name,
        save_config=save_config,
        reduction_config=reduction_config,
        include_regex=include_regex,
        include_collections=included,
        save_all=on[keys.SAVE_ALL],
        save_early=on[keys.SAVE_EARLY],
        save_last=on[keys.SAVE_LAST],
        within_budget=on[keys.WITHIN_BUDGET],
        include_workers=include_workers or "one",
        dry_run=on[keys.DRY_RUN],
        step=step or "update",
        export_tensorboard=tensorboard_dir is not None,
        tensorboard_dir=tensorboard_dir,
        collections=tuple(collections.values()),
        upload_to=upload_to,
        series_megabytes=series_megabytes,
        budget=SHARE if budget is None else budget,
        blame=on[keys.BLAME],
        bundle_megabytes=bundle_megabytes,
        tap=tap is not False,
        rules=tuple(rules),
        ignored_rules=tuple(ignored),
        live_rules=live_rules(live, rules, hook),
        warnings=tuple(warnings),
        unfilled=unfilled,
    )


def _upload_to(top: Section, out_dir: str) -> str | None:
    wanted: str | None = None
    for key in keys.UPLOADS:
        value = top.take(key)
        if not value or env.in_training_job():
            continue
        why = "it is no address such as s3://bucket/run"
        if isinstance(value, str) and is_address(value):
            why = f"the run goes to {shortened(out_dir if wanted is None else wanted)}"
            if not is_address(out_dir) and wanted is None:
                wanted = plain(value)
                continue
        top.warn(f"{key.name} is not used: {why}")
    return wanted


def _collection(
    top: Section,
    number: int,
    content: object,
    hook_steps: precedence.StepKeys,
    default: SaveConfigMode,
    hook_reductions: ReductionConfig | None,
) -> CollectionSettings:
    entry = top.item(keys.COLLECTIONS, number, content)
    name = entry.take(keys.COLLECTION_NAME)
    if name is None:
        raise ConfigError(
            f"{entry.file}: {entry.path}CollectionName is missing, allowed is a collection's name (a string)"
        )
    parameters = entry.section(keys.COLLECTION_PARAMETERS)
    entry.warn_unknown()
    parameters.path = f"CollectionConfigurations[{shortened(name, LONGEST_NAME)}]."
    own_steps = precedence.step_keys(parameters)
    collection = CollectionSettings(
        name=name,
        include_regex=tuple(_regexes(parameters)),
        save_config=precedence.merged_steps([hook_steps, own_steps], default) if own_steps else None,
        reduction_config=precedence.collection_reductions(parameters, hook_reductions),
        save_histogram=parameters.take(keys.SAVE_HISTOGRAM),
    )
    parameters.warn_unknown()
    return collection


def _regexes(section: Section) -> list[str]:
    found = section.take(keys.INCLUDE_REGEX) or []
    if "" in found:
        section.warn(f"an empty regex in {section.path}include_regex is ignored: it would match every tensor")
    return [regex for regex in found if regex]


def _after(earlier: CollectionSettings | None, later: CollectionSettings, top: Section) -> CollectionSettings:
    if earlier is None:
        return later
    top.warn(
        f"CollectionConfigurations lists {shortened(later.name, LONGEST_NAME)} more than once: "
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


def _warn_of_empty(top: Section, named: list[str], collections: Mapping[str, CollectionSettings]) -> tuple[str, ...]:
    """Name the collections that no tensor can join unless the program fills them."""
    found = []
    for name in dict.fromkeys([*named, *collections]):
        has_regex = name in collections and collections[name].include_regex
        if not has_regex and name not in BUILT_IN_NAMES:
            shown = shortened(name, LONGEST_NAME)
            meant = nearest(shown, sorted(BUILT_IN_NAMES))
            top.warn(f"there is no collection {shown}: it is not built in, and has no include_regex here{meant}")
            found.append(name)
    return tuple(found)


def _megabytes(hook: Section, wanted: Key[bool], size: Key[int], default: int) -> int:
    on, megabytes = hook.take(wanted), hook.take(size)
    return 0 if on is False else megabytes or default


def _tensorboard_dir(hook: Section, out_dir: str) -> str | None:
    wanted, board = hook.take(keys.EXPORT_TENSORBOARD), hook.take(keys.TENSORBOARD_DIR)
    found = folder_wanted(wanted, board, out_dir)
    if found is None and (board is not None or wanted) and env.in_training_job():
        why = f"in a training job {env.tensorboard_config_path()} names their folder, and it does not"
        hook.warn(f"no TensorBoard files are written: {why}")
    return found


def _warn_of_ends(top: Section, of_hook: SaveConfig, collections: Mapping[str, CollectionSettings]) -> None:
    """Name the modes of which no step is saved because they end before they start; an end at 0 is how to say none."""
    found = {keys.HOOK_PARAMETERS.name: of_hook}
    for one in collections.values():
        if one.save_config is not None and one.save_config != of_hook:
            found[f"{keys.COLLECTIONS.name}[{shortened(one.name, LONGEST_NAME)}]"] = one.save_config
    for where, steps in found.items():
        rules = {mode: steps.get_save_config(mode) for mode in ModeKeys}
        never = {mode: rule for mode, rule in rules.items() if rule.start_step > 0 and rule.next_step(0) is None}
        for rule in list(never.values())[:1]:
            of = "" if len(never) == len(rules) else f" of {', '.join(mode.name for mode in never)}"
            top.warn(
                f"{where} saves no step{of}: start_step is {rule.start_step}, save_interval {rule.save_interval}, "
                f"and end_step, {rule.end_step}, is the first step that is not saved any more"
            )
