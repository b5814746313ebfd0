"""Two runs compared step by step, up to where they part."""

from __future__ import annotations

import enum
import math
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field

from smd_agent.analysis.steps import Contents
from smd_agent.analysis.trial import Trial
from smd_agent.compare.common_values import Side, StepPair, same_workers, step_pairs, steps_of
from smd_agent.compare.distance import Distance
from smd_agent.compare.rounding_bounds import PROFILES, UNITS, Noise, coarsest
from smd_agent.compare.tensor_order import UPDATE_RATIO, Kind, layer_of
from smd_agent.compare.tensor_pairs import Layout, TensorPair

# Of which shapes tell too little: what a small net has.
_FEWEST_ADDED, _FEWEST_LAYERS = 256, 4
# Noise has been seen to grow 43 times from one saved step to the next.
_JUMP = 100.0
# What comes after the runs have parted is looked at here and there.
_STEPS_AFTER = 20
# Runs whose shapes are others in every step have one for each.
_LAYOUTS_KEPT = 300
_OF_TRAINING = (Kind.WEIGHT, Kind.TREE, Kind.OUTPUT, Kind.LOSS, Kind.GRADIENT)
_SET_FROM_OUTSIDE = (Kind.CONFIGURATION, Kind.INPUT, Kind.SETTING)


class Outcome(enum.Enum):
    """The result of a comparison.

    IDENTICAL: all that both have is the same.
    NOISE: they differ, and never by more than rounding does.
    GROWN: they differ by rounding at first, and by more later, without a step at which anything else has happened.
    PARTED: there is a step at which something is not the same.
    """

    IDENTICAL = "identical"
    NOISE = "float noise"
    GROWN = "grown noise"
    PARTED = "parted"


@dataclass(frozen=True)
class Difference:
    """A tensor of one worker that is not the same at a step; ``bound`` is how far float noise reaches there."""

    tensor: TensorPair
    apart: Distance
    bound: float
    worker: str

    @property
    def beyond(self) -> float:
        """The distance in bounds of float noise."""
        return self.apart.relative / self.bound


@dataclass(frozen=True)
class StepDifferences:
    """The tensors that differ at a step, in the order in which they come to be."""

    step: StepPair
    found: tuple[Difference, ...]

    @property
    def furthest(self) -> float:
        """The largest of ``beyond``."""
        return max(one.beyond for one in self.found)


@dataclass
class Comparison:
    """A comparison of two runs.

    Attributes:
        here: folder of the first run.
        there: folder of the second one.
        outcome: what they are to each other.
        steps: number of compared steps.
        only_here: names of tensors that no compared step of the second run has, nor one that passes for them.
        only_there: the same of the first run.
        renamed: names of the second run, by those of the first, where they are not the same.
        not_alike: tensors that are saved in forms that cannot be compared.
        steps_only_here: number of steps that the second run has not.
        steps_only_there: number of steps that the first run has not.
        workers_only_here: workers that the second run has not.
        workers_only_there: workers that the first run has not.
        tensors: number of compared tensors.
        workers: that were compared.
        first: the first step at which anything differs.
        parted: where they part: the differences of that step, the first cause in front; None unless PARTED.
        left_noise: the first step at which anything is beyond float noise.
        last_same: the last step before the first difference; None if that is in the first step.
        course: how far weights, outputs, losses and gradients are apart at each step from the first difference on,
            relative, at most; steps after the runs have parted here and there.
        dtypes: the coarsest type that either run computes in, as far as that is known.
        noise: the bounds.
        problems: what could not be read.
    """

    here: str
    there: str
    outcome: Outcome = Outcome.IDENTICAL
    steps: int = 0
    only_here: list[str] = field(default_factory=list)
    only_there: list[str] = field(default_factory=list)
    renamed: dict[str, str] = field(default_factory=dict)
    not_alike: list[str] = field(default_factory=list)
    steps_only_here: int = 0
    steps_only_there: int = 0
    workers_only_here: list[str] = field(default_factory=list)
    workers_only_there: list[str] = field(default_factory=list)
    tensors: int = 0
    workers: list[str] = field(default_factory=list)
    first: StepDifferences | None = None
    parted: StepDifferences | None = None
    left_noise: StepDifferences | None = None
    last_same: StepPair | None = None
    course: list[tuple[StepPair, float]] = field(default_factory=list)
    dtypes: tuple[str | None, str | None] = (None, None)
    noise: Noise = field(default_factory=lambda: Noise(UNITS["float32"]))
    problems: dict[str, None] = field(default_factory=dict)


