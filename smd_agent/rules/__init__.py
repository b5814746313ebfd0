"""Rules, which tell what is wrong with a run: those of ours, and what old programs make their own with.

``Rule`` and ``invoke_rule`` are here under the names that they have in smdebug, and so is each rule of ours, such as
``VanishingGradient``; `smd_agent.rules.registry` lists them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from smd_agent.rules.rule import RequiredTensors, RequiredTensorsForTrial, Rule
    from smd_agent.rules.rule_invoker import invoke_rule

__all__ = ["RequiredTensors", "RequiredTensorsForTrial", "Rule", "invoke_rule"]

_HOMES = {
    "RequiredTensors": "smd_agent.rules.rule",
    "RequiredTensorsForTrial": "smd_agent.rules.rule",
    "Rule": "smd_agent.rules.rule",
    "invoke_rule": "smd_agent.rules.rule_invoker",
}


def __getattr__(name: str) -> object:
    from importlib import import_module

    if name in _HOMES:
        value: object = getattr(import_module(_HOMES[name]), name)
    elif name[:1].isupper() and name in (rules := import_module("smd_agent.rules.registry").built_in_rules()):
        value = rules[name]
    else:
        raise AttributeError(f"module 'smd_agent.rules' has no attribute {name!r}")
    globals()[name] = value
    return value
