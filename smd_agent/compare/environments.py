"""With what two runs ran: versions, devices, settings and seeds that are not the same, as far as both note them."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from smd_agent.storage.worker_files_reader import read_about

if TYPE_CHECKING:
    from smd_agent.analysis.trial import Trial
    from smd_agent.formats.notes import Facts

RANDOM_STATE, SEEDS = "random state", "seeds"

# A seed above it is one that PyTorch draws where the program sets none.
_LARGEST_CHOSEN = 2**32


class FactPair(NamedTuple):
    """A fact that is not the same in two runs; None in the run that does not have it."""

    group: str
    name: str
    here: str | None
    there: str | None


def environment_of(trial: Trial) -> Facts:
    """Return the facts of a run's first worker, as text by group and name; none where it has noted none."""
    return next((one.environment for one in read_about(trial.root) if one.environment), {})


def facts_apart(here: Trial, there: Trial) -> list[FactPair] | None:
    """Return the facts that differ, in the order in which they were noted; None where one of the runs has none."""
    mine, its = environment_of(here), environment_of(there)
    if not (mine and its):
        return None
    names = dict.fromkeys((group, name) for facts in (mine, its) for group, own in facts.items() for name in own)
    pairs = (FactPair(*key, _value(mine, *key), _value(its, *key)) for key in names)
    return [pair for pair in pairs if pair.here != pair.there]


def _value(facts: Facts, group: str, name: str) -> str | None:
    return facts.get(group, {}).get(name)


def spoken(group: str, value: str | None) -> str:
    """Return a fact as it is shown: a seed that nobody has chosen says so."""
    if value is None:
        return "-"
    if group == SEEDS and value.isdecimal() and len(value) < 25 and int(value) > _LARGEST_CHOSEN:
        return f"{value} (drawn)"
    return value
