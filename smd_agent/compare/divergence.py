"""The verdict on two runs in a sentence, and the likely cause of their first difference.

Inputs differ because workers have each other's, because the order is another one, or because the data is.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence

from smd_agent.analysis.trial import Trial
from smd_agent.compare.common_values import Side, StepPair, step_pairs
from smd_agent.compare.rounding_bounds import PROFILES
from smd_agent.compare.runs import Comparison, Difference, Outcome, StepDifferences
from smd_agent.compare.tensor_order import Kind
from smd_agent.core.modes import ModeKeys
from smd_agent.errors import SMDebugError
from smd_agent.printable import count_of, shortened_within

# What is looked for are batches that come again.
_MOST_STEPS = 2000


class Data(enum.Enum):
    """A way to differ: `SWAPPED` between workers, the `SAME` batches in another order, `OTHER` ones, or not known."""

    SWAPPED = "swapped between workers"
    SAME = "the same batches in another order"
    OTHER = "other batches"
    UNKNOWN = "not known"


def data_of(parted: StepDifferences, here: Trial, there: Trial) -> Data:
    """Tell how the inputs of two runs differ that part in them; only whole values, such as digests, tell it."""
    sides = parted.step.sides
    for tensor in dict.fromkeys(one.tensor for one in parted.found if one.tensor.kind is Kind.INPUT):
        mine = {worker: _key(pair[0], tensor.here) for worker, pair in sides.items()}
        its = {worker: _key(pair[1], tensor.there) for worker, pair in sides.items()}
        if None not in (*mine.values(), *its.values()):
            break
    else:
        return Data.UNKNOWN
    if len(sides) > 1 and sorted(map(str, mine.values())) == sorted(map(str, its.values())):
        return Data.SWAPPED
    batches: tuple[set[object], set[object]] = set(), set()
    for pair in step_pairs(here, there)[:_MOST_STEPS]:
        for one, other in pair.sides.values():
            keys = _key(one, tensor.here), _key(other, tensor.there)
            if keys[0] != keys[1]:
                for known, key in zip(batches, keys, strict=True):
                    known.add(key)
    common = batches[0] & batches[1] - {None}
    return Data.SAME if 2 * len(common) > min(map(len, batches)) else Data.OTHER


def _key(side: Side, name: str) -> object:
    """Return what is the same for the same inputs alone; None where the step has no whole value."""
    if not side.is_whole(name):
        return None
    try:
        value = side.value(name)
    except SMDebugError:
        return None
    return value.shape, value.tobytes()


LONGEST_NAME = 40
_NAMES_SHOWN = 3

_CAUSES = {
    Kind.CONFIGURATION: "another configuration of the training",
    Kind.TREE: "another tree: a parameter that changes from round to round, the data, or the seed",
    Kind.OUTPUT: "other code of this layer, other random numbers such as those of dropout, or another mode",
    Kind.LOSS: "another loss, or what comes before it and was not saved",
    Kind.GRADIENT: "another backward pass: clipping, scaling, accumulation or averaging over workers",
    Kind.SETTING: "another setting of the optimizer",
    Kind.UPDATE: "another optimizer, or another state of it, with the same gradients",
    Kind.RESULT: "another model, or what comes before it and was not saved",
}
_DATA_CAUSES = {
    Data.SAME: "the same batches in another order",
    Data.OTHER: "other data, or another order or preparation of it",
}


def verdict(found: Comparison) -> str:
    """Return in a sentence what two runs are to each other."""
    if found.first is None:
        return f"identical: {count_of(found.tensors, 'tensor')} over {count_of(found.steps, 'step')}"
    same = f"identical up to {step_text(found.last_same)}; " if found.last_same else ""
    begins = f"at {step_text(found.first.step)} {_first_text(found.first.found[0])}"
    if found.outcome is Outcome.NOISE:
        of = f"float noise of {noise_name(found)}"
        return f"{same}{begins}; all differences stay within {of}" if same else f"differences stay within {of}"
    if found.outcome is Outcome.GROWN or found.parted is None:
        where = step_text(found.left_noise.step if found.left_noise else found.first.step)
        return f"float noise that grows: within its bounds before {where}, beyond them there"
    return f"{same}{begins}" if same else _beyond_noise(found.parted, found.parted.step is not found.first.step)


def _beyond_noise(parted: StepDifferences, noise_before: bool) -> str:
    at = step_text(parted.step)
    kinds = {one.tensor.kind for one in parted.found}
    if not noise_before and parted.step.step == 0:
        if parted.found[0].tensor.kind is Kind.WEIGHT:
            return f"weights differ at {at}: another seed or initialisation"
        if kinds >= {Kind.INPUT, Kind.WEIGHT}:
            return f"inputs and weights differ at {at}: another seed, or data and initialisation"
    return f"{'within float noise before; ' if noise_before else ''}at {at} {_first_text(parted.found[0])}"


def likely_cause(found: Comparison, here: Trial, there: Trial) -> str:
    """Return what has probably made two runs differ; empty where they do not."""
    if found.outcome is Outcome.GROWN:
        return "another order of sums, device, release or precision: trainings amplify what rounding does"
    shown = found.parted or found.first
    if shown is None or (found.outcome is Outcome.NOISE and found.last_same is None):
        return ""
    step, kind = shown.step, shown.found[0].tensor.kind
    if kind is Kind.INPUT:
        return _of_inputs(shown, found, here, there)
    if kind is Kind.WEIGHT:
        return _of_weights(shown, found)
    cause = _CAUSES[kind]
    if kind in (Kind.SETTING, Kind.UPDATE):
        cause = _other_optimizer(found) or cause
    if step.after_gap and step.step and kind not in (Kind.CONFIGURATION, Kind.SETTING):
        cause += f"; or something in {_steps_before(step)}"
    return cause


def may_be_random(found: Comparison) -> bool:
    """True where what differs first may come of random numbers."""
    shown = found.parted or found.first
    return shown is not None and shown.found[0].tensor.kind in (Kind.INPUT, Kind.WEIGHT, Kind.OUTPUT)


def noise_name(found: Comparison) -> str:
    """Return the precision whose float noise counts: a run's own type where it has that noise."""
    own = max((name for name in found.dtypes if name), key=lambda name: PROFILES.get(name, 0.0), default="float32")
    if PROFILES.get(own) == found.noise.unit:
        return own
    return next((name for name, unit in PROFILES.items() if unit == found.noise.unit), own)


