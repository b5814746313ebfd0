"""Plan of what is saved: caches, for each tensor name, which collections match and what is saved of it."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from smd_agent import guard
from smd_agent.core.clock import NEVER
from smd_agent.core.collection_keys import (
    TRAINING_ONLY_COLLECTIONS,
)
from smd_agent.core.display_collection import Display, settle
from smd_agent.core.early_steps import EarlySteps
from smd_agent.core.extra_steps import ExtraSteps
from smd_agent.core.modes import ModeKeys
from smd_agent.core.names import Ops, reduction_name
from smd_agent.core.patterns import UnfitPattern
from smd_agent.core.reduction_config import CHANNEL_SHARES, HISTOGRAM_OP
from smd_agent.printable import shortened

if TYPE_CHECKING:
    from smd_agent.core.collection import Collection

# Of a model of thousands of layers each has its own, in each step; where there are more, the last one makes room, so
# that most are known all the same.
_CACHED_GROUPS = 32_768
_CACHED_SIZES = 16


@dataclass(frozen=True)
class How:
    """The forms in which a tensor is saved: values, reductions, shares of its channels, its histogram, its shape.

    With ``raw_up_to`` elements at most, it is its values alone, and the shares.
    """

    raw: bool
    ops: Ops
    shares: Ops
    histogram: bool
    shape: bool
    raw_up_to: int


@dataclass(frozen=True)
class Reduced:
    """Tensors of a group that get the same reductions; ``tags`` are the stored names, tensor by tensor."""

    ops: Ops
    members: tuple[int, ...]
    tags: tuple[str, ...]

    def without(self, small: frozenset[int]) -> Reduced:
        """The same without the tensors at these positions."""
        kept = [n for n, i in enumerate(self.members) if i not in small]
        width = len(self.ops)
        return Reduced(
            self.ops,
            tuple(self.members[n] for n in kept),
            tuple(tag for n in kept for tag in self.tags[n * width : (n + 1) * width]),
        )


@dataclass(frozen=True)
class Group:
    """The plan of what is saved of several tensors that come together; members are positions in the group.

    Attributes:
        wanted: of which something is saved.
        raw: saved whole.
        shapes: of which the shape is saved.
        reduced: those with reductions of all elements.
        shares: those of which shares of the channels are saved, where they have channels, whatever their size: from the
            values they cannot be told later.
        histograms: of which the histogram is saved.
        pictured: those not saved whole of which the distribution is wanted.
        limits: up to how many elements a tensor is saved whole and in no other form, by its position.
    """

    wanted: tuple[int, ...]
    raw: tuple[int, ...]
    shapes: tuple[int, ...]
    reduced: tuple[Reduced, ...]
    shares: tuple[Reduced, ...] = ()
    histograms: tuple[int, ...] = ()
    pictured: tuple[int, ...] = ()
    limits: Mapping[int, int] = field(default_factory=dict)
    _with_small: dict[frozenset[int], Group] = field(default_factory=dict, repr=False, compare=False)

    @functools.cached_property
    def saved_otherwise(self) -> frozenset[int]:
        """Those of which more is saved than shares of the channels."""
        reduced = (i for one in self.reduced for i in one.members)
        return frozenset((*self.raw, *self.shapes, *self.histograms, *self.limits, *reduced))

    def for_sizes(self, sizes: Callable[[int], int]) -> Group:
        """The same once it is known which tensors are small; ``sizes`` tells the elements of one by its position."""
        if not self.limits:
            return self
        small = frozenset(i for i, limit in self.limits.items() if sizes(i) <= limit)
        if not small:
            return self
        found = self._with_small.get(small)
        if found is None:
            if len(self._with_small) >= _CACHED_SIZES:
                self._with_small.clear()
            found = self._with_small[small] = self._without_reductions_of(small)
        return found

    def tags(self, names: Sequence[str]) -> set[str]:
        """The stored names of all that may be saved, whatever the sizes; ``names`` are the tensors'."""
        tags = {names[i] for i in (*self.raw, *self.limits)}
        tags.update(*(reduced.tags for reduced in (*self.reduced, *self.shares)))
        tags.update(reduction_name(*HISTOGRAM_OP, names[i]) for i in self.histograms)
        return tags

    def _without_reductions_of(self, small: frozenset[int]) -> Group:
        reduced = (one.without(small) for one in self.reduced)
        return Group(
            wanted=self.wanted,
            raw=tuple(sorted({*self.raw, *small})),
            shapes=tuple(i for i in self.shapes if i not in small),
            reduced=tuple(one for one in reduced if one.members),
            shares=self.shares,
            histograms=tuple(i for i in self.histograms if i not in small),
            pictured=tuple(i for i in self.pictured if i not in small),
        )


