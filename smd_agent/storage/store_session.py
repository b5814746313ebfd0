"""The session of one process with a store: the place of its run there, what was there before, and its claims on it.

All of it is done on the thread that uploads.
"""

from __future__ import annotations

import itertools
import json
import math
import os
import re
import time
from typing import TYPE_CHECKING, NamedTuple

from smd_agent.core.json_fields import object_in
from smd_agent.formats import paths
from smd_agent.formats.notes import lost_of
from smd_agent.formats.training_state import StorePlace
from smd_agent.storage.claim import alive_here, is_gone, is_own, owner_in, owner_text
from smd_agent.storage.stores import Store

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Iterator

# A claim that a restart may ask for is written anew so often; by the store's clock, one that was not for so long counts
# as left behind.
FRESH_SECONDS = 20.0
LEFT_BEHIND_SECONDS = 60.0
FINISHED = "finished run"

_MARK, _RUN = "mark", "run"

# Step and worker.
_Part = tuple[int, str]


class StoreClaim(NamedTuple):
    """A claim of this process.

    place: in the store.
    name: of the claim file there.
    content: of that file.
    """

    place: Store
    name: str
    content: bytes

    def renew(self) -> str | None:
        """Write the claim anew; None when that has worked, else who has taken the place over.

        Raises:
            StoreFailure: the store cannot be read or written.
        """
        found = self.place.read({self.name: None}).get(self.name, self.content)
        if found != self.content:
            owner = owner_in(found)
            return f"{'another process' if owner is None else owner_text(owner)} has taken {self.place.address} over"
        self.place.write(self.name, self.content)
        return None

    def release(self, keeps_mark: bool) -> None:
        """Give the place up.

        Args:
            keeps_mark: the claim file stays and names nobody, so that a later start of the training finds its run.

        Raises:
            StoreFailure: the store cannot be written.
        """
        if keeps_mark:
            self.place.write(self.name, json.dumps({_RUN: mark_in(self.content)}).encode())
        else:
            self.place.remove([self.name])


def held_at(place: Store) -> str:
    """The kind of run at a place: ``FINISHED``, "run" if it has a step or a worker that writes, empty if there is none.

    Raises:
        StoreFailure: the store cannot be read.
    """
    there = place.infos(paths.END_MARKER, paths.claim_path())
    if paths.END_MARKER in there:
        return FINISHED
    return "run" if there or place.find(paths.INDEX_FOLDER, paths.COLLECTIONS_FOLDER) else ""


def take_alone(asked_for: Store, content: bytes) -> tuple[StoreClaim, str | None]:
    """Claim a place for a run of one worker; why it is not the one that was asked for, None if it is.

    Raises:
        StoreFailure: the store cannot be read or written.
    """
    reason = None
    for number in itertools.count(1):
        place = asked_for.at(f"{_beside(asked_for.address)}{number}" if number > 1 else "")
        held = held_at(place)
        if not held and place.create(paths.claim_path(), content):
            return StoreClaim(place, paths.claim_path(), content), reason
        reason = reason or f"{place.address} holds a {held or 'run'}"
    raise AssertionError("there are more numbers")


def take_as_worker(place: Store, worker: str, content: bytes) -> StoreClaim | str:
    """Claim a place for one of several workers, or say why that is not possible.

    Raises:
        StoreFailure: the store cannot be read or written.
    """
    if paths.END_MARKER in place.infos(paths.END_MARKER):
        return "it holds a finished run"
    name = paths.claim_path(worker)
    owner = owner_in(place.read({name: None}).get(name, b""))
    if owner is not None and alive_here(owner):
        return f"{owner_text(owner)} is writing to it"
    place.write(name, content)
    return StoreClaim(place, name, content)


def take_up(asked_for: Store, earlier: StorePlace, worker: str | None, own: bytes) -> StoreClaim | str:
    """Claim the place of the run that this one goes on with, or say why that is not possible.

    Args:
        asked_for: the place that was asked for.
        earlier: the place as an earlier start of the training has left it.
        worker: the name of one of several; None where no other one is known.
        own: what the claim file in the run's folder says.

    Raises:
        StoreFailure: the store cannot be read or written.
    """
    place = asked_for.at(earlier.address.removeprefix(asked_for.address))
    name = paths.claim_path(worker)
    claims = place.read(dict.fromkeys((earlier.claim, name)))
    if mark_in(claims.get(earlier.claim, b"")) != earlier.mark:
        return f"{place.address} holds another run than this training's"
    before = name if name in claims else earlier.claim
    # A worker that is new, beside others that were there, is in nobody's way.
    if worker is None or before in (name, paths.claim_path()):
        owner = owner_in(claims[before])
        if owner is not None and not is_own(owner) and not is_gone(owner):
            if alive_here(owner):
                return f"{owner_text(owner)} is writing to {place.address}"
            # Several come to their place whatever stands in their claims, as they do where no run is gone on with.
            if worker is None and not _is_left_behind(place, before):
                return f"{owner_text(owner)} may be writing to {place.address}"
    content = marked(own, earlier.mark)
    place.write(name, content)
    return StoreClaim(place, name, content)


