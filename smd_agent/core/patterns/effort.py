"""How many steps Python's matcher can take at most for a name, from the parsed pattern.

A node costs its own steps and can be left in a number of ways, in each of which all that follows is tried. Both are
bounds from above: patterns that are quick in truth may be taken for slow ones, never the other way round.
"""

from __future__ import annotations

import math
import re
from typing import Any

from smd_agent.core.patterns.parsed import ATOMIC_GROUP, LOOKS, POSSESSIVE_REPEAT, REPEATS, constants, ignores_case

# So many that nothing is gained by counting on.
_ENDLESS = 1e18
_LONGEST = 1 << 16

Bound = tuple[float, float]


def longest_name(tree: Any, most_steps: float) -> int:
    """Return a length up to which names take at most so many steps, one less than a power of two; -1 for no name."""
    length = 0
    while length < _LONGEST and steps(tree, length) <= most_steps:
        length = 2 * length + 1
    return (length - 1) // 2 if length else -1


def steps(tree: Any, length: int) -> float:
    """Return a bound of the steps that a search in a name of this length takes."""
    taken = _Bounds(tree, length).sequence(tree)[0]
    begins = not tree.state.flags & re.MULTILINE and len(tree) > 0 and tree[0] == (constants.AT, constants.AT_BEGINNING)
    return taken + length if begins else taken * (length + 1)


def steps_at_one_place(tree: Any, node: Any, length: int) -> float:
    """Return a bound of the steps that one node of a tree takes at one place in a name of this length."""
    return _Bounds(tree, length).sequence([node])[0]


class _Bounds:
    """Bounds of the steps and of the ways out of a tree's nodes, for names of one length."""

    def __init__(self, tree: Any, length: int) -> None:
        self._length = length
        # Where case is ignored a literal stands for several characters.
        self._exact = not ignores_case(tree)

    def sequence(self, nodes: Any) -> Bound:
        taken, ways = 1.0, 1.0
        for number, node in enumerate(nodes):
            own, exits = self._node(node)
            if self._exact and number + 1 < len(nodes) and _ends_before(node, nodes[number + 1]):
                exits = 1
            taken = min(taken + ways * own, _ENDLESS)
            ways = min(ways * exits, _ENDLESS)
        return taken, ways

    def _node(self, node: Any) -> Bound:
        operation, arguments = node
        if operation in REPEATS:
            return self._repeat(*arguments)
        if operation is POSSESSIVE_REPEAT:
            return self._repeat(*arguments)[0], 1
        if operation is constants.SUBPATTERN:
            return self.sequence(arguments[-1])
        if operation is ATOMIC_GROUP:
            return self.sequence(arguments)[0], 1
        if operation in LOOKS:
            return self.sequence(arguments[1])[0], 1
        if operation is constants.BRANCH:
            return self._either(arguments[1])
        if operation is constants.GROUPREF_EXISTS:
            return self._either([branch for branch in arguments[1:] if branch is not None])
        return (self._length + 1, 1) if operation is constants.GROUPREF else (1, 1)

    def _either(self, branches: list[Any]) -> Bound:
        bounds = [self.sequence(branch) for branch in branches]
        count = max if self._exact and _begin_differently(branches) else sum
        ways: float = count(ways for _, ways in bounds)
        return min(sum(taken for taken, _ in bounds) + 1, _ENDLESS), min(ways, _ENDLESS)

    def _repeat(self, least: int, most: int, item: Any) -> Bound:
        taken, ways = self.sequence(item)
        # An item that may be empty is repeated once more than there are characters.
        rounds = min(most, self._length // max(item.getwidth()[0], 1) + 1)
        least = min(least, rounds)
        if ways == 1:
            return min(taken * (rounds + 1), _ENDLESS), rounds - least + 1
        if rounds * math.log(ways) > math.log(_ENDLESS):
            return _ENDLESS, _ENDLESS
        exits = sum(ways**count for count in range(least, rounds + 1))
        return min(taken * sum(ways**count for count in range(rounds + 1)), _ENDLESS), min(exits, _ENDLESS)


def _begin_differently(branches: list[Any]) -> bool:
    first = [branch[0] if len(branch) else None for branch in branches]
    codes = {node[1] for node in first if node is not None and node[0] is constants.LITERAL}
    return len(codes) == len(branches)


def _ends_before(node: Any, following: Any) -> bool:
    """Whether a repeated character is none that can follow: then there is only one place at which to go on."""
    if node[0] not in REPEATS or following[0] is not constants.LITERAL or len(node[1][2]) != 1:
        return False
    operation, argument = node[1][2][0]
    if operation is constants.LITERAL:
        return bool(argument != following[1])
    if operation is constants.NOT_LITERAL:
        return bool(argument == following[1])
    return operation is constants.IN and not _may_hold(argument, following[1])


def _may_hold(characters: list[Any], code: int) -> bool:
    negated = characters[0][0] is constants.NEGATE
    for operation, argument in characters[negated:]:
        if operation is constants.LITERAL and argument == code:
            return not negated
        if operation is constants.RANGE and argument[0] <= code <= argument[1]:
            return not negated
        if operation is constants.CATEGORY:
            return True
    return negated
