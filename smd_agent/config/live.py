"""The rules that are asked while training goes on, and what follows when they find something."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from smd_agent.config import keys
from smd_agent.config.keys import Section
from smd_agent.config.settings import LiveRule, RuleSettings

ALL = "all"
"""Stands for all rules that `check` asks unnamed."""


class LiveKeys(NamedTuple):
    """The keys of the file that hold for all rules; None for one that it does not have.

    names: of the rules, in the place of those that are configured.
    on_find: what they do.
    actions: what follows.
    """

    names: Sequence[str] | None
    on_find: str | None
    actions: tuple[Mapping[str, Any], ...]


def live_keys(hook: Section) -> LiveKeys:
    """Take the keys."""
    return LiveKeys(hook.take(keys.LIVE_RULES), hook.take(keys.ON_FIND), tuple(hook.take(keys.ACTIONS) or ()))


def live_rules(live: LiveKeys, configured: Sequence[RuleSettings], hook: Section) -> tuple[LiveRule, ...]:
    """Return the rules; of names that are none, a line is said.

    Args:
        live: the keys.
        configured: the rules of the file, which are asked as it says.
        hook: the part of the file that has the keys.
    """
    on_find = live.on_find or "warn"
    by_name = {
        rule.name: LiveRule(rule.name, rule.parameters, rule.on_find or on_find, (*live.actions, *rule.actions))
        for rule in configured
    }
    if live.names is None:
        found = [*by_name.values()]
    else:
        chosen = _chosen(live.names, hook)
        found = [by_name.get(name) or LiveRule(name, None, on_find, live.actions) for name in chosen]
    if not found and (on_find != "warn" or live.actions):
        hook.warn(f"{hook.path}{keys.ON_FIND.name} and {keys.ACTIONS.name} do nothing: no rule is asked while training")
    return tuple(found)


def unknown_name(name: str) -> str | None:
    """Return what is wrong with a name of a rule: itself, and what is allowed; None if nothing is."""
    # Not for every program that starts: few files have any.
    from smd_agent.config.rules import unknown_rule

    return None if name == ALL or name.endswith(".py") else unknown_rule(name, f", {ALL}, and Python files")


def _chosen(names: Sequence[str], hook: Section) -> list[str]:
    found: dict[str, None] = {}
    for name in names:
        why = unknown_name(name)
        if why is not None:
            hook.warn(f"{hook.path}{keys.LIVE_RULES.name} names {why}")
        else:
            found[os.path.abspath(os.path.expanduser(name)) if name.endswith(".py") else name] = None
    return [*found]
