"""Collections that are saved for rules: what each rule says of itself, read from its file.

Rules are on a floor above, and too much to import in a training. So what is needed of a rule stands as literals in its
class, and the file is parsed, not imported.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

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
    return _BUILTIN / f"{re.sub(r'(?<!^)(?=[A-Z][a-z])', '_', rule).lower()}.py"


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
