"""Calls of a program's functions that nobody can tell have been made (``sys.setprofile``, bytecode).

Every function that is entered, and every one of C's that is called, is looked at before it runs. What the code can
reach of the program's lists, dicts, sets and objects is noted by then, and is put back afterwards. Code that does
anything else that could be noticed, such as printing, is ended by ``Noticed`` before it does. So are functions that
nobody tells of: those of C that are of no built-in type, as NumPy's.

True of CPython 3.10 to 3.14. Elsewhere instructions may have other names, and code be taken for harmless that is not: a
version that is new needs the tests.
"""

from __future__ import annotations

import builtins
import dis
import functools
import re
import sys
from collections import OrderedDict, deque
from collections.abc import Callable, Iterator
from types import (
    BuiltinFunctionType,
    CellType,
    CodeType,
    FrameType,
    FunctionType,
    GetSetDescriptorType,
    MappingProxyType,
    MemberDescriptorType,
    MethodDescriptorType,
    MethodType,
    MethodWrapperType,
    ModuleType,
    WrapperDescriptorType,
)
from typing import Any, NamedTuple, TypeVar

R = TypeVar("R")

_ATOMS = (bool, int, float, complex, str, bytes, type(None), type(...), type(NotImplemented), range, slice, re.Pattern)
_FUNCTIONS = (
    *(FunctionType, BuiltinFunctionType, MethodDescriptorType, MethodWrapperType, WrapperDescriptorType),
    *(GetSetDescriptorType, MemberDescriptorType, property, staticmethod, classmethod, CellType, MappingProxyType),
    functools.cached_property,
)
_CONTAINERS = (list, dict, set, deque)
_VALUES = (*_ATOMS, *_CONTAINERS, tuple, frozenset)
_CLASSES_OF_C = (*_VALUES, object, type, super, property, enumerate, zip, map, filter, reversed, functools.partial)
_PURE_MODULES = {"math", "cmath", "_operator", "itertools", "_functools", "_collections", "typing", "_typing", "_abc"}
_IMPURE_BUILTINS = {
    *("print", "input", "open", "exec", "eval", "compile", "setattr", "delattr", "vars", "globals", "locals"),
    *("__import__", "breakpoint", "__build_class__"),
}
# Done by PyTorch's own code, they could be noticed too.
_NEVER = {"print", "input", "open", "warn", "warn_explicit", "breakpoint"}
_OF_LOCALS = ("STORE_FAST", "DELETE_FAST")
_OF_ELEMENTS = ("STORE_SUBSCR", "DELETE_SUBSCR", "STORE_SLICE")
_ATTRIBUTES = ("LOAD_ATTR", "LOAD_METHOD")
_ABSENT = object()
# Elements of a list, or entries of a dict: more are not worth it.
_MOST = 100_000


class Noticed(BaseException):
    """The code does something that could be noticed; no ``except Exception`` of the program's catches it."""


class _Facts(NamedTuple):
    """The nature of a function, as far as its bytecode tells.

    problem: why it may not run; None if it may.
    chains: globals that it names, each with the attributes that are asked of it.
    names: of all attributes.
    changes_self: whether it sets attributes of its first argument.
    """

    problem: str | None
    chains: list[tuple[str, ...]]
    names: set[str]
    changes_self: bool