class SavePlan:
    """The collections that are saved, prepared. A set of them is an int with one bit for each, in their order.

    Args:
        collections: those that are saved.
        before: the plan that this one replaces; what it knew of collections that came up stays known.
        display: gets the display collections of the tensors that are saved; says whether distributions are wanted too,
            of those whose display collections say so.
        early: the first steps, which are saved beside those that the collections say.
        extra: the steps that are asked for while the run goes on.
        further: collections that are saved in these alone.
    """

    def __init__(
        self,
        collections: Sequence[Collection],
        before: SavePlan | None = None,
        display: Display | None = None,
        early: EarlySteps | None = None,
        extra: ExtraSteps | None = None,
        further: Sequence[Collection] = (),
    ) -> None:
        self._collections = [*collections, *further]
        self._ruled = len(collections)
        self._extra = extra
        self._early = early
        self._display = Display() if display is None else display
        self._members: dict[str, int] = {}
        self._hows: dict[int, How] = {}
        self._groups: dict[tuple[tuple[str, ...], int], Group] = {}
        self._included: dict[frozenset[str], frozenset[str]] = {}
        self._named: set[str] = set()
        self._asked: int = 0 if before is None else self._bits_of(before.names_of(before._asked))
        self._found: int = 0 if before is None else self._bits_of(before.names_of(before._found))

    @property
    def names_seen(self) -> int:
        """Number of different tensors that have been saved."""
        return len(self._named)

    def due(self, mode: ModeKeys, mode_step: int) -> int:
        """The collections that are saved at a step of a mode."""
        bits = 0
        is_early = self._early is not None and self._early.takes(mode, mode_step)
        extra = () if self._extra is None else self._extra.due(mode, mode_step)
        for i, collection in enumerate(self._collections):
            if collection.name in extra:
                bits |= 1 << i
                continue
            config = collection.save_config
            if config is None or i >= self._ruled or not self._takes_part(collection, mode):
                continue
            rule = config.get_save_config(mode)
            if rule.should_save_step(mode_step) or (is_early and rule.is_in_range(mode_step)):
                bits |= 1 << i
        self._asked |= bits
        return bits

    def next_due(self, mode: ModeKeys, mode_step: int) -> int:
        """The first step of a mode, from ``mode_step`` on, at which a collection may be saved."""
        steps = [
            collection.save_config.get_save_config(mode).next_step(mode_step)
            for collection in self._collections[: self._ruled]
            if collection.save_config is not None and self._takes_part(collection, mode)
        ]
        early = NEVER if self._early is None else self._early.next_due(mode, mode_step)
        return min(early, *(step for step in steps if step is not None), NEVER)

    def steps_among(self, mode: ModeKeys, first: int) -> int:
        """Number of the first steps of a mode that are saved."""
        configs = (one.save_config for one in self._collections[: self._ruled] if self._takes_part(one, mode))
        return len(set().union(*(config.get_save_config(mode).steps_below(first) for config in configs if config)))

    def how(self, name: str, due: int) -> How | None:
        """The forms in which a tensor is saved when these collections are, or None."""
        bits = self._members_of(name) & due
        if not bits:
            return None
        if name not in self._named:
            self._enter(name)
        how = self._hows.get(bits)
        if how is None:
            how = self._hows[bits] = self._combine(bits)
        return how

    def includes(self, name: str, due: int) -> bool:
        """True if anything is saved of a tensor when these collections are."""
        return bool(self._members_of(name) & due)

    def included(self, names: frozenset[str]) -> frozenset[str]:
        """Those of the names that are in one of the collections."""
        found = self._included.get(names)
        if found is None:
            if len(self._included) >= _CACHED_GROUPS:
                self._included.popitem()
            found = self._included[names] = frozenset(filter(self._members_of, names))
        return found

    def names_of(self, due: int) -> set[str]:
        """Names of a set of collections."""
        return {collection.name for i, collection in enumerate(self._collections) if due >> i & 1}

    def saved_of(self, names: set[str]) -> int:
        """Those of several collections, by name, that are saved at some step."""
        return self._bits_of(names) & ~(-1 << self._ruled)

    def seen_of(self, names: Iterable[str]) -> int:
        """Number of different tensors of these collections that have been saved since the plan was made."""
        bits = self._bits_of({*names})
        return sum(1 for name in self._named if self._members_of(name) & bits)

    def shares_due(self, due: int) -> bool:
        """True if one of a set of collections wants shares of the channels of its tensors."""
        configs = [c.reduction_config for i, c in enumerate(self._collections) if due >> i & 1]
        return any(name in CHANNEL_SHARES for config in configs if config is not None for name in config.reductions)

    def never_found(self) -> list[str]:
        """Collections that were to be saved at some step, and no tensor of theirs ever came up."""
        missing = self._asked & ~self._found
        return [collection.name for i, collection in enumerate(self._collections) if missing >> i & 1]

    def group(self, names: tuple[str, ...], due: int) -> Group:
        """The plan of what is saved of tensors that come together."""
        key = (names, due)
        group = self._groups.get(key)
        if group is None:
            if len(self._groups) >= _CACHED_GROUPS:
                self._groups.popitem()
            group = self._groups[key] = self._make_group(names, due)
        return group

    def forget(self, name: str) -> None:
        """Look a tensor's collections up again: one of them has got its name."""
        self._members.pop(name, None)
        self._named.discard(name)
        self._groups.clear()
        self._included.clear()

    def _bits_of(self, names: set[str]) -> int:
        return sum(1 << i for i, collection in enumerate(self._collections) if collection.name in names)

    @staticmethod
    def _takes_part(collection: Collection, mode: ModeKeys) -> bool:
        return mode not in (ModeKeys.EVAL, ModeKeys.PREDICT) or collection.name not in TRAINING_ONLY_COLLECTIONS

    def _members_of(self, name: str) -> int:
        bits = self._members.get(name)
        if bits is None:
            bits = 0
            for i, collection in enumerate(self._collections):
                if _is_member(collection, name):
                    bits |= 1 << i
            self._members[name] = bits
        return bits

    def _enter(self, name: str) -> None:
        bits = self._members_of(name)
        members = [collection for i, collection in enumerate(self._collections) if bits >> i & 1]
        for collection in members:
            collection.add_tensor_name(name)
        settle(self._display.shown_in, name, ((collection.name, collection.save_histogram) for collection in members))
        self._found |= bits
        self._named.add(name)

    def _combine(self, bits: int) -> How:
        configs = [c.reduction_config for i, c in enumerate(self._collections) if bits >> i & 1]
        given = [config for config in configs if config is not None]
        raw = len(given) < len(configs) or any(config.save_raw_tensor for config in given)
        reducing = [config for config in given if config.ops or config.histogram]
        ops = tuple(dict.fromkeys(op for config in given for op in config.ops))
        return How(
            raw=raw,
            ops=tuple(op for op in ops if op[0] not in CHANNEL_SHARES),
            shares=tuple(op for op in ops if op[0] in CHANNEL_SHARES),
            histogram=any(config.histogram for config in given),
            shape=any(config.save_shape for config in given),
            # What one collection asks to be reduced whatever its size, is.
            raw_up_to=0 if raw else min((config.save_raw_up_to for config in reducing), default=0),
        )

    def _make_group(self, names: tuple[str, ...], due: int) -> Group:
        found = ((i, self.how(name, due)) for i, name in enumerate(names))
        hows = {i: how for i, how in found if how is not None}
        shown_in, pictures = self._display.shown_in, self._display.pictures
        return Group(
            wanted=tuple(hows),
            raw=tuple(i for i, how in hows.items() if how.raw),
            # The values have the shape; the old reader takes a noted shape for all there is and loses the values.
            shapes=tuple(i for i, how in hows.items() if how.shape and not how.raw),
            reduced=_by_ops(names, {i: how.ops for i, how in hows.items()}),
            shares=_by_ops(names, {i: how.shares for i, how in hows.items()}),
            histograms=tuple(i for i, how in hows.items() if how.histogram),
            pictured=tuple(i for i, how in hows.items() if pictures and not how.raw and shown_in[names[i]].histogram),
            limits={i: how.raw_up_to for i, how in hows.items() if how.raw_up_to},
        )


def _by_ops(names: tuple[str, ...], wanted: Mapping[int, Ops]) -> tuple[Reduced, ...]:
    by_ops: dict[Ops, list[int]] = {}
    for i, ops in wanted.items():
        if ops:
            by_ops.setdefault(ops, []).append(i)
    return tuple(
        Reduced(ops, tuple(members), tuple(reduction_name(*op, names[i]) for i in members for op in ops))
        for ops, members in by_ops.items()
    )


def _is_member(collection: Collection, name: str) -> bool:
    try:
        return collection.matches(name)
    except UnfitPattern as error:
        guard.say_once(("long name", error.regex), f"{shortened(name)} is not in {collection.name}: {error}")
        return False