def marked(own: bytes, mark: str) -> bytes:
    """The content of a claim file: of the one in the run's folder, and the mark of the run where that is older."""
    fields = owner_in(own)
    if fields is None or fields.get(_MARK) == mark:
        return own
    return json.dumps({**fields, _RUN: mark}).encode()


def mark_in(content: bytes) -> str:
    """The mark of the run that a claim file is of; empty if it has none."""
    fields = object_in(content) or {}
    return str(fields.get(_RUN) or fields.get(_MARK) or "")


def is_place_of(earlier: StorePlace, asked_for: str) -> bool:
    """True if a run in this place may have been asked to go to this address."""
    beside = rf"({re.escape(_beside(asked_for))}\d+)?"
    known = earlier.claim == paths.claim_path() or paths.parse_worker_claim(earlier.claim) is not None
    return known and bool(earlier.mark) and re.fullmatch(re.escape(asked_for) + beside, earlier.address) is not None


def remove_steps(place: Store, worker: str | None, after: int = -1) -> tuple[set[_Part], set[_Part]]:
    """Remove the steps behind one, of one worker or, with None, of all, and what no index names.

    Where all steps are removed, so is the series.

    Returns:
        The steps that there were, and those that are left.

    Raises:
        StoreFailure: the store cannot be read or written.
    """
    found: dict[str, set[_Part]] = {}
    for folder in (paths.INDEX_FOLDER, paths.EVENTS_FOLDER):
        parts = (paths.parse_step_file(name.rpartition("/")[2]) for name in place.find(folder))
        found[folder] = {part for part in parts if part is not None and worker in (None, part[1])}
    if after < 0:
        place.remove(_series_of(place, worker))
    kept = {part for part in found[paths.INDEX_FOLDER] if part[0] <= after}
    indexes, events = (parts - kept for parts in found.values())
    # In this order: an index that can be seen names an event file that is there.
    place.remove(paths.index_path(*part) for part in sorted(indexes))
    place.remove(paths.event_path(*part) for part in sorted(events))
    return indexes, kept


def _series_of(place: Store, worker: str | None) -> Iterator[str]:
    for name in place.find(paths.SERIES_FOLDER):
        parsed = paths.parse_series_file(name.rpartition("/")[2])
        if parsed is not None and worker in (None, parsed[0]):
            yield name


def _beside(address: str) -> str:
    # What is beside a bucket is not ours.
    return "-" if "/" in address.partition("://")[2] else "/run-"


def _is_left_behind(place: Store, name: str) -> bool:
    """True if a claim file was not written anew for long, by the store's clock."""
    now = f"{name}.{os.urandom(6).hex()}{paths.TEMPORARY_SUFFIX}"
    place.write(now, b"")
    there = place.infos(name, now)
    place.remove([now])
    times = [there[one].changed for one in (name, now) if one in there]
    return len(times) == 2 and all(times) and times[1] - times[0] >= LEFT_BEHIND_SECONDS


# How soon a claim that could not be written anew is tried again.
_AGAIN_SECONDS = 2.0


class Earlier(NamedTuple):
    """The run that a training goes on with, and its last step, over all modes, that is not made anew."""

    place: StorePlace
    step: int


class Found(NamedTuple):
    """The steps that a run that goes on has found in its place.

    address: of the place.
    there: the steps that are there and stay, each with its worker.
    redone: the steps that were removed, in order.
    lost: the steps that are not made anew, and that an earlier start could not save.
    missing: those that it saved, and that never came there.
    """

    address: str
    there: frozenset[tuple[int, str]]
    redone: list[int]
    lost: list[int]
    missing: list[int]