class UnnoticedCalls:
    """One call of a function, and all that it calls.

    Args:
        is_own: whether a file is one of those that have the call made, of which nothing is looked at.
        is_trusted: whether Python's code in this file changes nothing but what it is told to.
        is_harmless: whether an object of C's is one whose methods can be called, or a function that can.
        forbidden: functions of C's that may not be called, by their names.
    """

    def __init__(
        self,
        is_own: Callable[[str], bool],
        is_trusted: Callable[[str], bool],
        is_harmless: Callable[[Any], bool],
        forbidden: set[str],
    ) -> None:
        self._is_own = is_own
        self._is_trusted = is_trusted
        self._is_harmless = is_harmless
        self._forbidden = forbidden | _NEVER
        self._entered: set[CodeType] = set()
        self._names: set[str] = set()
        # By id; they are held, so that no other object has theirs.
        self._seen: dict[int, Any] = {}
        self._instances: dict[int, Any] = {}
        self._kept: list[tuple[Any, list[Any]]] = []

    def call(self, function: Callable[[], R]) -> R:
        """Call a function and look at what that calls in this thread; at the end everything is put back.

        Raises:
            Noticed: the code would do something that could be noticed.
        """
        if sys.getprofile() is not None or sys.gettrace() is not None:
            raise Noticed("is being traced")
        try:
            sys.setprofile(self._look_at_event)
            return function()
        finally:
            sys.setprofile(None)
            self._put_back()

    def look(self, value: Any) -> None:
        """Note what the code may change of an object that it can reach."""
        kind = type(value)
        if kind in _ATOMS or id(value) in self._seen:
            return
        self._seen[id(value)] = value
        if self._is_harmless(value) or issubclass(kind, _FUNCTIONS):
            return
        if issubclass(kind, type):
            if not (_is_of_python(value) or value in _CLASSES_OF_C):
                raise Noticed(f"uses {value.__name__}")
        elif issubclass(kind, MethodType):
            self.look(value.__self__)
        elif issubclass(kind, functools.partial):
            self._look_at_all([value.func, value.args, value.keywords])
        elif issubclass(kind, (tuple, frozenset)):
            self._look_at_all([*(tuple.__iter__(value) if issubclass(kind, tuple) else value)])
        elif issubclass(kind, ModuleType):
            if not self._is_pure(value):
                raise Noticed(f"uses the module {value.__name__}")
        else:
            self._look_at_object(value, kind)

    def keep(self, value: Any) -> None:
        """Note the content of a list, a dict, a set or a deque."""
        content = _content(value)
        if len(content) > _MOST:
            raise Noticed("has a large collection at hand")
        self._kept.append((value, content))

    # What the code can reach.

    def _look_at_all(self, values: list[Any]) -> None:
        for value in values:
            self.look(value)

    def _look_at_object(self, value: Any, kind: type) -> None:
        is_container = issubclass(kind, _CONTAINERS)
        if is_container:
            self.keep(value)
            self._look_at_all([part for one in _content(value) for part in (one if type(one) is tuple else (one,))])
        if kind in _CONTAINERS or kind is OrderedDict:
            return
        foreign = [base for base in kind.__mro__ if not (_is_of_python(base) or base in _CLASSES_OF_C)]
        if foreign and foreign != [OrderedDict]:
            raise Noticed(f"uses a {foreign[0].__name__}")
        if any(vars(base).get("__slots__") for base in kind.__mro__):
            raise Noticed(f"uses a {kind.__name__}, which has slots")
        if not is_container and any("__getattribute__" in vars(base) for base in kind.__mro__[:-1]):
            raise Noticed(f"uses a {kind.__name__}, which has attributes of its own kind")
        own = object.__getattribute__(value, "__dict__")
        self.keep(own)
        self._instances[id(value)] = value
        self._look_at_attributes(value, self._names)

    def _look_at_attributes(self, value: Any, names: set[str]) -> None:
        own = object.__getattribute__(value, "__dict__")
        for name in names:
            found = dict.get(own, name, _ABSENT)
            if found is _ABSENT:
                found = next((vars(base)[name] for base in type(value).__mro__ if name in vars(base)), None)
            self.look(found)

    def _is_pure(self, module: ModuleType) -> bool:
        return module.__name__ in _PURE_MODULES or self._is_trusted(getattr(module, "__file__", None) or "")

    # What it calls.

    def _look_at_event(self, frame: FrameType, event: str, argument: Any) -> None:
        file = frame.f_code.co_filename
        if self._is_own(file):
            return
        if event == "call":
            if not self._is_trusted(file):
                self._look_at_entry(frame)
        elif event == "c_call":
            self._look_at_call(frame, argument)

    def _look_at_entry(self, frame: FrameType) -> None:
        code = frame.f_code
        facts = _facts(code)
        if facts.problem is not None:
            raise Noticed(facts.problem)
        local = frame.f_locals
        self._look_at_all([*local.values()])
        if facts.changes_self and id(local.get(code.co_varnames[0])) not in self._instances:
            raise Noticed(f"sets attributes of a {type(local.get(code.co_varnames[0])).__name__}")
        if code in self._entered:
            return
        self._entered.add(code)
        for chain in facts.chains:
            self._look_at_global(frame, chain)
        new = facts.names - self._names
        self._names |= new
        for value in [*self._instances.values()] if new else ():
            self._look_at_attributes(value, new)

    def _look_at_global(self, frame: FrameType, chain: tuple[str, ...]) -> None:
        value = frame.f_globals.get(chain[0], frame.f_builtins.get(chain[0], None))
        for name in chain[1:]:
            if not isinstance(value, ModuleType):
                break
            if self._is_pure(value):
                return
            value = vars(value).get(name, value)
        self.look(value)

    def _look_at_call(self, frame: FrameType, function: Any) -> None:
        name = getattr(function, "__name__", "")
        owner = getattr(function, "__self__", None)
        of_module = owner.__name__ if type(owner) is ModuleType else getattr(function, "__module__", None)
        if name in self._forbidden or (type(owner).__module__ == "_io" and name.startswith("write")):
            raise Noticed(f"calls {name}")
        if self._is_trusted(frame.f_code.co_filename) or self._is_harmless(function):
            return
        if owner is builtins or of_module == "builtins":
            if name in _IMPURE_BUILTINS:
                raise Noticed(f"calls {name}")
        elif not (of_module in _PURE_MODULES or type(owner) in _VALUES or self._may_be_called(owner)):
            raise Noticed(f"calls {name} of a {type(owner).__name__}")

    def _may_be_called(self, owner: Any) -> bool:
        kind = type(owner)
        return owner is not None and (kind is type or issubclass(kind, _VALUES) or self._is_harmless(owner))

    def _put_back(self) -> None:
        for value, content in reversed(self._kept):
            now = _content(value)
            if len(now) == len(content) and all(map(_is_same, now, content)):
                continue
            if issubclass(type(value), list):
                list.__setitem__(value, slice(None), content)
            elif issubclass(type(value), dict):
                kind = OrderedDict if issubclass(type(value), OrderedDict) else dict
                kind.clear(value)
                for key, one in content:
                    kind.__setitem__(value, key, one)
            elif issubclass(type(value), set):
                set.clear(value)
                set.update(value, content)
            else:
                deque.clear(value)
                deque.extend(value, content)


