"""Whose a place in a store is: the claim file there, and the next free place beside one that holds a run.

A store has no locks. A run of one worker never goes where there is anything of another, whether that goes on or not;
only a training that goes on from a checkpoint goes on where it was. A mark in the claim file shows that the place is
still its own. The process that the file names shows that nobody writes there: of this machine it is known whether it
runs, one of another must have let ``LEFT_BEHIND_SECONDS`` pass without writing its claim anew.
"""

from __future__ import annotations

import itertools
import json
import math
import os
import re
from typing import NamedTuple

from smd_agent.formats import paths
from smd_agent.formats.training_state import StorePlace
from smd_agent.storage.claim import alive_here, is_gone, is_own, owner_in
from smd_agent.storage.stores import Store

# A claim that a restart may ask for is written anew so often; by the store's clock, one that was not for so long counts
# as left behind.
FRESH_SECONDS = 20.0
LEFT_BEHIND_SECONDS = 60.0

_MARK, _RUN = "mark", "run"

# Step and worker.
_Part = tuple[int, str]


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
        content: of the claim file, see ``marked``.

    Attributes:
        store: the place that it has got.
        name: of the claim file there; empty before there is one.
    """

    def __init__(self, named: Store, worker: str, content: bytes) -> None:
        self.store = named
        self.name = ""
        self._worker = worker
        self._content = content

    @property
    def mark(self) -> str:
        """The mark of the run; empty if the claim has none."""
        return mark_in(self._content)

    def take_alone(self) -> str | None:
        """Get a place for a run of one worker; why it is not the named one, None if it is.

        Raises:
            StoreFailure: the store cannot be read or written.
        """
        named, reason = self.store, None
        for number in itertools.count(1):
            ending = f"{_beside(named.address)}{number}" if number > 1 else ""
            place = named.at(f"{named.address}{ending}", ending)
            taken = Taken.at(place)
            if not any(taken) and place.create(paths.claim_path(), self._content):
                self.store, self.name = place, paths.claim_path()
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
        owner = owner_in(_text(self.store.read({name: None}).get(name)))
        if owner is not None and alive_here(owner):
            return f"{_named(owner)} is writing to it"
        self.store.write(name, self._content)
        self.name = name
        if removes_old:
            remove_steps(self.store, self._worker)
        return None

    def take_up(self, earlier: StorePlace, alone: bool) -> str | None:
        """Get the place of the run that this one goes on with; None when that has worked, else the reason why not.

        Args:
            earlier: the place as an earlier start of the training has left it.
            alone: no other worker is known.

        Raises:
            StoreFailure: the store cannot be read or written.
        """
        place = self.store.at(earlier.address, earlier.address.removeprefix(self.store.address))
        name = paths.claim_path(None if alone else self._worker)
        claims = place.read(dict.fromkeys((earlier.claim, name)))
        if mark_in(claims.get(earlier.claim, b"")) != earlier.mark:
            return f"{place.address} holds another run than this training's"
        before = name if name in claims else earlier.claim
        # A worker that is new, beside others that were there, is in nobody's way.
        if alone or before in (name, paths.claim_path()):
            reason = _still_there(place, before, owner_in(_text(claims[before])), alone)
            if reason is not None:
                return reason
        self._content = marked(self._content, earlier.mark)
        place.write(name, self._content)
        self.store, self.name = place, name
        return None

    def renew(self) -> str | None:
        """Write the claim anew; None when that has worked, else who has taken the place over.

        Raises:
            StoreFailure: the store cannot be read or written.
        """
        found = self.store.read({self.name: None}).get(self.name, self._content)
        if found != self._content:
            owner = owner_in(_text(found))
            return f"{'another process' if owner is None else _named(owner)} has taken {self.store.address} over"
        self.store.write(self.name, self._content)
        return None

    def release(self, keeps_mark: bool) -> None:
        """Give the place up.

        Args:
            keeps_mark: the claim file stays and names nobody, so that a later start of the training finds its run.

        Raises:
            StoreFailure: the store cannot be written.
        """
        if self.name and keeps_mark:
            self.store.write(self.name, json.dumps({_RUN: self.mark}).encode())
        elif self.name:
            self.store.remove([self.name])


def marked(own: bytes, mark: str) -> bytes:
    """The content of a claim file: of the one in the run's folder, and the mark of the run where that is older."""
    fields = owner_in(_text(own))
    if fields is None or fields.get(_MARK) == mark:
        return own
    return json.dumps({**fields, _RUN: mark}).encode()


def mark_in(content: bytes) -> str:
    """The mark of the run that a claim file is of; empty if it has none."""
    try:
        fields = json.loads(_text(content))
        return str(fields.get(_RUN) or fields.get(_MARK) or "")
    except (ValueError, AttributeError, RecursionError):
        return ""


def is_place_of(earlier: StorePlace, named: str) -> bool:
    """Whether a run in this place may have been asked to go to the address ``named``."""
    beside = rf"({re.escape(_beside(named))}\d+)?"
    known = earlier.claim == paths.claim_path() or paths.parse_worker_claim(earlier.claim) is not None
    return known and bool(earlier.mark) and re.fullmatch(re.escape(named) + beside, earlier.address) is not None


def remove_steps(place: Store, worker: str | None, after: int = -1) -> tuple[set[_Part], set[_Part]]:
    """Remove the steps behind one, of one worker or, with None, of all, and what no index names.

    Returns:
        The steps that there were, and those that are left.

    Raises:
        StoreFailure: the store cannot be read or written.
    """
    found: dict[str, set[_Part]] = {}
    for folder in (paths.INDEX_FOLDER, paths.EVENTS_FOLDER):
        parts = (paths.parse_step_file(name.rpartition("/")[2]) for name in place.find(folder))
        found[folder] = {part for part in parts if part is not None and worker in (None, part[1])}
    kept = {part for part in found[paths.INDEX_FOLDER] if part[0] <= after}
    indexes, events = (parts - kept for parts in found.values())
    # In this order: an index that can be seen names an event file that is there.
    place.remove(paths.index_path(*part) for part in sorted(indexes))
    place.remove(paths.event_path(*part) for part in sorted(events))
    return indexes, kept


def _beside(address: str) -> str:
    # What is beside a bucket is not ours.
    return "-" if "/" in address.partition("://")[2] else "/run-"


def _still_there(place: Store, name: str, owner: dict[str, object] | None, alone: bool) -> str | None:
    """Why the owner of a claim may still write; None if nobody does."""
    if owner is None or is_own(owner) or is_gone(owner):
        return None
    if alive_here(owner):
        return f"{_named(owner)} is writing to {place.address}"
    # Several come to their place whatever stands in their claims, as they do where no run is gone on with.
    seconds = _age(place, name) if alone else math.inf
    if seconds is None or seconds < LEFT_BEHIND_SECONDS:
        return f"{_named(owner)} may be writing to {place.address}"
    return None


def _age(place: Store, name: str) -> float | None:
    """Seconds since a file was written, by the store's clock; None where that is not known."""
    now = f"{name}.{os.urandom(6).hex()}{paths.TEMPORARY_SUFFIX}"
    place.write(now, b"")
    there = place.infos(name, now)
    place.remove([now])
    if len(there) < 2 or not there[name].changed or not there[now].changed:
        return None
    return there[now].changed - there[name].changed


def _named(owner: dict[str, object]) -> str:
    return f"process {owner['pid']} on {owner.get('host')}"


def _text(content: bytes | None) -> str:
    return (content or b"").decode(errors="replace")
