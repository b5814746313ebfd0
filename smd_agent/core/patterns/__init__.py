"""Regular expressions of users and of files, asked whether they are found in the names of tensors.

Python's matcher tries one way after the other, and a pattern can be written for which there are more ways than a life
has seconds; nothing else in the process runs meanwhile. So `effort` bounds, from the parsed pattern, how many steps a
name can take. Where these are too many, `automaton` follows all ways at once, in a time that grows with the name only.
What can be done by neither is refused, when the pattern is given and not while a name is waited for.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

from smd_agent.core.patterns import parsed
from smd_agent.core.patterns.automaton import Automaton, NoAutomaton
from smd_agent.core.patterns.effort import longest_name
from smd_agent.errors import SMDebugValueError
from smd_agent.printable import shortened

LONGEST_PATTERN = 1 << 16

# Steps of Python's matcher: a few milliseconds, and, where there is nothing else, about a second.
QUICK_STEPS = 100_000
MOST_STEPS = 50_000_000
# Names of up to this length are matched by every pattern that is accepted.
ORDINARY_NAME = 255

_REMEMBERED = 1024
_ANSWERS = 4096


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
        self._automaton: Automaton | None = None
        # The same names are asked for while a run is written and when it is read.
        self._answers: dict[str, bool] = {}
        try:
            self._tree: Any = parsed.parse(regex)
            parsed.check_classes(self._tree)
            self._plain = parsed.compiled(self._tree)
            self._plain_length = longest_name(self._tree, QUICK_STEPS)
            if self._plain_length < ORDINARY_NAME:
                self._find_another_way()
        except parsed.TooLarge as error:
            raise UnfitPattern(regex, str(error)) from None
        except RecursionError:
            raise UnfitPattern(regex, "is not a regular expression: it is nested too deeply") from None
        except (re.error, OverflowError, Warning) as error:
            raise UnfitPattern(regex, f"is not a regular expression: {error}") from None
        if max(self._plain_length, self._other_length) < ORDINARY_NAME:
            raise UnfitPattern(regex, "can take longer to match than a training lasts")

    @property
    def _other_length(self) -> int:
        return self._automaton.longest_name if self._automaton is not None else -1

    def found_in(self, name: str) -> bool:
        """Whether it is found anywhere in a name, as `re.search` would; in a bounded time.

        Raises:
            UnfitPattern: the name has more than `ORDINARY_NAME` characters, and the answer could take too long.
        """
        if len(name) <= self._plain_length:
            return self._plain.search(name) is not None
        if self._tree is not None:
            self._find_another_way()
        if self._automaton is not None and len(name) <= self._other_length:
            return self._automaton_finds(name, self._automaton)
        if len(name) <= self._plain_length:
            return self._plain.search(name) is not None
        raise UnfitPattern(self._regex, f"can take too long to look for in a name of {len(name)} characters")

    def _automaton_finds(self, name: str, automaton: Automaton) -> bool:
        found = self._answers.get(name)
        if found is None:
            found = automaton.found_in(name)
            if len(self._answers) >= _ANSWERS:
                self._answers.clear()
            self._answers[name] = found
        return found

    def _find_another_way(self) -> None:
        tree, self._tree = self._tree, None
        try:
            self._automaton = Automaton(tree)
        except NoAutomaton:
            self._plain_length = longest_name(tree, MOST_STEPS)


@lru_cache(_REMEMBERED)
def name_pattern(regex: str) -> NamePattern:
    """The pattern of a regular expression, made once.

    Raises:
        UnfitPattern: it is none, or can take too long.
    """
    return NamePattern(regex)