def step_text(step: StepPair) -> str:
    """Name a step, with its mode unless that is TRAIN or GLOBAL."""
    mode = "" if step.mode in (ModeKeys.TRAIN, ModeKeys.GLOBAL) else f"{step.mode.name} "
    return f"{mode}step {step.step}"


def listed(names: Sequence[str], most: int = _NAMES_SHOWN) -> str:
    """Name a few, and count the others."""
    shown = [shortened_within(name, 2 * LONGEST_NAME) for name in names[:most]]
    if len(names) > most:
        return f"{', '.join(shown)} and {len(names) - most} more"
    return " and ".join(shown) if len(shown) < 3 else ", ".join(shown)


def _other_optimizer(found: Comparison) -> str:
    alone = [
        sorted({name.split("/")[1] for name in names if name.startswith("optimizer/")})
        for names in (found.only_here, found.only_there)
    ]
    return f"another optimizer: {listed(alone[0])} | {listed(alone[1])}" if all(alone) else ""


def _of_inputs(shown: StepDifferences, found: Comparison, here: Trial, there: Trial) -> str:
    kinds = {one.tensor.kind for one in shown.found}
    if shown.step.step == 0 and found.last_same is None and kinds >= {Kind.INPUT, Kind.WEIGHT}:
        return "another seed, which the order of the data and the initialisation depend on"
    workers = list(dict.fromkeys(one.worker for one in shown.found if one.tensor.kind is Kind.INPUT))
    data = data_of(shown, here, there)
    if data is Data.SWAPPED:
        return f"the data of {listed(workers)} is swapped"
    cause = _DATA_CAUSES.get(data, "other data or another data order")
    if _rest_is_noise(found, shown):
        cause = "the same samples in another order within the batch, or prepared with other rounding"
    return f"{cause}, on {listed(workers)} only" if len(workers) < len(shown.step.sides) else cause


def _rest_is_noise(found: Comparison, shown: StepDifferences) -> bool:
    """Tell whether nothing but the inputs of a step is beyond float noise, though more than these is known."""
    whole = next(one for one in (found.first, found.left_noise, shown) if one is not None and one.step is shown.step)
    rest = [one for one in whole.found if one.tensor.kind is not Kind.INPUT]
    return bool(rest) and all(one.beyond <= 1 for one in rest)


def _of_weights(shown: StepDifferences, found: Comparison) -> str:
    step = shown.step
    if step.previous < 0 and found.last_same is None:
        names = {one.tensor.here for one in shown.found if one.tensor.kind is Kind.WEIGHT}
        before = f", or something in {_steps_before(step)}" if step.step else ""
        return f"another seed, initialisation or checkpoint, in {count_of(len(names), 'weight')}{before}"
    if step.after_gap:
        return f"something in {_steps_before(step)}"
    return "another update in the step before, or weights that something else has changed"


def _steps_before(step: StepPair) -> str:
    """Name the steps before one that were not compared."""
    first, last = step.previous + 1, step.step - 1
    if first == last:
        return f"step {last}, which was not compared"
    return f"steps {first} to {last}, which were not compared"


def _first_text(first: Difference) -> str:
    name = shortened_within(first.tensor.here, LONGEST_NAME)
    if first.tensor.kind in (Kind.INPUT, Kind.WEIGHT):
        return f"{first.tensor.kind.name.lower()}s differ first: {name}"
    values = f": {' | '.join(first.apart.texts())}" if first.apart.what in ("value", "text") else ""
    return f"{name} differs first{values}"