def compare(
    here: Trial, there: Trial, precision: str = "auto", tell: Callable[[int, int], None] | None = None
) -> Comparison:
    """Compare two runs by the steps and tensors that both have.

    Args:
        here: the first run.
        there: the second one.
        precision: whose float noise counts: one of `PROFILES`.
        tell: is told how many steps have been compared, and how many there are.
    """
    return _Comparing(here, there, PROFILES[precision]).run(tell or (lambda done, total: None))


class _Reach:
    """The reach of float noise for tensors of one step.

    Args:
        noise: the bounds.
        updates: steps of training before it.
        found: the tensors that differ.
    """

    def __init__(self, noise: Noise, updates: int, found: Collection[tuple[TensorPair, Distance]]) -> None:
        self._noise, self._updates = noise, updates
        self._ratios = {tensor.here: apart for tensor, apart in found if tensor.here.startswith(UPDATE_RATIO)}
        self._scales: dict[str, float] = {}
        for tensor, apart in found:
            if tensor.kind is Kind.GRADIENT:
                layer = layer_of(tensor.here)
                self._scales[layer] = max(self._scales.get(layer, 0.0), apart.scale)

    def bound(self, tensor: TensorPair, apart: Distance) -> float:
        """Return how far apart rounding can have brought the values of a tensor."""
        if tensor.kind is Kind.GRADIENT:
            # A gradient that is 0 but for rounding, as of a bias before a batch norm, has the noise of its layer.
            beside = self._scales[layer_of(tensor.here)] / apart.scale if apart.scale else 1.0
            return self._noise.gradient_bound(self._updates) * beside
        if tensor.kind is Kind.UPDATE:
            # It is the difference of two weights, and so has their noise, too.
            ratio = self._ratios.get(UPDATE_RATIO + tensor.here.partition("/")[2])
            sizes = [size for size in (ratio.here, ratio.there) if isinstance(size, float)] if ratio else []
            of_weights = self._noise.bound(0) / max(sizes) if max(sizes, default=0.0) > 0 else 0.0
            return self._noise.gradient_bound(self._updates) + of_weights
        return self._noise.bound(self._updates)


