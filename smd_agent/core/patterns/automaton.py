"""A matcher that follows all ways through a pattern at once.

It reads each character of a name once. The states that can be reached together are remembered with where the next
character leads from them, so that a name like those before takes a look-up for each of its characters.
What one character, or one place between two, has to be is asked of Python's own matcher, so that the rules are its own.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any

from smd_agent.core.patterns.effort import steps_at_one_place
from smd_agent.core.patterns.parsed import LOOKS, REPEATS, compiled_node, constants, nodes_of

_MOST_STATES = 50_000
_MOST_WORK = 20_000_000
_REMEMBERED = 10_000
# A look back from one place in a name.
_MOST_STEPS_BACK = 10_000

_CHARACTERS = (constants.LITERAL, constants.NOT_LITERAL, constants.ANY, constants.IN)
_REFERENCES = (constants.GROUPREF, constants.GROUPREF_EXISTS)

Flags = tuple[tuple[int, int], ...]
States = frozenset[int]
Check = Callable[[str, int], object]


class NoAutomaton(Exception):
    """A pattern that refers back to what it has found, or has too many states."""


class _State:
    """What is done next: a character is read, a place is checked, or neither; then on to the targets."""

    __slots__ = ("character", "check", "targets")

    def __init__(self, targets: Iterable[int], character: Any = None, check: Check | None = None) -> None:
        self.targets = [*targets]
        self.character: re.Pattern[str] | None = character
        self.check = check


class Automaton:
    """The automaton of a parsed pattern, or of the part of one that a look ahead has.

    Args:
        tree: the parsed pattern.
        part: nodes of it, which are looked for at one place only; None for all, which are looked for everywhere.
        flags: that are added and removed by the groups around the part.

    Attributes:
        longest_name: the length up to which names are matched in a bounded time.

    Raises:
        NoAutomaton: there is none.
    """

    def __init__(self, tree: Any, part: Any = None, flags: Flags = ()) -> None:
        self._tree = tree
        self._states: list[_State] = [_State(())]
        self._patterns: dict[str, re.Pattern[str]] = {}
        self._checks = self._looks = False
        # How many looks ahead are inside of each other.
        self._depth = 0
        nodes = tree if part is None else part
        self._start = frozenset((self._sequence(nodes, 0, flags),))
        self._further: States = self._start if part is None else frozenset()
        self._known: dict[tuple[Any, ...], tuple[bool, States]] = {}
        # Each look ahead goes through the rest of the name from every place.
        self.longest_name = int((_MOST_WORK / len(self._states)) ** (1 / (self._depth + 1)))

    def found_in(self, name: str, start: int = 0) -> bool:
        """Whether the pattern is found anywhere in a name from a place on; that of a part, at that place."""
        current, before, last = self._start, name[start - 1 : start] if start else "", len(name) - 1
        for place in range(start, len(name)):
            character = name[place]
            # What a check sees is on both sides of it, and whether a line end is the last character.
            key = (current, before, character, place == last) if self._checks else (current, character)
            known = None if self._looks else self._known.get(key)
            if known is None:
                known = self._advance(key, current, name, place)
            found, current = known
            if found or not current:
                return found
            before = character
        return 0 in self._reached(current, name, len(name))

    def _advance(self, key: tuple[Any, ...], current: States, name: str, place: int) -> tuple[bool, States]:
        reached = self._reached(current, name, place)
        character = name[place]
        following = {
            target
            for number in reached
            if (state := self._states[number]).character is not None and state.character.match(character)
            for target in state.targets
        }
        step = (0 in reached, self._further | following)
        if len(self._known) >= _REMEMBERED:
            self._known.clear()
        self._known[key] = step
        return step

    def _reached(self, current: States, name: str, place: int) -> set[int]:
        """Return the states that are reached at a place before a further character is read."""
        reached, pending = set(current), [*current]
        while pending:
            state = self._states[pending.pop()]
            if state.character is None and (state.check is None or state.check(name, place)):
                new = [target for target in state.targets if target not in reached]
                reached.update(new)
                pending += new
        return reached

    def _sequence(self, nodes: Any, after: int, flags: Flags) -> int:
        """Add the states of some nodes, whose end leads to ``after``; return the first."""
        for number in range(len(nodes) - 1, -1, -1):
            after = self._node(nodes[number], after, flags)
        return after

    def _node(self, node: Any, after: int, flags: Flags) -> int:
        operation, arguments = node
        if operation in _CHARACTERS:
            return self._add(_State((after,), character=self._asked(node, flags)))
        if operation is constants.AT:
            self._checks = True
            return self._add(_State((after,), check=self._asked(node, flags).match))
        if operation in LOOKS:
            return self._look(node, after, flags)
        if operation is constants.FAILURE:
            return self._add(_State(()))
        if operation is constants.BRANCH:
            return self._add(_State([self._sequence(branch, after, flags) for branch in arguments[1]]))
        if operation is constants.SUBPATTERN:
            _, added, removed, inner = arguments
            return self._sequence(inner, after, (*flags, (added, removed)) if added or removed else flags)
        if operation in REPEATS:
            return self._repeat(arguments, after, flags)
        raise NoAutomaton

    def _look(self, node: Any, after: int, flags: Flags) -> int:
        self._looks = True
        operation, (direction, inner) = node
        # Alone it does not know what the groups before it have found.
        if any(inside in _REFERENCES for inside, _ in nodes_of(node)):
            raise NoAutomaton
        if direction < 0:
            if steps_at_one_place(self._tree, node, _MOST_STEPS_BACK) > _MOST_STEPS_BACK:
                raise NoAutomaton
            return self._add(_State((after,), check=self._asked(node, flags).match))
        ahead = Automaton(self._tree, inner, flags)
        self._depth = max(self._depth, ahead._depth + 1)
        wanted = operation is constants.ASSERT
        return self._add(_State((after,), check=lambda name, place: ahead.found_in(name, place) is wanted))

    def _repeat(self, arguments: tuple[int, int, Any], after: int, flags: Flags) -> int:
        least, most, item = arguments
        if most == constants.MAXREPEAT:
            entry = self._add(_State(()))
            self._states[entry].targets = [self._sequence(item, entry, flags), after]
        else:
            entry = after
            for _ in range(most - least):
                entry = self._add(_State((self._sequence(item, entry, flags), after)))
        for _ in range(least):
            before, entry = entry, self._sequence(item, entry, flags)
            if entry == before:
                # There is nothing in it.
                break
        return entry

    def _add(self, state: _State) -> int:
        if len(self._states) >= _MOST_STATES:
            raise NoAutomaton
        self._states.append(state)
        return len(self._states) - 1

    def _asked(self, node: Any, flags: Flags) -> re.Pattern[str]:
        key = repr((node, flags))
        if key not in self._patterns:
            self._patterns[key] = compiled_node(self._tree, node, flags)
        return self._patterns[key]
