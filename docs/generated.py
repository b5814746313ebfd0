"""A Sphinx extension: a line `[[name]]` of a page stands for a part that is made from the sources.

Also finds what a docstring calls by a class's bare name.
"""

from __future__ import annotations

import argparse
import ast
import functools
import importlib
import os
import re
import sys
import typing
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from smd_agent import cli
from smd_agent.alias.table import MODULES
from smd_agent.cli import run
from smd_agent.config import env, keys, values
from smd_agent.framework import label_counts, loss_facts, model_inputs
from smd_agent.rules.built_in import BuiltInRule, Need
from smd_agent.rules.parameters import Parameter
from smd_agent.rules.registry import built_in_rules

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

if TYPE_CHECKING:
    from sphinx.application import Sphinx

ROOT = Path(__file__).parent.parent

TYPES = {
    bool: "boolean",
    int: "whole number",
    float: "number",
    str: "text",
    Any: "anything",
    list[int]: "list of whole numbers",
    list[str]: "list",
    list[Any]: "list of objects",
    list[dict[str, Any]]: "list of objects",
    dict[str, Any]: "object",
}


def table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    """Return a Markdown table."""
    lines = [head, ("---",) * len(head), *rows]
    return "\n".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |" for line in lines)


def allowed(key: keys.Key[Any]) -> str:
    """Return the words with which a wrong value of this key is answered."""
    try:
        key.kind(object())
    except values.InvalidValue as unfit:
        return str(unfit)
    return "anything"


def of_keys(*listed: keys.Key[Any]) -> str:
    """Return the table of some keys of the hook file."""
    return table(("key", "type", "default", "allowed", "meaning"), map(_row, listed))


def _row(key: keys.Key[Any]) -> tuple[str, ...]:
    kind = TYPES[typing.get_type_hints(key.kind)["return"]]
    default = f"`{key.default}`" if key.default else "none"
    return f"`{key.name}`", kind, default, allowed(key), key.meaning


def of_variables() -> str:
    """Return the table of the environment variables."""
    rows = ((f"`{v.name}`", v.kind, f"`{v.default}`" if v.default else "none", v.meaning) for v in env.VARIABLES)
    return table(("variable", "type", "default", "meaning"), rows)