class _Comparing:
    """A comparison that is going on."""

    def __init__(self, here: Trial, there: Trial, unit: float) -> None:
        self._here, self._there, self._unit = here, there, unit
        self._layouts: dict[tuple[Contents, Contents], Layout] = {}
        self._seen = _Seen()
        self._found = Comparison(here.path, there.path)
        self._furthest = 0.0

    def run(self, tell: Callable[[int, int], None]) -> Comparison:
        found = self._found
        pairs = step_pairs(self._here, self._there)
        found.steps = len(pairs)
        self._note_what_is_alone(pairs)
        # Types and shapes first: they tell how far noise reaches.
        for pair in pairs:
            for sides in pair.sides.values():
                if len(self._layouts) < _LAYOUTS_KEPT:
                    self._layout(*sides)
        found.noise = self._seen.noise(self._unit)
        sampled = self._until_parted(pairs)
        for done, pair in enumerate(sampled):
            tell(done, len(pairs))
            self._take(pair)
        self._seen.note(found)
        if found.first is not None and found.left_noise is None:
            found.outcome = Outcome.NOISE
        return found

    def _until_parted(self, pairs: list[StepPair]) -> Iterator[StepPair]:
        for number, pair in enumerate(pairs):
            yield pair
            if self._found.left_noise is not None:
                rest = pairs[number + 1 :]
                stride = max(math.ceil(len(rest) / _STEPS_AFTER), 1)
                # Counted from the end, so that the last one is among them.
                yield from rest[::-1][::stride][::-1]
                return

    def _take(self, pair: StepPair) -> None:
        found = self._found
        differences = self._differences(pair)
        if differences is None:
            if found.first is None:
                found.last_same = pair
            else:
                found.course.append((pair, 0.0))
            return
        of_training = [one.apart.relative for one in differences.found if one.tensor.kind in _OF_TRAINING]
        sizes = [relative for relative in of_training if math.isfinite(relative)]
        found.course.append((pair, max(sizes or of_training, default=0.0)))
        if found.first is None:
            found.first = differences
        if found.left_noise is None and differences.furthest > 1:
            found.left_noise = differences
            self._judge(differences)
        self._furthest = max(self._furthest, differences.furthest)

    def _judge(self, left: StepDifferences) -> None:
        """Tell whether something has happened, or noise has grown; and where."""
        found = self._found
        beyond = StepDifferences(left.step, tuple(one for one in left.found if one.beyond > 1))
        if found.last_same is not None and found.first is not None:
            found.outcome, found.parted = Outcome.PARTED, found.first
            return
        from_outside = beyond.found[0].tensor.kind in _SET_FROM_OUTSIDE
        if left is found.first or from_outside or left.furthest > _JUMP * self._furthest:
            found.outcome, found.parted = Outcome.PARTED, beyond
        else:
            found.outcome, found.left_noise = Outcome.GROWN, beyond

    def _differences(self, pair: StepPair) -> StepDifferences | None:
        differences: list[Difference] = []
        for worker, sides in pair.sides.items():
            found = list(self._layout(*sides).apart(*sides, self._found.problems))
            reach = _Reach(self._found.noise, pair.updates, found)
            differences += [Difference(tensor, apart, reach.bound(tensor, apart), worker) for tensor, apart in found]
        if not differences:
            return None

        def order(one: Difference) -> tuple[float, int, str]:
            kind: float = one.tensor.kind
            if one.tensor.kind is Kind.SETTING and pair.after_gap and pair.step:
                # It may have been another one in steps that were not compared, and have changed the weights.
                kind = Kind.INPUT + 0.5
            return kind, one.tensor.place, one.worker

        return StepDifferences(pair, tuple(sorted(differences, key=order)))

    def _layout(self, here: Side, there: Side) -> Layout:
        key = self._here.contents(here.file), self._there.contents(there.file)
        if key not in self._layouts:
            if len(self._layouts) >= _LAYOUTS_KEPT:
                self._layouts.clear()
            self._layouts[key] = Layout(here, there, self._here.collections(), self._there.collections())
            self._seen.add(self._layouts[key])
        return self._layouts[key]

    def _note_what_is_alone(self, pairs: list[StepPair]) -> None:
        found = self._found
        both = {(pair.mode, pair.step) for pair in pairs}
        found.steps_only_here = len(steps_of(self._here) - both)
        found.steps_only_there = len(steps_of(self._there) - both)
        named = same_workers(self._here, self._there)
        found.workers_only_here = [worker for worker in self._here.workers() if worker not in named]
        found.workers_only_there = [worker for worker in self._there.workers() if worker not in named.values()]
        found.workers = sorted({worker for pair in pairs for worker in pair.sides})


class _Seen:
    """The facts that all layouts together tell of two runs."""

    def __init__(self) -> None:
        self._pairs: dict[str, TensorPair] = {}
        self._dtypes: tuple[set[str], set[str]] = set(), set()
        self._alone: tuple[dict[str, None], dict[str, None], dict[str, None]] = {}, {}, {}

    def add(self, layout: Layout) -> None:
        """Take in what another layout says."""
        for pair in layout.pairs:
            self._pairs.setdefault(pair.here, pair)
        for known, own in zip(self._dtypes, layout.dtypes(), strict=True):
            known |= own
        for noted, names in zip(self._alone, (layout.only_here, layout.only_there, layout.not_alike), strict=True):
            noted.update(dict.fromkeys(names))

    def note(self, found: Comparison) -> None:
        """Say it in the comparison."""
        there = {pair.there for pair in self._pairs.values()}
        found.tensors = len(self._pairs)
        found.renamed = {name: pair.there for name, pair in self._pairs.items() if pair.there != name}
        found.only_here = [name for name in self._alone[0] if name not in self._pairs]
        found.only_there = [name for name in self._alone[1] if name not in there]
        found.not_alike = [name for name in self._alone[2] if name not in self._pairs]
        found.dtypes = coarsest(self._dtypes[0]), coarsest(self._dtypes[1])

    def noise(self, unit: float) -> Noise:
        """Return the bounds; those of the coarsest type if the unit roundoff is 0."""
        dtype = coarsest(self._dtypes[0] | self._dtypes[1])
        return _noise(unit, dtype, self._pairs.values())


def _noise(unit: float, dtype: str | None, pairs: Collection[TensorPair]) -> Noise:
    # What has one dimension is added up along none of a layer's.
    sizes = [size for pair in pairs if len(pair.shape or ()) > 1 for size in pair.shape or ()]
    layers = {layer_of(pair.here) for pair in pairs if pair.kind is Kind.WEIGHT}
    return Noise(unit or UNITS[dtype or "float32"], max([_FEWEST_ADDED, *sizes]), max(_FEWEST_LAYERS, len(layers)))
