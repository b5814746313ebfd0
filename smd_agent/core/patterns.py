"""Regular expressions of users and of files, asked whether they are found in the names of tensors.

Python's matcher tries one way after the other, and a pattern can be written for which there are more ways than a life
has seconds; nothing else in the process runs meanwhile. So the parsed pattern says how many steps a name can take.
Where these are too many, all ways are followed at once: each part of the pattern, from its end to its start, turns the
places of a name that can be gone on from into the places before the part. A pattern for which that cannot be done, as
it refers back to what it has found, is refused when it is given, if it can take too long.
"""

from __future__ import annotations

import importlib
import re
import sys
from collections.abc import Callable, Iterator
from functools import lru_cache, reduce
from operator import or_
from typing import Any

from smd_agent.errors import SMDebugValueError
from smd_agent.printable import shortened

_NEW = sys.version_info >= (3, 11)
_parser: Any = importlib.import_module("re._parser" if _NEW else "sre_parse")
_compiler: Any = importlib.import_module("re._compiler" if _NEW else "sre_compile")
_codes: Any = importlib.import_module("re._constants" if _NEW else "sre_constants")

LONGEST_PATTERN = 1 << 16
# Names of up to this length are matched by every pattern that is accepted.
ORDINARY_NAME = 255

# Steps of Python's matcher: some hundredths of a second, and, where there is no other way, about a second.
_QUICK_STEPS = 5_000_000
_MOST_STEPS = 50_000_000
_LONGEST_PLAIN = 1 << 16
# So many that nothing is gained by counting on.
_ENDLESS = 10**18
# Steps of all ways at once: about a second.
_MOST_WORK = 1_000_000
_MOST_FOLDED = 1 << 21

_CHARACTERS = (_codes.LITERAL, _codes.NOT_LITERAL, _codes.ANY, _codes.IN)
_REPEATS = (_codes.MAX_REPEAT, _codes.MIN_REPEAT)
_LOOKS = (_codes.ASSERT, _codes.ASSERT_NOT)
# Python 3.11 has these; nothing else has None for its operation.
_ATOMIC_GROUP: Any = getattr(_codes, "ATOMIC_GROUP", None)
_POSSESSIVE_REPEAT: Any = getattr(_codes, "POSSESSIVE_REPEAT", None)

# From the places of a name after a part of a pattern to those before it; places are the bits of a number.
_Part = Callable[["_Name", int], int]
# The places of a name at which something is found, whatever stands before and after it in the pattern.
_Question = Callable[["_Name"], int]


class UnfitPattern(SMDebugValueError):
    """A regular expression that cannot be used; ``reason`` says why, as the rest of a sentence about it."""

    def __init__(self, regex: str, reason: str) -> None:
        super().__init__(regex, reason)
        self.regex = regex
        self.reason = reason

    def __str__(self) -> str:
        return f"{shortened(repr(self.regex), 60)} {self.reason}"


class NamePattern:
    """A regular expression that can be asked about names.

    Raises:
        UnfitPattern: it is none, or can take too long.
    """

    def __init__(self, regex: str) -> None:
        if len(regex) > LONGEST_PATTERN:
            raise UnfitPattern(regex, f"has more than {LONGEST_PATTERN} characters")
        self._regex = regex
        try:
            tree = _parser.parse(regex)
            if _folds_too_much(tree):
                raise UnfitPattern(regex, "has too many characters in its classes to ignore their case")
            self._plain: re.Pattern[str] = _compiler.compile(tree)
            self._all_ways = _all_ways(tree)
            self._plain_length = _longest_name(tree, _QUICK_STEPS if self._all_ways else _MOST_STEPS)
        except RecursionError:
            raise UnfitPattern(regex, "is not a regular expression: it is nested too deeply") from None
        except (re.error, OverflowError, Warning) as error:
            raise UnfitPattern(regex, f"is not a regular expression: {error}") from None
        # Names from this length on have taken too long.
        self._endless_length = sys.maxsize if self._all_ways else self._plain_length + 1
        if self._endless_length <= ORDINARY_NAME:
            raise UnfitPattern(regex, "can take longer to match than a training lasts")

    def found_in(self, name: str) -> bool:
        """True if it is found anywhere in a name, as `re.search` would; in a bounded time.

        Raises:
            UnfitPattern: the answer would take too long.
        """
        if len(name) <= self._plain_length:
            return self._plain.search(name) is not None
        if self._all_ways is not None and len(name) < self._endless_length:
            try:
                followed = _Name(name)
                return self._all_ways(followed, followed.all) != 0
            except (_TooMuchWork, RecursionError):
                self._endless_length = len(name)
        raise UnfitPattern(self._regex, f"can take too long to look for in a name of {len(name)} characters")


