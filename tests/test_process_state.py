"""The page on the state of a process lists every variable of a module that changes."""

from __future__ import annotations

import ast
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
MAKERS = {"deque", "dict", "list", "local", "set", "Lock", "RLock", "WeakIdentityMap", "WeakSet"}


def made_to_change(value):
    """Whether something empty is made, or an object of a class without arguments."""
    if isinstance(value, ast.List | ast.Set):
        return not value.elts
    if isinstance(value, ast.Dict):
        return not value.keys
    if not isinstance(value, ast.Call) or value.args or value.keywords:
        return False
    name = ast.unparse(value.func).split(".")[-1]
    return name in MAKERS or (name.lstrip("_")[:1].isupper() and not name.isupper())


def variables(tree):
    """Names of a module that are made to change, or that a function gives another value."""
    for node in tree.body:
        if isinstance(node, ast.Assign | ast.AnnAssign):
            (target, *_) = node.targets if isinstance(node, ast.Assign) else [node.target]
            if isinstance(target, ast.Name) and made_to_change(node.value):
                yield target.id
    for node in ast.walk(tree):
        if isinstance(node, ast.Global):
            yield from node.names


def test_the_page_lists_all_state_of_a_process():
    page = (ROOT / "docs" / "process-state.md").read_text()
    listed = re.findall(r"^\| `([\w/.]+)` `(\w+)` \| \S.* \|$", page, re.M)
    found = {
        (path.relative_to(ROOT).as_posix(), name)
        for path in (ROOT / "smd_agent").rglob("*.py")
        for name in variables(ast.parse(path.read_text()))
    }
    assert sorted(listed) == sorted(found)


def test_what_is_made_to_change_is_found():
    lines = ["a = []", "b: dict = {}", "c = local()", "d = Watch()", "e = [1]", "f = Watch(1)", "g = 0", "H = MAKE()"]
    lines += ["def put():", "  global g"]
    assert [*variables(ast.parse("\n".join(lines)))] == ["a", "b", "c", "d", "g"]
