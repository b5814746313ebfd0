"""The stay of a run in a store: which place its workers have got, what was there before, and that it is still theirs.

All of it is done on the thread that uploads.
"""

from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING, NamedTuple

from smd_agent.formats import paths
from smd_agent.formats.training_state import StorePlace
from smd_agent.storage import store_claim
from smd_agent.storage.lost_steps import parse_lost_steps
from smd_agent.storage.store_claim import StoreClaim, Taken, mark_in, marked, remove_steps
from smd_agent.storage.stores import Store

if TYPE_CHECKING:
    import asyncio

# How soon a claim that could not be written anew is tried again.
_AGAIN_SECONDS = 2.0


class Earlier(NamedTuple):
    """The run that a training goes on with, and its last step, over all modes, that is not made anew."""

    place: StorePlace
    step: int


class Found(NamedTuple):
    """What a run that goes on has found in its place.

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


class StoreStay:
    """What one process has of a store.

    Args:
        named: the address that was asked for.

    Attributes:
        store: the place that it has got; None before.
        address: of that; before, the named one.
        reason: why that is not the named one; None if it is.
        has_finished: whether a run has ended at the named address.
        earlier: the run that this one goes on with; None if it begins one.
        found: what of it was there; None where this run does not go on with one.
        kept_fresh: whether a later start of the training may go on with this run.
        is_fresh: whether nobody else can take its place for one that was left behind.
        taken: whether somebody has taken its place all the same.
        place: where the run is, for a later start of the training; None as long as it is nowhere.
        renewed_at: when the claims are to be written anew, by ``time.monotonic``; never, if infinite.
    """

    def __init__(self, named: str) -> None:
        self.store: Store | None = None
        self.address = named
        self.reason: str | None = None
        self.has_finished = False
        self.earlier: Earlier | None = None
        self.found: Found | None = None
        self.kept_fresh = False
        self.is_fresh = True
        self.taken = False
        self.place: StorePlace | None = None
        self.renewed_at = math.inf
        self._at: Store | None = None
        self._named = named
        self._claims: list[StoreClaim] = []

    def look(self, loop: asyncio.AbstractEventLoop | None) -> None:
        """Look whether the store is there and may be used.

        Raises:
            StoreFailure: it may not.
        """
        self._at = Store(self._named, loop)
        self.has_finished = Taken.at(self._at).finished

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
        assert self._at is not None
        known = mark_in(own) if self.place is None else self.place.mark
        went_on = self.found is not None
        claim = StoreClaim(self.store if went_on and self.store else self._at, worker, marked(own, known))
        why_not = None
        if self.earlier is not None and not went_on:
            why_not = claim.take_up(self.earlier.place, alone)
            if why_not is None:
                self._go_on(claim, self.earlier, worker, alone)
                return None
        reason = claim.take_alone() if alone else claim.take_as_worker(removes_old and not went_on)
        if reason is not None and not alone:
            return reason
        if not went_on:
            self.reason = reason and (why_not or reason)
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
                self.taken, self.renewed_at = True, math.inf
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
        if self._at is not None:
            self._at.close()

    def _go_on(self, claim: StoreClaim, earlier: Earlier, worker: str, alone: bool) -> None:
        place, step = claim.store, earlier.step
        place.remove([paths.END_MARKER])
        redone, there = remove_steps(place, None if alone else worker, after=step)
        name = paths.lost_path(worker)
        lost = parse_lost_steps(worker, place.read({name: None}).get(name, b"").decode(errors="replace"))
        place.remove([name])
        # The process that has noted where the training stood knew of its own steps only.
        waiting = earlier.place.waiting if claim.name == earlier.place.claim else ()
        missing = {one for one in waiting if one <= step and (one, worker) not in there}
        known = [] if lost is None else [one for one in lost.steps if one <= step]
        self.found = Found(place.address, frozenset(there), sorted({one for one, _ in redone}), known, sorted(missing))
        self.reason = None if place.address == self._named else f"the run that goes on is in {place.address}"
        self._stay(claim)

    def _stay(self, claim: StoreClaim) -> None:
        self._claims.append(claim)
        self.store, self.address = claim.store, claim.store.address
        self.place = StorePlace(self.address, claim.name, claim.mark) if claim.mark else None
        self._note_fresh()

    def _note_fresh(self) -> None:
        self.is_fresh = True
        if self.kept_fresh:
            self.renewed_at = time.monotonic() + store_claim.FRESH_SECONDS
