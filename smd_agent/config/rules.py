"""The rules of a hook file: which they are, and what is saved for them beside what the file asks for anyhow."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from smd_agent.config import keys, precedence
from smd_agent.config.keys import LONGEST_NAME, Section, nearest
from smd_agent.config.rule_collections import Brought, brought_by, rule_names, rule_of
from smd_agent.config.settings import CollectionSettings, RuleSettings
from smd_agent.config.values import InvalidValue, regexes
from smd_agent.core.collection_keys import BUILT_IN_NAMES, SCALAR_COLLECTIONS, CollectionKeys
from smd_agent.core.modes import ModeKeys
from smd_agent.core.reduction_config import ReductionConfig
from smd_agent.core.save_config import SaveConfig, SaveConfigMode
from smd_agent.printable import shortened

# By one framework or another.
_SAVED_BY_DEFAULT = (CollectionKeys.LOSSES, CollectionKeys.METRICS, CollectionKeys.SM_METRICS)
# Told to every rule, whatever it is.
_OF_EVERY_RULE = ("base_trial", keys.RULE_TO_INVOKE.name)


@dataclass(frozen=True)
class Hook:
    """What a hook file says of all collections.

    Attributes:
        steps: its keys of steps.
        default: the framework's steps.
        reductions: its form; None saves whole tensors.
        included: names of the collections that it saves.
        save_all: whether it saves every tensor.
    """

    steps: precedence.StepKeys
    default: SaveConfigMode
    reductions: ReductionConfig | None
    included: frozenset[str]
    save_all: bool

    def saves(self, collection: str) -> bool:
        """Whether a collection is saved without any rule, and without an object of its own."""
        if self.save_all or collection in self.included or collection in _SAVED_BY_DEFAULT:
            return True
        return CollectionKeys.ALL in self.included and collection in BUILT_IN_NAMES


def rules_of(top: Section, listed: Sequence[object]) -> list[RuleSettings]:
    """Return the rules of the file; of one that is unknown, or is told what it does not know, a line is said.

    Args:
        top: the file.
        listed: its ``RuleConfigurations``.

    Raises:
        ConfigError: an object of the list is none, or has a key of another kind.
    """
    found = []
    for number, content in enumerate(listed):
        entry = top.item(keys.RULES, number, content)
        own_name = entry.take(keys.RULE_CONFIGURATION_NAME)
        parameters = dict(entry.take(keys.RULE_PARAMETERS) or {})
        for unused in keys.OF_SERVICE:
            entry.take(unused)
        entry.warn_unknown()
        told = Section(top.file, f"{entry.path}{keys.RULE_PARAMETERS.name}.", parameters, [])
        name = told.take(keys.RULE_TO_INVOKE) or own_name
        if name is None:
            entry.warn(f"{told.path}{keys.RULE_TO_INVOKE.name} is missing, allowed are {', '.join(rule_names())}")
            continue
        given = {key: value for key, value in parameters.items() if key not in _OF_EVERY_RULE and value is not None}
        _tell_of_unknown(entry, name, given, told.path)
        found.append(RuleSettings(name, given))
    return found


def _tell_of_unknown(entry: Section, name: str, given: Mapping[str, Any], path: str) -> None:
    known = rule_of(name)
    shown = shortened(name, LONGEST_NAME)
    if known is None:
        names = rule_names()
        allowed = f"allowed are {', '.join(names)}"
        entry.warn(f"{path}{keys.RULE_TO_INVOKE.name} is {shown}, {allowed}{nearest(name, names)}")
    elif known.is_report:
        entry.warn(f"{path}{keys.RULE_TO_INVOKE.name} is {shown}: no report is written, what it is about is saved")
    else:
        for key in given:
            if key not in known.parameters:
                allowed = f"allowed are {', '.join(known.parameters)}" if known.parameters else "there is none"
                entry.warn(f"{path}{shortened(key, LONGEST_NAME)} is no parameter of {name}, {allowed}")


def is_report(rule: RuleSettings) -> bool:
    """Whether this is no rule but a report."""
    known = rule_of(rule.name)
    return known is not None and known.is_report


def with_rules(
    collections: Mapping[str, CollectionSettings], rules: Sequence[RuleSettings], hook: Hook, top: Section
) -> dict[str, CollectionSettings]:
    """Return the collections of the file and those that rules look at.

    One that is saved anyhow keeps its steps and what is saved of it; what a rule lacks is added.
    """
    found = dict(collections)
    for rule in rules:
        for brought in brought_by(rule.name, rule.parameters):
            try:
                regexes([*brought.include_regex])
            except InvalidValue as unfit:
                top.warn(f"{keys.RULES.name}: a pattern of {rule.name} is left out, allowed are {unfit}")
                continue
            anyhow = brought.name in collections or hook.saves(brought.name)
            found[brought.name] = _with(found.get(brought.name), brought, hook, anyhow)
    return found


def _with(known: CollectionSettings | None, brought: Brought, hook: Hook, anyhow: bool) -> CollectionSettings:
    own = known or CollectionSettings(brought.name)
    patterns = tuple(dict.fromkeys((*own.include_regex, *brought.include_regex)))
    steps, form = own.save_config, own.reduction_config
    before = form or hook.reductions
    if not anyhow:
        wanted = precedence.merged_steps([hook.steps, brought.steps], hook.default)
        steps = wanted if steps is None else min(steps, wanted, key=_interval)
        # Nobody but rules wants these tensors, so what rules do without is left out.
        before = before or (ReductionConfig(save_shape=True) if known is None else None)
    before = before or ReductionConfig(save_raw_tensor=True)
    after = _enough(before, brought)
    if brought.name not in SCALAR_COLLECTIONS and after != before:
        form = after
    return replace(own, include_regex=patterns, save_config=steps, reduction_config=form)


def _enough(form: ReductionConfig, brought: Brought) -> ReductionConfig:
    """Return a form with what is needed beside what it has; statistics of whole tensors can be computed."""
    if form.save_raw_tensor:
        return form
    tokens = form.to_tokens()
    missing = [token for token in brought.reductions if token not in tokens]
    raw = not brought.reductions
    return ReductionConfig.from_tokens([*tokens, *missing], raw, form.save_shape, form.save_raw_up_to)


def _interval(steps: SaveConfig) -> int:
    return steps.get_save_config(ModeKeys.TRAIN).save_interval
