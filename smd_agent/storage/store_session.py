"""The session of one process with a store: the place of its run there, what was there before, and its claims on it.

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
from smd_agent.storage.store_claim import StoreClaim, mark_in, marked, remove_steps
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
        return store_claim.held_at(self._asked_for) == store_claim.FINISHED

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
            claim = store_claim.take_up(asked_for, self.earlier.place, None if alone else worker, own)
            if isinstance(claim, StoreClaim):
                there = claim.place.address
                self.relocated_because = None if there == asked_for.address else f"the run that goes on is in {there}"
                self._go_on(claim, self.earlier, worker, alone)
                return None
            why_not = claim
        if alone:
            claim, why = store_claim.take_alone(asked_for, content)
        else:
            claim = store_claim.take_as_worker(asked_for, worker, content)
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
        lost = parse_lost_steps(worker, place.read({name: None}).get(name, b""))
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
            self.renewed_at = time.monotonic() + store_claim.FRESH_SECONDS
