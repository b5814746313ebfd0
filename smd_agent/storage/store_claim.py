"""Whose a place in a store is: the claim file there, and the next free place beside one that holds a run.

A store has no locks. A run of one worker never goes where there is anything of another, whether that goes on or not.
"""

from __future__ import annotations

import itertools
from typing import NamedTuple

from smd_agent.formats import paths
from smd_agent.storage.claim import alive_here, owner_in
from smd_agent.storage.stores import Store


class Taken(NamedTuple):
    """What of a run is at a place: whether it has ended, and whether it has a step or a worker that writes."""

    finished: bool
    begun: bool

    @classmethod
    def at(cls, store: Store) -> Taken:
        """Look at a place.

        Raises:
            StoreFailure: the store cannot be read.
        """
        there = store.infos(paths.END_MARKER, paths.claim_path())
        begun = paths.claim_path() in there or bool(store.find(paths.INDEX_FOLDER, paths.COLLECTIONS_FOLDER))
        return cls(paths.END_MARKER in there, begun)


class StoreClaim:
    """The claim of one worker.

    Args:
        named: the place that was asked for.
        worker: the worker's name.
        content: of the claim file in the run's folder, which says whose it is.

    Attributes:
        store: the place that it has got.
    """

    def __init__(self, named: Store, worker: str, content: bytes) -> None:
        self.store = named
        self._worker = worker
        self._content = content
        self._name = ""

    def take_alone(self) -> str | None:
        """Get a place for a run of one worker; why it is not the named one, None if it is.

        Raises:
            StoreFailure: the store cannot be read or written.
        """
        named, reason = self.store, None
        # What is beside a bucket is not ours.
        beside = "-" if "/" in named.address.partition("://")[2] else "/run-"
        for number in itertools.count(1):
            ending = f"{beside}{number}" if number > 1 else ""
            place = named.at(f"{named.address}{ending}", ending)
            taken = Taken.at(place)
            if not any(taken) and place.create(paths.claim_path(), self._content):
                self.store, self._name = place, paths.claim_path()
                return reason
            reason = reason or f"{place.address} holds a {'finished ' if taken.finished else ''}run"
        raise AssertionError("there are more numbers")

    def take_as_worker(self, removes_old: bool) -> str | None:
        """Get the named place for one of several workers; None when that has worked, else the reason why not.

        Args:
            removes_old: what an earlier run has left of this worker goes.

        Raises:
            StoreFailure: the store cannot be read or written.
        """
        if paths.END_MARKER in self.store.infos(paths.END_MARKER):
            return "it holds a finished run"
        name = paths.claim_path(self._worker)
        owner = owner_in(self.store.read({name: None}).get(name, b"").decode(errors="replace"))
        if owner is not None and alive_here(owner):
            return f"process {owner['pid']} on {owner.get('host')} is writing to it"
        self.store.write(name, self._content)
        self._name = name
        if removes_old:
            self._remove_old_steps()
        return None

    def release(self) -> None:
        """Give the place up.

        Raises:
            StoreFailure: the store cannot be written.
        """
        if self._name:
            self.store.remove([self._name])

    def _remove_old_steps(self) -> None:
        found = (paths.parse_step_file(name.rpartition("/")[2]) for name in self.store.find(paths.INDEX_FOLDER))
        steps = [step for step in found if step is not None and step[1] == self._worker]
        # In this order: an index that can be seen names an event file that is there.
        self.store.remove(paths.index_path(*step) for step in steps)
        self.store.remove(paths.event_path(*step) for step in steps)