def help_text(command: str) -> str:
    """Return what a command prints with --help, as a block of text."""
    if command in ("", "run"):
        text = (run if command else cli).__doc__ or ""
    else:
        os.environ["COLUMNS"] = "120"
        module = importlib.import_module(cli.COMMANDS[command])
        parser = argparse.ArgumentParser(
            prog=f"python -m smd_agent {command}",
            description=module.__doc__,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        module.prepare_parser(parser)
        text = parser.format_help()
    return f"```text\n{text.strip()}\n```"


def of_rules() -> str:
    """Return the table of the rules, each with its page."""
    rows = ((f"[{name}](rules/{name}.md)", rule.meaning) for name, rule in built_in_rules().items())
    return table(("rule", "finds"), rows)


def of_rule(rule: type[BuiltInRule]) -> str:
    """Return what a rule finds, what it needs, its parameters and the numbers of its findings."""
    made = rule()
    more = " ".join((rule.__doc__ or "").split("\n\n", 1)[1:]).split("\n")
    parts = [f"Finds: {rule.meaning}.", "\n".join(line.strip() for line in more).strip()]
    modes = f" in {' or '.join(mode.name for mode in rule.modes)}" if rule.modes else ""
    needed = "; ".join(_need(need) for need in made.needs)
    least = f" at {made.fewest_steps} steps or more" if made.fewest_steps > 1 else ""
    parts.append(f"Needs {needed or 'any tensor'}{modes}{least}.")
    severity = {"problem": "a problem", "warning": "a warning", "note": "a note"}[rule.severity.value]
    parts.append(f"A finding is {severity}, unless the text above says otherwise.")
    if rule.only_by_name:
        parts.append(f"`check` applies it only where it is asked for: `--rules {rule.__name__}`.")
    if rule.parameters:
        head = ("parameter", "default of `check`", "default in a program", "meaning")
        parts.append(table(head, map(_parameter_row, rule.parameters)))
    evidence = ((f"`{name}`", meaning) for name, meaning in rule.evidence.items())
    parts.append(table(("evidence", "what it is"), evidence))
    return "\n\n".join(filter(None, parts))


def _need(need: Need) -> str:
    numbers = [f"`{name}`" for name in need.statistics if name]
    of = "" if "" in need.statistics else f" with {' or '.join(numbers)}"
    named = [f"`{name}`" for name in need.collections] + [f"tensors named `{one}`" for one in need.patterns]
    return (" or ".join(named) or "any tensor") + of


def _parameter_row(parameter: Parameter[Any]) -> tuple[str, ...]:
    documented = parameter.default if parameter.documented is None else parameter.documented
    return f"`{parameter.name}`", _default_text(parameter.default), _default_text(documented), parameter.meaning


def _default_text(value: object) -> str:
    if value is None or value == ():
        return "none"
    return f"`{','.join(map(str, value)) if isinstance(value, tuple) else value}`"


def of_facts(of: str, facts: Mapping[tuple[str, ...], str]) -> str:
    """Return rows of a table of facts; ``of``: what they are of, such as a model's first input."""
    named = ((f"`usage/{of}/{'`, `'.join(names)}`", meaning) for names, meaning in facts.items())
    return "\n".join(f"| {names} | {meaning} |" for names, meaning in named)


def names_of_facts(of: str, facts: Mapping[tuple[str, ...], str]) -> str:
    """Return the names of facts that a framework has all of, or none."""
    return f"`usage/{of}/{'`, `'.join(name for names in facts for name in names)}`"


def floors() -> str:
    """Return a picture of the floors, from the contract that the import linter checks."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    layers = next(contract["layers"] for contract in contracts if contract["type"] == "layers")
    lines: list[str] = []
    for layer in layers:
        names = [name.strip(" ()") for name in layer.split("|")]
        lines += [f"{name:<12} {first_sentence(name)}".rstrip() for name in names]
        lines.append("")
    width = max(map(len, lines))
    rule = "─" * (width + 2)
    body = "\n".join(f"│ {line:<{width}} │" if line else f"├{rule}┤" for line in lines[:-1])
    return f"```text\n┌{rule}┐\n{body}\n└{rule}┘\n```"


def of_old_names() -> str:
    """Return a table of the modules of smdebug that there are, and their names."""
    rows = []
    for module, served in MODULES.items():
        names = [f"`{name}`" for name in sorted(served.names)]
        if served.whole:
            names.append(f"all that `{served.needs}` has")
        if names:
            rows.append(f"| `{module}` | {', '.join(names)} |")
    return "\n".join(["| module | names |", "|---|---|", *rows])


def first_sentence(name: str) -> str:
    """Return what a part of the package says it is, cut short at the first punctuation."""
    path = ROOT / "smd_agent" / name
    source = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    text = " ".join((ast.get_docstring(ast.parse(source.read_text())) or "").split("\n\n")[0].split())
    for end in (". ", ": ", "; ", ", "):
        text = text.split(end)[0]
    return text.rstrip(".").replace("`", "")


PARTS: dict[str, Callable[[], str]] = {
    "keys of the file": lambda: of_keys(*keys.TOP),
    "keys of a collection's entry": lambda: of_keys(*keys.COLLECTION),
    "keys of a rule's entry": lambda: of_keys(*keys.RULE),
    "keys of a rule's parameters": lambda: of_keys(keys.RULE_TO_INVOKE),
    "keys of steps": lambda: of_keys(*keys.STEPS),
    "keys of form": lambda: of_keys(*keys.FORM),
    "keys of a collection": lambda: of_keys(keys.SAVE_HISTOGRAM),
    "keys of the hook": lambda: of_keys(*keys.OF_HOOK),
    "variables": of_variables,
    "help": lambda: help_text(""),
    "help run": lambda: help_text("run"),
    "help ls": lambda: help_text("ls"),
    "help show": lambda: help_text("show"),
    "help check": lambda: help_text("check"),
    "help diff": lambda: help_text("diff"),
    "help watch": lambda: help_text("watch"),
    "help tap": lambda: help_text("tap"),
    "help report": lambda: help_text("report"),
    "help export": lambda: help_text("export"),
    "help replay": lambda: help_text("replay"),
    "help install": lambda: help_text("install"),
    "help info": lambda: help_text("info"),
    "help verify": lambda: help_text("verify"),
    "rules": of_rules,
    **{f"rule {name}": functools.partial(of_rule, rule) for name, rule in built_in_rules().items()},
    "facts of inputs": lambda: of_facts("input/Net_0", model_inputs.FACTS),
    "facts of losses": lambda: of_facts("loss/cross_entropy_loss_0", {**loss_facts.FACTS, **label_counts.FACTS}),
    "names of facts of inputs": lambda: names_of_facts("input", model_inputs.FACTS),
    "names of facts of losses": lambda: names_of_facts("loss", {**loss_facts.FACTS, **label_counts.FACTS}),
    "floors": floors,
    "old names": of_old_names,
}


PLACE = re.compile(r"(?:^|(?<=^\| ))\[\[(.+?)\]\](?=$| \|)", re.M)
"""The place of a part in a page: a line that is nothing else, or the first cell of a table's row."""


def fill_in(page: str) -> str:
    """Put the parts into a page's text.

    Raises:
        KeyError: the page asks for a part that there is not.
    """
    return PLACE.sub(lambda found: PARTS[found[1]](), page)


def _source_read(app: Sphinx, name: str, source: list[str]) -> None:
    source[0] = fill_in(source[0])


def _missing_reference(app: Sphinx, environment: Any, node: Any, content: Any) -> Any:
    # "SMDebugError" and "smd_agent.core.modes.ModeKeys" are documented under the names that users import.
    if node.get("refdomain") != "py":
        return None
    python = environment.get_domain("py")
    bare = {"ModeKeys": "modes"}.get(name := node["reftarget"].rpartition(".")[2], name)
    found = [full for full in sorted(python.objects) if full.rpartition(".")[2] == bare]
    if not found:
        return None
    return python.resolve_xref(environment, node["refdoc"], app.builder, "obj", found[0], node, content)


def setup(app: Sphinx) -> dict[str, bool]:
    """Called by Sphinx."""
    app.connect("source-read", _source_read)
    app.connect("missing-reference", _missing_reference)
    return {"parallel_read_safe": True}
