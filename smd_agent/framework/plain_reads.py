"""Plain numbers that a function reads from outside of it, and goes on to compute with, as its source has it.

They are globals, variables of a function around it, and attributes of its ``self``. The source is read, and nothing of
the program is run. A name that the function gives a value itself is left out.
"""

from __future__ import annotations

import ast
import builtins
import operator
import weakref
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from types import FunctionType, ModuleType
from typing import Any, NamedTuple

from smd_agent.framework.plain_access import held_by_module, in_class, is_a, own_dict
from smd_agent.framework.program_lines import is_programs, source_of
from smd_agent.framework.weak_references import Reference

# Functions that are looked into from the first one on, each once.
_FUNCTIONS = 16
_OPERATORS: Mapping[type, Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
}
# Functions of a library that only show a number.
_SHOWS = {"print", "summary", "debugging", "logging"}


@dataclass(frozen=True)
class Read:
    """A number that a function reads by a name.

    name: as the source has it, such as ``beta`` or ``self.beta``.
    holder: the function, or the object whose attribute it is.
    value: then.
    """

    name: str
    holder: weakref.ref[Any]
    value: float

    def now(self) -> float | None:
        """The value that the name has now; None if that is no number, or not known."""
        holder = self.holder()
        if holder is None:
            return None
        last = self.name.rpartition(".")[2]
        return _number(_outer(holder, last) if type(holder) is FunctionType else own_dict(holder).get(last))


@dataclass(frozen=True)
class Use:
    """A part of an expression that is plain numbers alone, at least one of them read, and that meets something else.

    value: what comes out of it.
    reads: the names in it.
    file, first, last: the lines where it is.
    """

    value: float
    reads: tuple[Read, ...]
    file: str
    first: int
    last: int


class _Plain(NamedTuple):
    """The value of an expression, and what was read for it."""

    value: float
    reads: tuple[Read, ...]


@dataclass
class _Scope:
    """A function that is looked into.

    own: the object that its first argument is; None if it is no method.
    given: numbers that it is called with, by parameter.
    stored: names and attributes that it gives values itself.
    """

    function: FunctionType
    own: object
    given: Mapping[str, _Plain]
    first: str = ""
    stored: set[str] = field(default_factory=set)

    def begin(self, top: ast.FunctionDef) -> Iterator[str]:
        """Note what the function names itself, by its source; yields what it assigns outside of it."""
        parameters = [one.arg for one in (*top.args.posonlyargs, *top.args.args)]
        self.first = parameters[0] if parameters and self.own is not None else ""
        for node in ast.walk(top):
            if isinstance(node, ast.arg) and node.arg not in self.given:
                self.stored.add(node.arg)
            elif isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
                self.stored.add(node.id)
            elif isinstance(node, ast.Attribute) and not isinstance(node.ctx, ast.Load):
                self.stored.add(ast.unparse(node))
                yield ast.unparse(node)
            elif isinstance(node, (ast.Global, ast.Nonlocal)):
                yield from node.names
        self.stored.discard(self.first)

    def plain(self, node: ast.AST) -> _Plain | None:
        """The value of an expression of plain numbers; None of any other."""
        if isinstance(node, ast.Constant):
            number = _number(node.value)
            return None if number is None else _Plain(number, ())
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            found = self.plain(node.operand)
            return None if found is None else _Plain(-found.value, found.reads)
        if isinstance(node, ast.BinOp) and type(node.op) in _OPERATORS:
            left, right = self.plain(node.left), self.plain(node.right)
            if left is None or right is None or (isinstance(node.op, ast.Div) and not right.value):
                return None
            return _Plain(_OPERATORS[type(node.op)](left.value, right.value), (*left.reads, *right.reads))
        return self._read(node)

    def _read(self, node: ast.AST) -> _Plain | None:
        if isinstance(node, ast.Name) and node.id not in self.stored:
            if node.id in self.given:
                return self.given[node.id]
            return _of(node.id, self.function, _outer(self.function, node.id))
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and self.own is not None:
            name = f"{node.value.id}.{node.attr}"
            # What a class has by that name, such as a property, comes before what the object has.
            if node.value.id == self.first and name not in self.stored and in_class(type(self.own), node.attr) is None:
                return _of(name, self.own, own_dict(self.own).get(node.attr))
        return None

    def called(self, node: ast.Call) -> tuple[object, object]:
        """The function that is called, and the object whose method it is; None of what is not known."""
        function: Any = node.func
        if isinstance(function, ast.Name):
            return (None if function.id in self.stored else _outer(self.function, function.id)), None
        is_method = isinstance(function, ast.Attribute) and isinstance(function.value, ast.Name)
        if is_method and self.own is not None and function.value.id == self.first:
            return in_class(type(self.own), function.attr), self.own
        return None, None

    def is_librarys(self, node: ast.Call, library: str) -> bool:
        """True if a call is of a function of a library that computes, such as ``tf.multiply``."""
        parts = []
        function: ast.expr = node.func
        while isinstance(function, ast.Attribute):
            parts.append(function.attr)
            function = function.value
        root = _outer(self.function, function.id) if isinstance(function, ast.Name) else None
        if not is_a(root, ModuleType) or not parts or not _SHOWS.isdisjoint(parts):
            return False
        return str(held_by_module(root).get("__name__", "")).partition(".")[0] == library


