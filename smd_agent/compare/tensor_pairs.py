"""Pairs of tensors of two steps that are compared, and how they are read; worked out once for steps that are alike."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from smd_agent.compare.common_values import Side, common
from smd_agent.compare.distance import Distance, values_apart
from smd_agent.compare.rounding_bounds import UNITS
from smd_agent.compare.tensor_order import Kind, in_order, kinds_of
from smd_agent.core.collection import Collection
from smd_agent.core.collection_keys import CollectionKeys
from smd_agent.core.reduction_config import HISTOGRAM_OP, OPS
from smd_agent.errors import SMDebugError
from smd_agent.formats.event_decoder import Form

_LINES = "line/"
_ARITHMETIC = (Kind.INPUT, Kind.WEIGHT, Kind.OUTPUT, Kind.GRADIENT)


@dataclass(frozen=True)
class TensorPair:
    """A tensor of the first run and the same one of the second, which may have another name there.

    Attributes:
        here: its name in the first run.
        there: its name in the second one.
        kind: what it is.
        place: where it comes in the order of the step.
        dtypes: its types in both; empty where one of them is not known.
        shape: in the first run; None where it is not known.
    """

    here: str
    there: str
    kind: Kind
    place: int
    dtypes: tuple[str, ...] = ()
    shape: tuple[int, ...] | None = None


@dataclass(frozen=True)
class _Column:
    """Numbers that are read at once: of which pair each is, and where it is stored in either run."""

    owners: npt.NDArray[np.int64]
    here: tuple[str, ...]
    there: tuple[str, ...]

    @classmethod
    def of(cls, entries: Sequence[tuple[int, str, str]]) -> _Column:
        owners, here, there = zip(*entries, strict=True) if entries else ((), (), ())
        return cls(np.array(owners, np.int64), here, there)


class Layout:
    """The way in which tensors of two steps are compared.

    Attributes:
        pairs: those that both have in a form that can be compared, in the order of the step.
        only_here: names of tensors of the first run that have no counterpart.
        only_there: those of the second one.
        not_alike: names of tensors that are saved in forms that have nothing in common.

    Args:
        here: a step of the first run.
        there: the same step of the second one.
        collections: of the first run.
        other_collections: of the second one.
    """

    def __init__(
        self,
        here: Side,
        there: Side,
        collections: Mapping[str, Collection],
        other_collections: Mapping[str, Collection],
    ) -> None:
        stored, other_stored = _stored_names(here), _stored_names(there)
        kinds, other_kinds = kinds_of(stored, collections), kinds_of(other_stored, other_collections)
        forms, other_forms = _forms(here, stored), _forms(there, other_stored)
        alone = (
            [name for name in stored if name not in other_kinds],
            [name for name in other_stored if name not in kinds],
        )
        renamed = dict(_renamed(alone, (kinds, other_kinds), (forms, other_forms)))
        self.only_here = [name for name in alone[0] if name not in renamed]
        self.only_there = sorted({*alone[1]} - {*renamed.values()}, key=alone[1].index)
        self.not_alike: list[str] = []
        self.pairs: list[TensorPair] = []
        self._singles: list[tuple[int, str, str]] = []
        self._statistics: list[tuple[int, str, str]] = []
        self._others: list[int] = []
        for place, name in enumerate(in_order(stored, kinds)):
            other = renamed.get(name, name if name in other_kinds else None)
            if other is not None:
                form, other_form = forms[name], other_forms[other]
                dtypes = (form.dtype, other_form.dtype) if form and other_form else ()
                pair = TensorPair(
                    name, other, kinds[name], place, dtypes if "-" not in dtypes else (), form.shape if form else None
                )
                self._add(pair, here, there)
        self._drop_what_says_nothing(collections, bool(renamed))
        self._columns = _Column.of(self._singles), _Column.of(self._statistics)

    def _add(self, pair: TensorPair, here: Side, there: Side) -> None:
        number = len(self.pairs)
        stored, other = here.stored(pair.here), there.stored(pair.there)
        if here.is_whole(pair.here) and there.is_whole(pair.there):
            is_single = {*pair.dtypes} <= UNITS.keys() and pair.dtypes and pair.shape is not None
            if is_single and pair.shape is not None and all(size == 1 for size in pair.shape):
                self._singles.append((number, pair.here, pair.there))
            else:
                self._others.append(number)
        elif here.is_whole(pair.here) or there.is_whole(pair.there):
            if not here.can_know(pair.here) & there.can_know(pair.there):
                self.not_alike.append(pair.here)
                return
            self._others.append(number)
        else:
            both = [op for op in stored if op in other]
            if not both:
                # Of some nothing but the shape is saved.
                if stored or other:
                    self.not_alike.append(pair.here)
                return
            self._statistics += [(number, stored[op], other[op]) for op in both if op[0] in OPS]
            if HISTOGRAM_OP in both:
                self._others.append(number)
        self.pairs.append(pair)

    def _drop_what_says_nothing(self, collections: Mapping[str, Collection], renamed: bool) -> None:
        """Leave out digests of inputs of another type, and texts that have other names in them: they always differ."""
        own = (Kind.INPUT, Kind.WEIGHT)
        other_type = any(pair.kind in own and len({*pair.dtypes}) > 1 for pair in self.pairs)
        reasons = {CollectionKeys.INPUT_DIGESTS: other_type, CollectionKeys.PARAMETERS: renamed}
        known = [collections[name] for name, holds in reasons.items() if holds and name in collections]
        left_out = {number for number, pair in enumerate(self.pairs) if any(one.matches(pair.here) for one in known)}
        self._others = [number for number in self._others if number not in left_out]

    def dtypes(self) -> tuple[set[str], set[str]]:
        """Return the types in which the first and the second run compute, as far as they are known."""
        known = [pair.dtypes for pair in self.pairs if pair.kind in _ARITHMETIC and pair.dtypes]
        return {one[0] for one in known}, {one[1] for one in known}

    def apart(self, here: Side, there: Side, problems: dict[str, None]) -> Iterator[tuple[TensorPair, Distance]]:
        """Compare two steps, and yield the tensors that are not the same; what cannot be read is a problem."""
        singles, statistics = self._columns
        look = set(self._others)
        for column, is_value in ((singles, True), (statistics, False)):
            mine, mine_known = here.trial.column(here.file, column.here)
            its, its_known = there.trial.column(there.file, column.there)
            same = (mine == its) | ((mine != mine) & (its != its))
            known = mine_known & its_known
            for at in np.flatnonzero(~same | ~known).tolist():
                number = int(column.owners[at])
                if is_value and known[at]:
                    found = values_apart(np.array(mine[at]), np.array(its[at]))
                    if found is not None:
                        yield self.pairs[number], found
                else:
                    look.add(number)
        for number in sorted(look):
            pair = self.pairs[number]
            try:
                both = common(here, pair.here, there, pair.there)
            except SMDebugError as error:
                problems[str(error)] = None
                continue
            if both is not None and both.apart is not None:
                yield pair, both.apart


def _stored_names(side: Side) -> list[str]:
    """Return the names of a step's tensors in the order in which they were saved, without what follows of others."""
    contents = side.trial.contents(side.file)
    of_place = {place: name for name, ops in contents.reductions.items() for place in ops.values()}
    stored = (of_place.get(place, place) for place in side.file.index.payload.tensors.names)
    usage = side.trial.collections().get(CollectionKeys.USAGE)
    names = dict.fromkeys([*stored, *sorted(contents.names)])
    # Lines of two programs, or of one that was moved, differ without a meaning.
    return [name for name in names if not name.startswith(_LINES) and (usage is None or not usage.matches(name))]


def _forms(side: Side, names: Sequence[str]) -> dict[str, Form | None]:
    return {name: side.trial.form(side.file, name) for name in names}


def _renamed(
    alone: tuple[Sequence[str], Sequence[str]],
    kinds: tuple[Mapping[str, Kind], Mapping[str, Kind]],
    forms: tuple[Mapping[str, Form | None], Mapping[str, Form | None]],
) -> Iterator[tuple[str, str]]:
    """Take tensors of one run only for the same, in order: those of a kind and a shape of which both have as many."""
    groups: tuple[dict[object, list[str]], dict[object, list[str]]] = ({}, {})
    for group, names, of_kind, own in zip(groups, alone, kinds, forms, strict=True):
        for name in names:
            form = own[name]
            # Other settings are another optimizer, and no other name of the same.
            if form is not None and of_kind[name] is not Kind.SETTING:
                group.setdefault((of_kind[name], form.shape), []).append(name)
    for key, names in groups[0].items():
        others = groups[1].get(key, [])
        if len(names) == len(others):
            yield from zip(names, others, strict=True)
