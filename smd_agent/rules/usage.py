"""Bases of the rules that look at facts of a program: at the collection ``usage``, or at ``data_facts``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from smd_agent.core.collection_keys import CollectionKeys
from smd_agent.framework.training_facts import DATA_FACTS, USAGE
from smd_agent.rules.built_in import BuiltInRule, Need

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from smd_agent.rules.step_view import StepView

Numbers = dict[str, float]


def numbers_of(
    step: StepView, kind: str, collection: str = CollectionKeys.USAGE, prefix: str = USAGE
) -> dict[str, Numbers]:
    """Return the numbers of all of a kind, by what they are of and by name."""
    found: dict[str, Numbers] = {}
    for name, number in step.numbers(step.names(collection)).items():
        of, _, fact = name.removeprefix(prefix).rpartition("/")
        if of.startswith(f"{kind}/"):
            found.setdefault(of, {})[fact] = number
    return found


class RuleOfUsage(BuiltInRule):
    """A rule that looks at numbers of the collection ``usage``; of a run without those of its kind it says nothing.

    Class attributes:
        kind: what they are of, such as ``optimizer``, ``model`` or ``loss``.
        collection, prefix: where the numbers are, and with what their names begin.
        facts: their names, of which one is enough.
    """

    brings: ClassVar[Mapping[str, Mapping[str, Any]]] = {"usage": {}}
    needs: tuple[Need, ...] = (Need((CollectionKeys.USAGE,)),)
    kind: ClassVar[str]
    collection: ClassVar[str] = CollectionKeys.USAGE
    prefix: ClassVar[str] = USAGE
    facts: ClassVar[tuple[str, ...]]

    def start(self) -> None:
        """Begin with nothing seen."""
        self._has_any = False
        self._in_a_row: dict[str, int] = {}

    def take(self, step: StepView) -> None:
        """Look at each one of the kind."""
        for of, numbers in numbers_of(step, self.kind, self.collection, self.prefix).items():
            if any(fact in numbers for fact in self.facts):
                self._has_any = True
                self.look_at(step, of, numbers)

    def look_at(self, step: StepView, of: str, numbers: Numbers) -> None:
        """Look at the numbers of one, such as ``optimizer/Adam``, by name."""
        raise NotImplementedError

    def row(self, of: str, goes_on: bool) -> int:
        """Count a step at which something holds; of how many in a row, 0 where it does not hold."""
        self._in_a_row[of] = self._in_a_row.get(of, 0) + 1 if goes_on else 0
        return self._in_a_row[of]

    @property
    def has_judged(self) -> bool:
        """Whether it has seen enough of its kind."""
        return self._has_any and super().has_judged

    def fits(self, collections: Collection[str]) -> bool:
        """Tell whether the run has anything of its kind."""
        return super().fits(collections) and (self._has_any or not self._steps_seen)


class RuleOfData(RuleOfUsage):
    """A rule that looks at numbers of the collection ``data_facts``; ``kind`` is ``labels`` or ``evaluation``."""

    brings: ClassVar[Mapping[str, Mapping[str, Any]]] = {"data_facts": {}}
    needs: tuple[Need, ...] = (Need((CollectionKeys.DATA_FACTS,)),)
    collection = CollectionKeys.DATA_FACTS
    prefix = DATA_FACTS
