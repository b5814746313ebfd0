"""The page on how to add a framework names every place that has to be touched."""

from __future__ import annotations

import ast
import re
import sys
from pathlib import Path

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).resolve().parent.parent


def lists_of_frameworks(value, name=""):
    """Names of the parts of a TOML document that list frameworks."""
    if isinstance(value, dict):
        for key, part in value.items():
            yield from lists_of_frameworks(part, value.get("id", "overrides" if key == "module" else key))
    elif isinstance(value, list) and any(isinstance(part, dict) for part in value):
        for part in value:
            yield from lists_of_frameworks(part, name)
    elif isinstance(value, list) and all(word in str(value) for word in ("xgboost", "tensorflow", "mxnet")):
        yield name


def test_the_page_on_frameworks_names_every_place_that_lists_them():
    page = (ROOT / "docs" / "adding-a-framework.md").read_text()
    places = dict(re.findall(r"^\| `([\w./]+)` \| (.*) \|$", page, re.M))
    missing = []
    for place, text in places.items():
        content = (ROOT / place).read_text() if (ROOT / place).is_file() else ""
        named = re.findall(r"`([A-Z_]+)`", text)
        missing += [(place, name) for name in named if not re.search(rf"^{name}\b.* = {{", content, re.M)]
    assert missing == []
    tables = []
    for file in [*(ROOT / "smd_agent").rglob("*.py"), *(ROOT / "tests" / "frameworks").glob("*.py")]:
        dicts = (node for node in ast.walk(ast.parse(file.read_text())) if isinstance(node, ast.Dict))
        keys = [{getattr(key, "value", "") for key in node.keys} for node in dicts]
        tables += [file for found in keys if {"xgboost", "tensorflow", "mxnet"} <= found]
    lists = [*lists_of_frameworks(tomllib.loads((ROOT / "pyproject.toml").read_text()))]
    assert len(tables) >= 4
    assert len(lists) >= 3
    assert {file.relative_to(ROOT).as_posix() for file in tables} - {*places} == set()
    assert {name for name in lists if name not in page} == set()
