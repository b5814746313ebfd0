"""The frameworks that a script, and the modules beside it, import; the script is read and not run."""

from __future__ import annotations

import ast
import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.machinery import PathFinder

from smd_agent.patches.declared import declared
from smd_agent.regular_file import read_text

_IMPORTERS = ("import_module", "__import__")
_MOST_FILES = 50
_LARGEST_BYTES = 4 << 20


@dataclass(frozen=True)
class Import:
    """The first import of a framework.

    Attributes:
        framework: by its import name.
        place: file and line.
        by: the library that brings it; the framework itself where the program names that.
    """

    framework: str
    place: str
    by: str


@dataclass(frozen=True)
class Look:
    """A look at a script that is not run.

    Attributes:
        file: that was read; empty where there is none, such as of a command that is no Python.
        imports: of frameworks, each once.
        problem: why less was seen than there may be; empty if nothing stood in the way.
    """

    file: str = ""
    imports: tuple[Import, ...] = ()
    problem: str = ""


def look_at(target: list[str]) -> Look:
    """Return which frameworks a program imports, as far as its text tells.

    Args:
        target: a script, ``-m`` and a module, ``-c`` and code, or a command, with the program's arguments behind it.
    """
    if target[0] == "-c":
        return _looked("the code", target[1] if len(target) > 1 else "", os.getcwd())
    file = _file_of(target)
    if not file:
        return Look()
    try:
        text = read_text(file, encoding="utf-8-sig", largest=_LARGEST_BYTES)
    except (OSError, ValueError) as error:
        return Look(file, problem=f"{file} cannot be read: {error}")
    folder = os.path.dirname(os.path.abspath(file))
    if target[0] == "-m":
        # Its imports begin where the outermost package lies.
        parts = target[1].split(".")
        inside = len(parts) - (os.path.basename(file) == f"{parts[-1]}.py")
        folder = os.path.normpath(os.path.join(folder, *[os.pardir] * inside))
    return _looked(file, text, folder)


def is_found(module: str) -> bool:
    """True where a module of this name, or the package it is in, lies where the launcher's program would look."""
    return PathFinder.find_spec(module.partition(".")[0], [os.getcwd(), *sys.path]) is not None


def _file_of(target: list[str]) -> str:
    """The file with the program's text; of a command such as torchrun, the first script among its words."""
    word = target[0]
    if word == "-m":
        return _located(target[1], [os.getcwd(), *sys.path]) if len(target) > 1 else ""
    if os.path.isdir(word):
        return os.path.join(word, "__main__.py")
    if os.path.isfile(word) and (word.endswith(".py") or "." not in os.path.basename(word)):
        return word
    return next((one for one in target[1:] if one.endswith(".py") and os.path.isfile(one)), "")


def _located(module: str, path: list[str]) -> str:
    """The file of a module, without importing the packages that it is in."""
    origin = ""
    for part in module.split("."):
        spec = PathFinder.find_spec(part, path)
        if spec is None:
            return ""
        path, origin = [*(spec.submodule_search_locations or ())], spec.origin or ""
    if path:
        return _located("__main__", path)
    return origin if origin.endswith(".py") else ""


def _looked(file: str, text: str, folder: str) -> Look:
    name = os.path.basename(file)
    try:
        waiting = [(name, ast.parse(text))]
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        line = f" at line {error.lineno}" if isinstance(error, SyntaxError) else ""
        return Look(file, problem=f"{file} is no Python of this release{line}: {getattr(error, 'msg', error)}")
    found: dict[str, Import] = {}
    frameworks = _brought()
    seen = {name}
    for name, tree in waiting:
        for module, number in _imports(tree):
            top = module.partition(".")[0]
            framework = frameworks.get(top)
            if framework is not None:
                found.setdefault(framework, Import(framework, f"{name}:{number}", top))
            elif len(seen) < _MOST_FILES:
                waiting += _beside(module, folder, seen)
    return Look(file, tuple(found.values()))


def _brought() -> dict[str, str]:
    """By import name of a library, the framework that it is or that it imports for the program."""
    known = declared()
    return {other: name for name, framework in known.items() for other in (*framework.brought_by, name)}


def _beside(module: str, folder: str, seen: set[str]) -> Iterator[tuple[str, ast.Module]]:
    """Yield the text of a module that lies in the script's folder, and of the packages on the way to it."""
    parts = module.split(".")
    for length in range(1, len(parts) + 1):
        stem = os.path.join(*parts[:length])
        for name in (f"{stem}.py", os.path.join(stem, "__init__.py")):
            path = os.path.join(folder, name)
            if name not in seen and os.path.isfile(path):
                try:
                    tree = ast.parse(read_text(path, encoding="utf-8-sig", largest=_LARGEST_BYTES))
                except (OSError, SyntaxError, ValueError, RecursionError):
                    continue
                seen.add(name)
                yield name, tree


def _imports(tree: ast.Module) -> Iterator[tuple[str, int]]:
    """Yield dotted names of what a text imports, in the order of the text, with their lines."""
    waiting: list[ast.AST] = [tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test):
            waiting += reversed(node.orelse)
            continue
        if isinstance(node, ast.Import):
            yield from ((alias.name, node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            # A relative import is of what lies beside: a script is in no package, a module's package is there.
            names = [f"{node.module}.{alias.name}" if node.module else alias.name for alias in node.names]
            yield from ((name, node.lineno) for name in filter(None, (node.module, *names)))
        elif isinstance(node, ast.Call) and getattr(node.func, "attr", getattr(node.func, "id", "")) in _IMPORTERS:
            first = node.args[0] if node.args else None
            if isinstance(first, ast.Constant) and isinstance(first.value, str):
                yield first.value, node.lineno
        waiting += reversed([*ast.iter_child_nodes(node)])
