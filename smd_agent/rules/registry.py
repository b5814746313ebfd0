"""Rules that there are, and those that a run is judged by unnamed: of its configuration, if it has any.

Rules of ours stand each in a file of its own, others in a user's file. Those of a configuration have the documented
defaults, and what they are told there.
"""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import os
import pkgutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import ModuleType
from typing import TYPE_CHECKING, Any, TypeVar

from smd_agent.core.patterns import UnfitPattern, name_pattern
from smd_agent.errors import SMDebugError, SMDebugValueError
from smd_agent.printable import shortened
from smd_agent.rules import builtin
from smd_agent.rules.built_in import BuiltInRule
from smd_agent.rules.finding import NotJudged
from smd_agent.rules.judging import Judging
from smd_agent.rules.not_judged import with_reasons
from smd_agent.rules.parameters import names
from smd_agent.rules.rule import Rule

if TYPE_CHECKING:
    from smd_agent.analysis.trial import Trial
    from smd_agent.rules.judging import Verdict

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


_LONGEST = 60
OTHER_RUNS = frozenset({"other_trials", "other_trial"})
"""Parameters that name other runs."""


def configured_rules(
    entries: Iterable[tuple[str, Mapping[str, Any]]],
    known: Mapping[str, type[Rule]],
    other_trials: Sequence[Trial] | None = None,
) -> tuple[list[BuiltInRule], list[NotJudged]]:
    """Make the rules of a configuration; of those that cannot be made, say why.

    Args:
        entries: name and parameters of each.
        known: the rules that there are, by name.
        other_trials: for those that compare runs.
    """
    made: list[BuiltInRule] = []
    left: list[NotJudged] = []
    for name, parameters in entries:
        rule = known.get(name)
        if rule is None or not issubclass(rule, BuiltInRule):
            left.append(NotJudged(shortened(name, _LONGEST), "there is no rule of this name", "see check --list"))
            continue
        try:
            made.append(rule.as_documented(_given(parameters, other_trials), other_trials))
        except (SMDebugError, TypeError, UnfitPattern) as error:
            left.append(NotJudged(name, shortened(str(error)), "correct its RuleParameters"))
    return made, left


def _given(parameters: Mapping[str, Any], other_trials: Sequence[Trial] | None) -> dict[str, Any]:
    given = dict(parameters)
    for key in sorted(OTHER_RUNS):
        folders = given.pop(key, None)
        # Those that the command names count; of others nothing is waited for.
        if folders is not None and not other_trials:
            # With a run at hand this is loaded; the list of rules does without.
            from smd_agent.analysis.trial import create_trial

            given[key] = [create_trial(folder, timeout=0) for folder in names(folders)]
    for key, value in given.items():
        if "regex" in key:
            for pattern in names(value):
                name_pattern(pattern)
    return given


def rules_of_run(trial: Trial) -> list[BuiltInRule]:
    """Return the rules of a run's configuration, but for what reads other runs; else those that need not be named."""
    configured, ignored = trial.collection_manager.rules, trial.collection_manager.ignored_rules
    known = {name: rule for name, rule in built_in_rules().items() if name not in ignored}
    if not configured:
        return [rule() for rule in applied_unasked(known).values()]
    own = [(name, parameters) for name, parameters in configured if not OTHER_RUNS & parameters.keys()]
    return configured_rules(own, known)[0]


def judge(trial: Trial, progress: Callable[[int, int], None] | None = None) -> Verdict:
    """Return what these rules say of a run, as far as it goes by now.

    Args:
        trial: the run.
        progress: is told how many steps are done, of how many.
    """
    judging = Judging(trial, rules_of_run(trial))
    judging.take_new(progress, incomplete=True)
    verdict = judging.verdict()
    verdict.not_judged = with_reasons(verdict.not_judged, trial)
    return verdict