def _content(value: Any) -> list[Any]:
    kind = type(value)
    if issubclass(kind, dict):
        return [*(OrderedDict if issubclass(kind, OrderedDict) else dict).items(value)]
    return [*next(base for base in (list, set, deque) if issubclass(kind, base)).__iter__(value)]


def _is_same(one: Any, other: Any) -> bool:
    if type(one) is tuple and type(other) is tuple and len(one) == len(other):
        return all(part is counterpart for part, counterpart in zip(one, other, strict=True))
    return one is other


def _is_of_python(kind: type) -> bool:
    """True if a class was made by a ``class`` statement, as far as that can be told."""
    own = vars(kind)
    return type(own.get("__module__")) is str and not {"__dict__", "__weakref__", "__slots__", "__doc__"}.isdisjoint(
        own
    )


@functools.lru_cache(maxsize=4096)
def _facts(code: CodeType) -> _Facts:
    instructions = [one for one in dis.get_instructions(code) if one.opname not in ("CACHE", "EXTENDED_ARG")]
    chains: list[tuple[str, ...]] = []
    names: set[str] = set()
    problem, changes_self = None, False
    handlers = 0
    for i, instruction in enumerate(instructions):
        name, argument = instruction.opname, instruction.argval
        handlers += {"PUSH_EXC_INFO": 1, "SETUP_FINALLY": 1, "WITH_EXCEPT_START": -1, "SETUP_WITH": 1}.get(name, 0)
        if name in _ATTRIBUTES:
            names.add(argument)
        elif name in ("LOAD_GLOBAL", "LOAD_NAME"):
            chains.append((argument, *_attributes_from(instructions, i + 1)))
        elif name == "STORE_ATTR":
            changes_self = True
            problem = problem or _of_another(code, instructions, i)
        elif name == "IMPORT_NAME" and argument.partition(".")[0] not in ("torch", "math"):
            problem = f"imports {argument}"
        elif name.startswith(("STORE_", "DELETE_")) and not _is_local(code, name, argument):
            problem = f"sets {argument}"
    if handlers > 0:
        # What is raised here would be handled there.
        problem = problem or "handles exceptions"
    return _Facts(problem, chains, names, changes_self)


def _is_local(code: CodeType, name: str, argument: Any) -> bool:
    if name in ("STORE_DEREF", "DELETE_DEREF"):
        return argument not in code.co_freevars
    return name.startswith(_OF_LOCALS) or name in _OF_ELEMENTS


def _of_another(code: CodeType, instructions: list[dis.Instruction], place: int) -> str | None:
    """A problem where an attribute is set of anything but the function's first argument."""
    before = instructions[place - 1]
    if before.opname in ("SWAP", "ROT_TWO"):
        # It is changed in place: the object was loaded before its attribute was.
        name = instructions[place].argval
        loads = [i for i in range(place) if instructions[i].opname in _ATTRIBUTES and instructions[i].argval == name]
        before = instructions[max(loads[-1] - 2, 0)] if loads else before
    loaded = before.argval[-1] if type(before.argval) is tuple else before.argval
    is_first = "LOAD_FAST" in before.opname and code.co_argcount > 0 and loaded == code.co_varnames[0]
    return None if is_first else "sets an attribute of another object"


def _attributes_from(instructions: list[dis.Instruction], start: int) -> Iterator[str]:
    for instruction in instructions[start:]:
        if instruction.opname in _ATTRIBUTES:
            yield instruction.argval
        elif instruction.opname != "PUSH_NULL":
            return
