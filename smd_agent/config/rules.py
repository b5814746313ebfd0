"""The rules of a hook file: which they are, and what is saved for them beside what the file asks for anyhow."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

from smd_agent.config import keys, precedence
from smd_agent.config.keys import LONGEST_NAME, Section
from smd_agent.config.settings import CollectionSettings, RuleSettings
from smd_agent.config.suggestions import nearest
from smd_agent.config.values import InvalidValue, regexes
from smd_agent.core.collection_keys import BUILT_IN_NAMES, SCALAR_COLLECTIONS, CollectionKeys
from smd_agent.core.modes import ModeKeys
from smd_agent.core.reduction_config import ReductionConfig
from smd_agent.core.save_config import SaveConfig, SaveConfigMode
from smd_agent.printable import shortened

_PACKAGE = Path(__file__).parents[1]
_BUILTIN = _PACKAGE / "rules" / "builtin"
# Where classes are that rules are made on; the last one of them has none of the attributes.
_OF_RULES = "smd_agent.rules."
_LAST = "BuiltInRule"
_EVERY_5 = {"save_interval": 5}
# No rules: they write a report, which there is not.
_REPORTS: Mapping[str, Mapping[str, Any]] = {
    "CreateXgboostReport": {
        "hyperparameters": {"save_steps": [0]},
        "metrics,feature_importance,predictions,labels": _EVERY_5,
    }
}


@dataclass(frozen=True)
class Brought:
    """A collection that is saved for a rule.

    Attributes:
        name: of the collection.
        reductions: that are enough; with none, whole tensors are needed.
        include_regex: tensors that belong to it, beside those that do anyhow.
        steps: keys of a collection, such as ``save_interval``; without any, the hook's hold.
    """

    name: str
    reductions: tuple[str, ...] = ()
    include_regex: tuple[str, ...] = ()
    steps: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class OfRule:
    """One rule; its class explains these, see ``rules.built_in.BuiltInRule``.

    Attributes:
        parameters: their names.
        brings, brings_always, chosen_by: as in its class.
        is_report: whether it is no rule but writes a report, which there is not.
    """

    parameters: tuple[str, ...] = ()
    brings: tuple[Brought, ...] = ()
    brings_always: tuple[Brought, ...] = ()
    chosen_by: tuple[str, ...] = ()
    is_report: bool = False


def rule_names() -> list[str]:
    """Return the names of all rules, in order."""
    found = []
    for file in _BUILTIN.glob("*.py"):
        classes = re.findall(r"^class (\w+)\(", file.read_text(encoding="utf-8"), re.MULTILINE)
        found += [name for name in classes if _file_of(name) == file]
    return sorted(found)


@cache
def rule_of(name: str) -> OfRule | None:
    """Return what a rule says of itself; None if there is none of this name."""
    if name in _REPORTS:
        return OfRule(brings=_collections(_REPORTS[name]), is_report=True)
    file = _file_of(name)
    said = _class_attributes(file, name) if file in _BUILTIN.iterdir() else {}
    if not said:
        return None
    return OfRule(
        tuple(name for name, written in said.items() if _is_parameter(name, written)),
        _collections(_literal(said, "brings", {})),
        _collections(_literal(said, "brings_always", {})),
        _literal(said, "chosen_by", ()),
    )


def brought_by(rule: str, parameters: Mapping[str, Any]) -> list[Brought]:
    """Return what is saved for a rule that is told these parameters; nothing if there is no rule of this name."""
    known = rule_of(rule) or OfRule()
    first = known.brings[0] if known.brings else Brought("")
    chosen, regexes = [], []
    for parameter in known.chosen_by:
        named = texts(parameters.get(parameter))
        if "collection" in parameter:
            chosen += [Brought(collection, first.reductions, steps=first.steps) for collection in named]
        else:
            regexes += named
    if regexes:
        chosen.append(
            Brought(first.name if first.include_regex else rule, first.reductions, tuple(regexes), first.steps)
        )
    return [*(chosen or known.brings), *known.brings_always]


def texts(given: Any) -> list[str]:
    """Return the texts of a list or of a text with commas, as rules take them."""
    parts = given.split(",") if isinstance(given, str) else given if isinstance(given, list) else []
    return [text for part in parts if (text := str(part).strip())]


def _file_of(rule: str) -> Path:
    return _BUILTIN / f"{re.sub(r'(?<!^)(?=[A-Z][a-z])|(?<=[a-z])(?=[A-Z])', '_', rule).lower()}.py"


def _class_attributes(file: Path, name: str) -> dict[str, ast.expr]:
    """The values of a class's attributes, and of those that it has from classes of ours; empty if it is not there."""
    files: dict[str, Path] = {}
    for node in ast.parse(file.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(_OF_RULES):
            path = _PACKAGE.joinpath(*str(node.module).split(".")[1:]).with_suffix(".py")
            files.update((alias.name, path) for alias in node.names)
        elif isinstance(node, ast.ClassDef) and node.name == name:
            found: dict[str, ast.expr] = {}
            for base in node.bases:
                base_name = ast.unparse(base).partition("[")[0]
                if base_name != _LAST:
                    found |= _class_attributes(files.get(base_name, file), base_name)
            for line in node.body:
                if isinstance(line, ast.Assign | ast.AnnAssign) and line.value is not None:
                    target = line.target if isinstance(line, ast.AnnAssign) else line.targets[0]
                    # One that stands there again has its place there.
                    found.pop(ast.unparse(target), None)
                    found[ast.unparse(target)] = line.value
            return found
    return {}


def _is_parameter(name: str, written: ast.expr) -> bool:
    """Tell whether an attribute is a parameter, or a constant of its name in capitals, which is one."""
    text = ast.unparse(written)
    return text == name.upper() or text.startswith(("Parameter(", "Parameter."))


def _literal(said: Mapping[str, ast.expr], key: str, default: Any) -> Any:
    return ast.literal_eval(said[key]) if key in said else default


def _collections(written: Mapping[str, Mapping[str, Any]]) -> tuple[Brought, ...]:
    found = []
    for names, content in written.items():
        steps = {key: value for key, value in content.items() if key not in ("reductions", "include_regex")}
        reductions, patterns = (tuple(texts(content.get(key))) for key in ("reductions", "include_regex"))
        found += [Brought(name, reductions, patterns, steps) for name in texts(names)]
    return tuple(found)


# By one framework or another.
_SAVED_BY_DEFAULT = (CollectionKeys.LOSSES, CollectionKeys.METRICS, CollectionKeys.SM_METRICS)
# Told to every rule, whatever it is.
_OF_EVERY_RULE = ("base_trial", keys.RULE_TO_INVOKE.name)


@dataclass(frozen=True)
class Hook:
    """The part of a hook file that holds for all collections.

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
        """True if a collection is saved without any rule, and without an object of its own."""
        if self.save_all or collection in self.included or collection in _SAVED_BY_DEFAULT:
            return True
        return CollectionKeys.ALL in self.included and collection in BUILT_IN_NAMES


def unknown_rule(name: str, others: str = "") -> str | None:
    """Return what is wrong with a name of a rule: itself, and what is allowed; None if nothing is.

    Args:
        name: of a rule, perhaps.
        others: that are allowed beside the rules, in words.
    """
    known = rule_names()
    if name in known:
        return None
    shown = shortened(name, LONGEST_NAME)
    return f"{shown}, allowed are {', '.join(known)}{others}{nearest(shown, known)}"


def known_rules(top: Section, key: str, named: Sequence[str]) -> list[str]:
    """Return those names that are of rules; of the others a line is said."""
    wrong = {name: why for name in named if (why := unknown_rule(name)) is not None}
    for why in wrong.values():
        top.warn(f"{key} names {why}")
    return [name for name in named if name not in wrong]


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
        on_find, actions = entry.take(keys.RULE_ON_FIND), entry.take(keys.RULE_ACTIONS)
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
        found.append(RuleSettings(name, given, on_find, tuple(actions or ())))
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
    """True if this is no rule but a report."""
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