@lru_cache(1024)
def name_pattern(regex: str) -> NamePattern:
    """The pattern of a regular expression, made once.

    Raises:
        UnfitPattern: it is none, or can take too long.
    """
    return NamePattern(regex)


def _nodes_of(tree: Any) -> Iterator[tuple[Any, Any]]:
    """Yield all nodes of a tree, in no order."""
    pending = [tree]
    while pending:
        part = pending.pop()
        if isinstance(part, tuple) and len(part) == 2 and isinstance(part[0], _codes._NamedIntConstant):
            yield part
            part = part[1]
        if isinstance(part, (list, tuple, _parser.SubPattern)):
            pending.extend(part)


def _folds_too_much(tree: Any) -> bool:
    """True if a tree would take long to compile: where case is ignored each character of a class is looked at."""
    flags, spans = tree.state.flags, 0
    for operation, arguments in _nodes_of(tree):
        if operation is _codes.SUBPATTERN:
            flags |= arguments[1]
        elif operation is _codes.RANGE:
            spans += arguments[1] - arguments[0]
    return bool(flags & re.IGNORECASE) and spans > _MOST_FOLDED


def _longest_name(tree: Any, most_steps: int) -> int:
    """Return a length up to which names take Python's matcher at most so many steps, one less than a power of two."""
    begins = not tree.state.flags & re.MULTILINE and len(tree) > 0 and tree[0] == (_codes.AT, _codes.AT_BEGINNING)
    length = 0
    while length < _LONGEST_PLAIN and _steps(tree, length)[0] * (1 if begins else length + 1) <= most_steps:
        length = 2 * length + 1
    return (length - 1) // 2 if length else -1


def _steps(nodes: Any, length: int) -> tuple[int, int]:
    """Return bounds from above of the steps that some nodes take at one place in a name, and of the ways out of them.

    All that follows a node is tried in each of its ways.
    """
    taken, ways = 1, 1
    for operation, arguments in nodes:
        own, exits = _steps_of_node(operation, arguments, length)
        taken = min(taken + ways * own, _ENDLESS)
        ways = min(ways * exits, _ENDLESS)
    return taken, ways


def _steps_of_node(operation: Any, arguments: Any, length: int) -> tuple[int, int]:
    if operation in _REPEATS:
        return _steps_of_repeat(arguments, length)
    if operation is _POSSESSIVE_REPEAT:
        return _steps_of_repeat(arguments, length)[0], 1
    if operation is _codes.SUBPATTERN:
        return _steps(arguments[-1], length)
    if operation in _LOOKS:
        return _steps(arguments[1], length)[0], 1
    if operation is _ATOMIC_GROUP:
        return _steps(arguments, length)[0], 1
    if operation in (_codes.BRANCH, _codes.GROUPREF_EXISTS):
        branches = arguments[1] if operation is _codes.BRANCH else arguments[1:]
        bounds = [_steps(branch or (), length) for branch in branches]
        return sum(taken for taken, _ in bounds), sum(ways for _, ways in bounds)
    return (length + 1, 1) if operation is _codes.GROUPREF else (1, 1)


