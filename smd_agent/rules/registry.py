"""The rules that there are: those of ours, each in a file of its own, and those of a user's file."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import os
import pkgutil
from collections.abc import Mapping
from types import ModuleType
from typing import TypeVar

from smd_agent.errors import SMDebugValueError
from smd_agent.rules import builtin
from smd_agent.rules.built_in import BuiltInRule
from smd_agent.rules.rule import Rule

AnyRule = TypeVar("AnyRule", bound=Rule)


def built_in_rules() -> dict[str, type[BuiltInRule]]:
    """Return the rules of ours by name, in the order of their names."""
    found: dict[str, type[BuiltInRule]] = {}
    for module in pkgutil.iter_modules(builtin.__path__):
        for rule in _rules_in(importlib.import_module(f"{builtin.__name__}.{module.name}")):
            if issubclass(rule, BuiltInRule):
                found[rule.__name__] = rule
    return dict(sorted(found.items()))


def applied_unasked(rules: Mapping[str, type[AnyRule]]) -> dict[str, type[AnyRule]]:
    """Return the rules without those that are applied only where they are asked for by their names."""
    return {name: rule for name, rule in rules.items() if not getattr(rule, "only_by_name", False)}


def rules_of_file(path: str | os.PathLike[str]) -> dict[str, type[Rule]]:
    """Run a Python file and return the rules that it defines, by name.

    Raises:
        SMDebugValueError: it is no Python file that can be read, or defines none.
        Exception: whatever the file raises.
    """
    spec = importlib.util.spec_from_file_location("smd_agent_rules_of_file", path)
    if spec is None or spec.loader is None:
        raise SMDebugValueError(f"{path} is no Python file")
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except OSError as error:
        raise SMDebugValueError(f"{path} cannot be read: {error.strerror}") from error
    found = {rule.__name__: rule for rule in _rules_in(module)}
    if not found:
        raise SMDebugValueError(f"{path} defines no rule: no class that is made on smd_agent.rules.Rule")
    return found


def _rules_in(module: ModuleType) -> list[type[Rule]]:
    classes = (found for _, found in inspect.getmembers(module, inspect.isclass))
    return [
        found
        for found in classes
        if issubclass(found, Rule) and found.__module__ == module.__name__ and not inspect.isabstract(found)
    ]
