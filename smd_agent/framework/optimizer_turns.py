"""Rounds of updates: which optimizers take turns in one training step, and when all of them have had theirs.

A step of a training that has several optimizers ends once each of them has updated its parameters: the discriminator
and the generator of a GAN, five critics and one generator, a critic and an actor. An optimizer that stays away for
longer than any turn of the others has taken so far, and at most for ``LONGEST_TURN`` of their updates, takes part no
more until it updates again.
"""

from __future__ import annotations

import sys
import weakref
from collections.abc import Callable
from threading import get_ident
from typing import Any

from smd_agent.framework.weak_references import Reference
from smd_agent.guard import say_once

LONGEST_TURN = 16

# So many rounds begin with another optimizer than the one before, and one of so many does, until turns are uneven.
_UNEVEN = 4


class _Member:
    """An optimizer that may take turns with others."""

    __slots__ = ("has_updated", "is_new", "last", "optimizer", "thread")

    def __init__(self, optimizer: weakref.ref[Any], last: int) -> None:
        self.optimizer = optimizer
        # Trainings in several threads do not wait for each other.
        self.thread = get_ident()
        # The count of all updates at its own last one, or at that of another when it was seen first.
        self.last = last
        self.has_updated = False
        # Whether it has updated in a first round that went on: how long it stays away is yet to be seen.
        self.is_new = False


class _Turns:
    """The optimizers that rounds begin with: in an iteration as its author counts it always the same one, or few."""

    def __init__(self) -> None:
        self._first = 0
        self._rounds = 0
        self._changes = 0
        # Whether the next round is the rest of the last one.
        self.go_on = False

    def begin(self, key: int, threads: set[int]) -> None:
        """A round begins with this optimizer; ``threads`` are those of all that take part."""
        if len(threads) > 1 or self.go_on:
            self.go_on = False
            return
        self._rounds += 1
        self._changes += self._first not in (0, key)
        self._first = key
        if self._changes >= _UNEVEN and self._changes * _UNEVEN >= self._rounds:
            say_once(
                "uneven turns",
                "optimizers take uneven turns: a step may hold updates of two iterations or a part of one, so that its "
                "number is not the program's; all losses are saved",
            )


class UpdateRounds:
    """Counts the updates of a training's optimizers.

    Args:
        takes_part: whether an optimizer that has not updated yet is one of the training: some of its parameters belong
            to a model that is called, and none of them to the other optimizer, which updates now.

    Attributes:
        only: id of the optimizer whose every update ends a step, because there is no other one; 0 if there are more.
        updates: how many updates there have been.
    """

    def __init__(self, takes_part: Callable[[Any, Any], bool]) -> None:
        self._takes_part = takes_part
        self._members: dict[int, _Member] = {}
        # Known, but yet to show that they are of the training.
        self._candidates: dict[int, _Member] = {}
        self._awaited: dict[int, _Member] = {}
        self._longest = 0
        # Whose first update the last one was.
        self._newcomer: _Member | None = None
        self._turns = _Turns()
        self.only = 0
        self.updates = 0

    @property
    def has_optimizer(self) -> bool:
        """True if there is an optimizer of the program's."""
        self._forget_dead()
        return bool(self._members or self._candidates)

    def add(self, optimizer: Any) -> None:
        """Take note of an optimizer that has been made."""
        key = id(optimizer)
        self._forget_dead()
        if key not in self._members and key not in self._candidates:
            self._candidates[key] = _Member(Reference(optimizer), self.updates)
        self.only = 0

    def keep(self, is_in_use: Callable[[Any], bool]) -> None:
        """Forget the optimizers of trainings that are over, which may not have been freed yet."""
        for key, member in [*self._members.items()]:
            optimizer = member.optimizer()
            if optimizer is None or not is_in_use(optimizer):
                self._members.pop(key, None)
                self._awaited.pop(key, None)
                self.only = 0
        self._forget_dead()

    def updated(self, optimizer: Any) -> bool:
        """An optimizer has updated its parameters; whether every one that takes turns has done so in this round."""
        self.updates += 1
        key = id(optimizer)
        if key == self.only:
            return True
        begins = not self._awaited
        if begins:
            self._turns.begin(key, {member.thread for member in [*self._members.values()]})
        if begins:
            self._forget_dead()
            self._awaited = dict(self._members)
        member = self._members.get(key)
        returns = False
        if member is None:
            self._candidates.pop(key, None)
            self.only = 0
            member = self._members[key] = _Member(Reference(optimizer), self.updates)
        else:
            is_known = self._longest > 0 and not member.is_new
            returns = begins and is_known and not self._awaits(member, self.updates - 1)
            if not returns:
                self._longest = max(self._longest, min(self.updates - 1 - member.last, LONGEST_TURN))
        self._newcomer = None if member.has_updated else member
        member.has_updated, member.last, member.thread, member.is_new = True, self.updates, get_ident(), False
        if returns:
            # The others have had their turn of this iteration, which nobody has waited for.
            self._awaited.clear()
            return True
        self._look_at_candidates(optimizer)
        self._awaited.pop(key, None)
        # Another thread's update may take one out meanwhile.
        for other, awaited in [*self._awaited.items()]:
            if self._awaits(awaited, self.updates):
                return False
            self._awaited.pop(other, None)
        if len(self._members) == 1 and not self._candidates:
            self.only = key
        return True

    def go_on(self, is_its: Callable[[Any], bool]) -> bool:
        """A model is called for the first time: whether the round that has just ended goes on with it.

        It does if the last update was the first one of its optimizer, and the model has one that was made before that.

        Args:
            is_its: whether an optimizer is one of the model.
        """
        if self._newcomer is None or self._newcomer.thread != get_ident():
            return False
        goes_on = self.may_come(is_its, self.updates)
        self._newcomer.is_new = self._newcomer.is_new or goes_on
        self._turns.go_on = self._turns.go_on or goes_on
        return goes_on

    def may_come(self, is_its: Callable[[Any], bool], before: int = sys.maxsize) -> bool:
        """True if an optimizer of which this is true was made before so many updates, and has not updated yet."""
        known = [(one.last, one.optimizer()) for one in [*self._candidates.values()]]
        return any(made < before and one is not None and is_its(one) for made, one in known)

    def has_updated(self, is_its: Callable[[Any], bool]) -> bool:
        """True if an optimizer of which this is true has updated its parameters."""
        known = [one.optimizer() for one in [*self._members.values()]]
        return any(one is not None and is_its(one) for one in known)

    def _awaits(self, member: _Member, updates: int) -> bool:
        """True if a round in which there have been so many updates in all goes on until this one has updated."""
        if member.optimizer() is None or member.thread != get_ident():
            return False
        away = updates - member.last
        return away < LONGEST_TURN if not member.has_updated else away <= self._longest

    def _look_at_candidates(self, optimizer: Any) -> None:
        for key, candidate in [*self._candidates.items()]:
            other = candidate.optimizer()
            if other is not None and self._takes_part(other, optimizer):
                candidate.last = self.updates - 1
                self._members[key] = self._awaited[key] = candidate
            elif self.updates - candidate.last < LONGEST_TURN:
                continue
            # Another thread's update may have taken it out meanwhile.
            self._candidates.pop(key, None)

    def _forget_dead(self) -> None:
        for members in (self._members, self._candidates, self._awaited):
            for key in [key for key, member in [*members.items()] if member.optimizer() is None]:
                members.pop(key, None)
        if not self._members:
            # Another training has turns of its own.
            self._longest = 0
            self._turns = _Turns()