def _steps_of_repeat(arguments: tuple[int, int, Any], length: int) -> tuple[int, int]:
    least, most, item = arguments
    taken, ways = _steps(item, length)
    # An item that may be empty is repeated once more than there are characters.
    rounds = min(most, length // max(item.getwidth()[0], 1) + 1)
    if ways == 1:
        return min(taken * (rounds + 1), _ENDLESS), max(rounds - least, 0) + 1
    # Each further round has all ways of those before it.
    exits = _ENDLESS if rounds >= _ENDLESS.bit_length() else min(ways**rounds * (rounds + 1), _ENDLESS)
    return min(taken * exits, _ENDLESS), exits


class _TooMuchWork(Exception):
    pass


class _NotFollowed(Exception):
    pass


class _Name:
    """A name whose places are the bits of a number, with what is left of the work that it may take."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.all = (1 << len(text) + 1) - 1
        self._left = _MOST_WORK
        self._cost = 1 + (len(text) >> 10)
        self._answers: dict[_Question, int] = {}

    def work(self) -> None:
        """Count a step.

        Raises:
            _TooMuchWork: there were too many.
        """
        self._left -= self._cost
        if self._left < 0:
            raise _TooMuchWork

    def places_of(self, question: _Question) -> int:
        """Return the places that answer a question, which is asked once."""
        if question not in self._answers:
            self._left -= len(self.text)
            self._answers[question] = question(self)
        return self._answers[question]


def _all_ways(tree: Any) -> _Part | None:
    """Return a tree as a part, or None where it cannot be one."""
    try:
        return _Parts().sequence(tree, tree.state.flags)
    except _NotFollowed:
        return None


class _Parts:
    """The parts of one pattern; `_NotFollowed` is raised for what cannot be one.

    What one character, or one place between two, has to be is asked of Python's own matcher: the rules are its own.
    """

    def __init__(self) -> None:
        self._questions: dict[str, _Question] = {}

    def sequence(self, nodes: Any, flags: int) -> _Part:
        parts = [self._part(operation, arguments, flags) for operation, arguments in reversed(nodes)]

        def before(name: _Name, places: int) -> int:
            for part in parts:
                name.work()
                places = part(name, places)
                if not places:
                    break
            return places

        return before

    def _part(self, operation: Any, arguments: Any, flags: int) -> _Part:
        if operation in _CHARACTERS:
            character = self._question((operation, arguments), flags)
            return lambda name, places: places >> 1 & name.places_of(character)
        if operation is _codes.AT:
            between = self._question((operation, arguments), flags)
            return lambda name, places: places & name.places_of(between)
        if operation in _LOOKS:
            return self._look(operation is _codes.ASSERT, arguments, flags)
        if operation is _codes.FAILURE:
            return lambda name, places: 0
        if operation is _codes.BRANCH:
            branches = [self.sequence(branch, flags) for branch in arguments[1]]
            return lambda name, places: reduce(or_, (branch(name, places) for branch in branches))
        if operation is _codes.SUBPATTERN:
            return self.sequence(arguments[-1], _compiler._combine_flags(flags, *arguments[1:3]))
        if operation in _REPEATS:
            least, most, item = arguments
            return _repeated(least, most, self.sequence(item, flags))
        raise _NotFollowed

    def _look(self, wanted: bool, arguments: tuple[int, Any], flags: int) -> _Part:
        direction, nodes = arguments
        inner = self.sequence(nodes, flags)

        def ahead(name: _Name) -> int:
            return inner(name, name.all)

        def behind(name: _Name) -> int:
            return sum(1 << place for place in range(len(name.text) + 1) if inner(name, 1 << place))

        seen = ahead if direction > 0 else behind
        return lambda name, places: places & (name.places_of(seen) if wanted else ~name.places_of(seen))

    def _question(self, node: Any, flags: int) -> _Question:
        key = repr((node, flags))
        if key not in self._questions:
            state = _parser.State()
            state.flags = flags
            pattern = _compiler.compile(_parser.SubPattern(state, [node]))

            def found(name: _Name) -> int:
                bits = bytearray(b"0" * (len(name.text) + 1))
                for match in pattern.finditer(name.text):
                    bits[-1 - match.start()] = ord("1")
                return int(bits, 2)

            self._questions[key] = found
        return self._questions[key]


def _repeated(least: int, most: int, item: _Part) -> _Part:
    def before(name: _Name, places: int) -> int:
        for _ in range(least):
            last, places = places, item(name, places)
            if places in (0, last):
                break
        # Those that are new lead on alone: the others have been followed.
        new = places
        for _ in range(most - least):
            new = item(name, new) & ~places
            places |= new
            if not new:
                break
        return places

    return before
