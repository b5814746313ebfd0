"""Regular expressions as Python's own parser takes them apart: a tree of (operation, arguments)."""

from __future__ import annotations

import importlib
import re
import sys
from collections.abc import Iterator
from typing import Any

_NEW = sys.version_info >= (3, 11)
_parser: Any = importlib.import_module("re._parser" if _NEW else "sre_parse")
_compiler: Any = importlib.import_module("re._compiler" if _NEW else "sre_compile")
constants: Any = importlib.import_module("re._constants" if _NEW else "sre_constants")

# Python 3.11 has these; nothing else has None for its operation.
ATOMIC_GROUP: Any = getattr(constants, "ATOMIC_GROUP", None)
POSSESSIVE_REPEAT: Any = getattr(constants, "POSSESSIVE_REPEAT", None)

REPEATS = (constants.MAX_REPEAT, constants.MIN_REPEAT)
LOOKS = (constants.ASSERT, constants.ASSERT_NOT)

_MOST_FOLDED = 1 << 21


class TooLarge(ValueError):
    """A pattern that takes too long to compile; the text says so."""


def parse(regex: str) -> Any:
    """Return the tree of a regular expression.

    Raises:
        re.error, RecursionError, OverflowError: it is none.
    """
    return _parser.parse(regex)


def compiled(tree: Any) -> re.Pattern[str]:
    """Return the pattern of a whole tree.

    Raises:
        re.error, RecursionError, OverflowError: there is none.
    """
    pattern: re.Pattern[str] = _compiler.compile(tree)
    return pattern


def compiled_node(tree: Any, node: Any, flags: tuple[tuple[int, int], ...]) -> re.Pattern[str]:
    """Return the pattern of one node of a tree, under the (added, removed) flags of the groups around it."""
    inner = _parser.SubPattern(tree.state, [node])
    for added, removed in reversed(flags):
        inner = _parser.SubPattern(tree.state, [(constants.SUBPATTERN, (None, added, removed, inner))])
    return compiled(inner)


def check_classes(tree: Any) -> None:
    """Check that classes of characters can be compiled: where case is ignored each character is looked at.

    Raises:
        TooLarge: there are too many.
    """
    spans = (arguments for operation, arguments in nodes_of(tree) if operation is constants.RANGE)
    if sum(last - first for first, last in spans) > _MOST_FOLDED and ignores_case(tree):
        raise TooLarge("has too many characters in its classes to ignore their case")


def ignores_case(tree: Any) -> bool:
    """Whether any part of a pattern ignores the case of letters."""
    added = (arguments[1] for operation, arguments in nodes_of(tree) if operation is constants.SUBPATTERN)
    return bool(tree.state.flags & re.IGNORECASE or any(flags & re.IGNORECASE for flags in added))


def nodes_of(tree: Any) -> Iterator[tuple[Any, Any]]:
    """Yield all nodes of a tree, or of a node and what is inside of it, in no order."""
    pending = [tree]
    while pending:
        part = pending.pop()
        if isinstance(part, tuple) and len(part) == 2 and isinstance(part[0], constants._NamedIntConstant):
            yield part
            part = part[1]
        if isinstance(part, (list, tuple, _parser.SubPattern)):
            pending.extend(part)
