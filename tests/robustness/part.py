"""One kind of harm, as many cases as wanted; each case is made from its number alone."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

SECONDS = 10
MEMORY_BYTES = 1 << 30


class Case(random.Random):
    """One case's random numbers, the same in every run.

    number: of the case.
    """

    number = 0


@dataclass(frozen=True)
class Part:
    """What is done and how it may end.

    module: in this package, which has the part.
    title: of its section on the page.
    told: what is done, in sentences for the page.
    cases: how many there are in a full run.
    prepare: makes an empty folder ready, once for each process.
    attempt: does the case in the folder and returns in a few words how it ended; whatever it raises was not survived.
    seconds: that a case may take.
    memory_bytes: that a process may take beside what it has once it is prepared; None for a part that starts programs.
    name: under which the module has the part.
    sample: how many cases are among the tests.
    """

    module: str
    title: str
    told: str
    cases: int
    prepare: Callable[[Path], None]
    attempt: Callable[[Case, Path], str]
    seconds: int = SECONDS
    memory_bytes: int | None = MEMORY_BYTES
    name: str = "PART"
    sample: int = 300

    @property
    def key(self) -> str:
        """What the part is called on the command line."""
        return self.module if self.name == "PART" else f"{self.module}_{self.name.lower()}"

    def case(self, number: int) -> Case:
        """Return the case of this number."""
        case = Case(f"{self.key} {number}")
        case.number = number
        return case
