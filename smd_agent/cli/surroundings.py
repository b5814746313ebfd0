"""With what two runs ran, in a line for each kind of facts that differ."""

from __future__ import annotations

from smd_agent.printable import shortened

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any

    from smd_agent.compare.environments import FactPair

_LONGEST = 60


def fact_lines(pairs: Sequence[FactPair] | None, random_matters: bool) -> Iterator[tuple[str, str]]:
    """Yield labels and texts.

    Args:
        pairs: what differs; None where one of the runs has noted nothing.
        random_matters: whether what differs first may come of random numbers.
    """
    from smd_agent.compare.environments import RANDOM_STATE, SEEDS, spoken

    groups: dict[str, list[FactPair]] = {}
    for pair in pairs or ():
        groups.setdefault(pair.group, []).append(pair)
    seeded = {pair.name for pair in groups.get(SEEDS, ())}
    states = [pair.name for pair in groups.pop(RANDOM_STATE, ()) if pair.name not in seeded]
    for group, own in groups.items():
        texts = (f"{one.name} {' | '.join(spoken(group, value) for value in (one.here, one.there))}" for one in own)
        yield group.capitalize()[:10], "; ".join(shortened(text, 2 * _LONGEST) for text in texts)
    if states and random_matters:
        names = " and ".join(shortened(name, _LONGEST) for name in states)
        yield "Random", f"another state of {names} at the first saved step"


def facts_as_json(pairs: Sequence[FactPair] | None) -> list[dict[str, Any]] | None:
    """Return the same for programs."""
    if pairs is None:
        return None
    return [{"group": one.group, "name": one.name, "a": one.here, "b": one.there} for one in pairs]