class StoreSession:
    """All that one process has to do with a store, but for its uploads.

    Args:
        asked_for: the address that was asked for.

    Attributes:
        store: the place that it has got; None before.
        address: of that; before, the one that was asked for.
        relocated_because: why that is not the one that was asked for; None if it is.
        earlier: the run that this one goes on with; None if it begins one.
        found: what of it was there; None where this run does not go on with one.
        kept_fresh: whether a later start of the training may go on with this run.
        is_fresh: whether nobody else can take its place for one that was left behind.
        place: where the run is, for a later start of the training; None as long as it is nowhere.
        renewed_at: when the claims are to be written anew, by ``time.monotonic``; never, if infinite.
    """

    def __init__(self, asked_for: str) -> None:
        self.store: Store | None = None
        self.address = asked_for
        self.relocated_because: str | None = None
        self.earlier: Earlier | None = None
        self.found: Found | None = None
        self.kept_fresh = False
        self.is_fresh = True
        self.place: StorePlace | None = None
        self.renewed_at = math.inf
        self._asked_for: Store | None = None
        self._claims: list[StoreClaim] = []

    def open(self, loop: asyncio.AbstractEventLoop | None) -> bool:
        """Look whether the store is there and may be used; whether a run has ended at the address.

        Raises:
            StoreFailure: it may not.
        """
        self._asked_for = Store(self.address, loop)
        return held_at(self._asked_for) == FINISHED

    def enter(self, worker: str, alone: bool, removes_old: bool, own: bytes) -> str | None:
        """Get a place for a worker; None when that has worked, else the reason why not.

        Args:
            worker: its name.
            alone: no other worker is known, so that another place beside the address will do.
            removes_old: what an earlier run has left of this worker goes.
            own: what the claim file in the run's folder says.

        Raises:
            StoreFailure: the store cannot be read or written.
        """
        assert self._asked_for is not None
        content = marked(own, mark_in(own) if self.place is None else self.place.mark)
        went_on = self.found is not None
        asked_for = self.store if went_on and self.store is not None else self._asked_for
        claim: StoreClaim | str
        why_not = why = None
        if self.earlier is not None and not went_on:
            claim = take_up(asked_for, self.earlier.place, None if alone else worker, own)
            if isinstance(claim, StoreClaim):
                there = claim.place.address
                self.relocated_because = None if there == asked_for.address else f"the run that goes on is in {there}"
                self._go_on(claim, self.earlier, worker, alone)
                return None
            why_not = claim
        if alone:
            claim, why = take_alone(asked_for, content)
        else:
            claim = take_as_worker(asked_for, worker, content)
            if isinstance(claim, str):
                return claim
            if removes_old and not went_on:
                remove_steps(claim.place, worker)
        if not went_on:
            self.relocated_because = why and (why_not or why)
        self._stay(claim)
        return None

    def renew(self) -> str | None:
        """Write the claims anew; None when that has worked, else who has taken a place over.

        Raises:
            StoreFailure: the store cannot be read or written.
        """
        self.is_fresh = False
        self.renewed_at = time.monotonic() + _AGAIN_SECONDS
        for claim in self._claims:
            taken = claim.renew()
            if taken is not None:
                self.renewed_at = math.inf
                return taken
        self._note_fresh()
        return None

    def release(self) -> None:
        """Give the places up.

        Raises:
            StoreFailure: the store cannot be written.
        """
        self.renewed_at = math.inf
        for claim in self._claims:
            claim.release(keeps_mark=self.kept_fresh)
        self._claims.clear()

    def close(self) -> None:
        """Close the connections."""
        if self._asked_for is not None:
            self._asked_for.close()

    def _go_on(self, claim: StoreClaim, earlier: Earlier, worker: str, alone: bool) -> None:
        place, last = claim.place, earlier.step
        place.remove([paths.END_MARKER])
        redone, there = remove_steps(place, None if alone else worker, after=last)
        name = paths.lost_path(worker)
        lost = lost_of(worker, place.read({name: None}).get(name, b""))
        place.remove([name])
        # The process that has noted where the training stood knew of its own steps only.
        waiting = earlier.place.waiting if claim.name == earlier.place.claim else ()
        self.found = Found(
            place.address,
            there=frozenset(there),
            redone=sorted({step for step, _ in redone}),
            lost=[] if lost is None else [step for step in lost.steps if step <= last],
            missing=sorted({step for step in waiting if step <= last and (step, worker) not in there}),
        )
        self._stay(claim)

    def _stay(self, claim: StoreClaim) -> None:
        self._claims.append(claim)
        self.store, self.address = claim.place, claim.place.address
        mark = mark_in(claim.content)
        self.place = StorePlace(self.address, claim.name, mark) if mark else None
        self._note_fresh()

    def _note_fresh(self) -> None:
        self.is_fresh = True
        if self.kept_fresh:
            self.renewed_at = time.monotonic() + FRESH_SECONDS