def uses(function: FunctionType, own: object, library: str) -> list[Use]:
    """The uses of plain numbers from outside in a function, and in those of the program that it calls.

    Args:
        function: it.
        own: the object whose method it is; None if it is none.
        library: the name of the one whose functions compute.
    """
    found: list[Use] = []
    assigned: set[str] = set()
    waiting = [_Scope(function, own, {})]
    seen = {function.__code__}
    while waiting and len(seen) <= _FUNCTIONS:
        scope = waiting.pop()
        for inner in _look(scope, library, found, assigned):
            if inner.function.__code__ not in seen:
                seen.add(inner.function.__code__)
                waiting.append(inner)
    return [use for use in found if all(read.name not in assigned for read in use.reads)]


def _look(scope: _Scope, library: str, found: list[Use], assigned: set[str]) -> Iterator[_Scope]:
    """Look into one function; yields those that it calls."""
    code = scope.function.__code__
    source = source_of(code)
    if source is None:
        return
    tree, start = source
    top = tree.body[0] if tree.body else None
    if not isinstance(top, ast.FunctionDef):
        return
    assigned.update(scope.begin(top))
    for node in (inner for statement in top.body for inner in ast.walk(statement)):
        if isinstance(node, ast.Call):
            called, own = scope.called(node)
            if type(called) is FunctionType and is_programs(called.__code__.co_filename):
                yield _Scope(called, own, _given(scope, node, called, own is not None))
        for part in _parts(scope, node, library):
            plain = scope.plain(part)
            if plain is not None and plain.reads:
                last = part.end_lineno or part.lineno
                found.append(Use(*plain, code.co_filename, part.lineno + start - 1, last + start - 1))


def _parts(scope: _Scope, node: ast.AST, library: str) -> list[ast.expr]:
    """The parts of an expression that go into what it computes, if that is no plain number."""
    if isinstance(node, ast.BinOp):
        return [node.left, node.right] if scope.plain(node) is None else []
    if isinstance(node, ast.AugAssign):
        return [node.value]
    if isinstance(node, ast.Call) and scope.is_librarys(node, library):
        return [*node.args, *(one.value for one in node.keywords)]
    return []


def _given(scope: _Scope, node: ast.Call, called: FunctionType, is_method: bool) -> dict[str, _Plain]:
    """The numbers that a function is called with, by parameter."""
    if any(isinstance(one, ast.Starred) for one in node.args):
        return {}
    code = called.__code__
    names = code.co_varnames[int(is_method) : code.co_argcount]
    pairs = [*zip(names, node.args, strict=False), *((one.arg, one.value) for one in node.keywords if one.arg)]
    return {name: plain for name, value in pairs if (plain := scope.plain(value)) is not None}


def _of(name: str, holder: object, value: object) -> _Plain | None:
    number = _number(value)
    return None if number is None else _Plain(number, (Read(name, Reference(holder), number),))


def _outer(function: FunctionType, name: str) -> object:
    """The value of a name that is none of the function's own."""
    code = function.__code__
    if name in code.co_freevars:
        try:
            return (function.__closure__ or ())[code.co_freevars.index(name)].cell_contents
        except (ValueError, IndexError):
            return None
    if name in code.co_varnames or name in code.co_cellvars:
        return None
    return function.__globals__.get(name, vars(builtins).get(name))


def _number(value: object) -> float | None:
    """A plain number; arrays and numbers of other classes are none."""
    if type(value) is float or (type(value) is int and abs(value) < 1e15):
        return float(value)
    return None
