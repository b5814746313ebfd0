"""What the comparison of two runs has found, as lines for people and as JSON for programs."""

from __future__ import annotations

import math

from smd_agent.cli.sparkline import sparkline
from smd_agent.cli.surroundings import fact_lines, facts_as_json
from smd_agent.cli.table import number_text, table
from smd_agent.printable import count_of, shortened, shortened_within

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any

    from smd_agent.analysis.trial import Trial
    from smd_agent.compare.apart import Apart
    from smd_agent.compare.runs import Comparison, Difference, StepDifferences
    from smd_agent.compare.steps import StepPair

_LABEL = 10
_LONGEST_NAME = 40
_LONGEST_VALUE = 24
_LINES_SHOWN = 10
_NAMES_SHOWN = 3
_BARS = 20
_CONTEXT = 8


def diff_lines(found: Comparison, here: Trial, there: Trial, every: bool) -> Iterator[str]:
    """Yield where the runs part, the likely cause, and which tensors differ there; ``every`` lists all of them."""
    from smd_agent.compare.environments import facts_apart

    yield _line("A", found.here)
    yield _line("B", found.there)
    yield _line("Compared", _compared(found))
    yield _line("Verdict", verdict(found))
    cause = likely(found, here, there)
    if cause:
        yield _line("Likely", cause)
    for label, text in fact_lines(facts_apart(here, there), _may_be_random(found)):
        yield _line(label, text)
    if found.first is not None:
        yield _line("Noise", _noise(found))
        yield _line("Apart", _course(found))
    yield from _what_is_alone(found)
    shown = found.parted or found.left_noise or found.first
    if shown is not None:
        yield ""
        yield from _tensors(shown, len(found.workers) > 1, math.inf if every else _LINES_SHOWN)


def verdict(found: Comparison) -> str:
    """Return in a sentence what two runs are to each other."""
    from smd_agent.compare.flow import Kind
    from smd_agent.compare.runs import Outcome

    if found.first is None:
        return f"identical: {count_of(found.tensors, 'tensor')} over {count_of(found.steps, 'step')}"
    same = f"identical up to {step_text(found.last_same)}; " if found.last_same else ""
    first = found.first.found[0]
    begins = f"at {step_text(found.first.step)} {_first_text(first)}"
    if found.outcome is Outcome.NOISE:
        of = f"float noise of {_noise_name(found)}"
        return f"{same}{begins}; all differences stay within {of}" if same else f"differences stay within {of}"
    if found.outcome is Outcome.GROWN or found.parted is None:
        where = step_text(found.left_noise.step if found.left_noise else found.first.step)
        return f"float noise that grows: within its bounds before {where}, beyond them there"
    cause = found.parted.found[0]
    if same:
        return f"{same}{begins}"
    before = "" if found.parted.step is found.first.step else "within float noise before; "
    kinds = {one.tensor.kind for one in found.parted.found}
    at = step_text(found.parted.step)
    opens = not before and found.parted.step.step == 0
    if opens and cause.tensor.kind is Kind.WEIGHT:
        return f"weights differ at {at}: another seed or initialisation"
    if opens and kinds >= {Kind.INPUT, Kind.WEIGHT}:
        return f"inputs and weights differ at {at}: another seed, or data and initialisation"
    return f"{before}at {at} {_first_text(cause)}"


def likely(found: Comparison, here: Trial, there: Trial) -> str:
    """Return what has probably happened where two runs part; empty where nothing has."""
    from smd_agent.compare.flow import Kind
    from smd_agent.compare.runs import Outcome

    if found.outcome is Outcome.GROWN:
        return "another order of sums, device, release or precision: trainings amplify what rounding does"
    shown = found.parted or found.first
    if shown is None or (found.outcome is Outcome.NOISE and found.last_same is None):
        return ""
    step, first = shown.step, shown.found[0]
    kind = first.tensor.kind
    if kind is Kind.INPUT:
        cause = _of_inputs(shown, found, here, there)
    elif kind is Kind.WEIGHT:
        cause = _of_weights(shown, found)
    else:
        cause = {
            Kind.CONFIGURATION: "another configuration of the training",
            Kind.TREE: "another tree: a parameter that changes from round to round, the data, or the seed",
            Kind.OUTPUT: "other code of this layer, other random numbers such as those of dropout, or another mode",
            Kind.LOSS: "another loss, or what comes before it and was not saved",
            Kind.GRADIENT: "another backward pass: clipping, scaling, accumulation or averaging over workers",
            Kind.SETTING: "another setting of the optimizer",
            Kind.UPDATE: "another optimizer, or another state of it, with the same gradients",
            Kind.RESULT: "another model, or what comes before it and was not saved",
        }[kind]
        if kind in (Kind.SETTING, Kind.UPDATE):
            cause = _of_settings(found) or cause
    from_outside = kind in (Kind.CONFIGURATION, Kind.INPUT, Kind.SETTING)
    if step.after_gap and not from_outside and step.step and kind is not Kind.WEIGHT:
        cause += f"; or something in {_gap_text(step)}"
    return cause


def _may_be_random(found: Comparison) -> bool:
    from smd_agent.compare.flow import Kind

    shown = found.parted or found.first
    return shown is not None and shown.found[0].tensor.kind in (Kind.INPUT, Kind.WEIGHT, Kind.OUTPUT)


def _of_settings(found: Comparison) -> str:
    alone = [
        sorted({name.split("/")[1] for name in names if name.startswith("optimizer/")})
        for names in (found.only_here, found.only_there)
    ]
    if all(alone):
        return f"another optimizer: {_listed(alone[0])} | {_listed(alone[1])}"
    return ""


def _of_inputs(shown: StepDifferences, found: Comparison, here: Trial, there: Trial) -> str:
    from smd_agent.compare.data import Data, data_of
    from smd_agent.compare.flow import Kind

    if (
        shown.step.step == 0
        and found.last_same is None
        and {Kind.INPUT, Kind.WEIGHT} <= {one.tensor.kind for one in shown.found}
    ):
        return "another seed, which the order of the data and the initialisation depend on"
    workers = list(dict.fromkeys(one.worker for one in shown.found if one.tensor.kind is Kind.INPUT))
    data = data_of(shown, here, there)
    if data is Data.SWAPPED:
        return f"the data of {_listed(workers)} is swapped"
    cause = {
        Data.SAME: "the same batches in another order",
        Data.OTHER: "other data, or another order or preparation of it",
    }.get(data, "other data or another data order")
    if _follow_by_noise(found, shown):
        cause = "the same samples in another order within the batch, or prepared with other rounding"
    alone = f", on {_listed(workers)} only" if len(workers) < len(shown.step.sides) else ""
    return f"{cause}{alone}"


def _follow_by_noise(found: Comparison, shown: StepDifferences) -> bool:
    """Tell whether nothing but the inputs of a step is beyond float noise, though more than these is known."""
    from smd_agent.compare.flow import Kind

    whole = next(one for one in (found.first, found.left_noise, shown) if one is not None and one.step is shown.step)
    rest = [one for one in whole.found if one.tensor.kind is not Kind.INPUT]
    return bool(rest) and all(one.beyond <= 1 for one in rest)


def _of_weights(shown: StepDifferences, found: Comparison) -> str:
    from smd_agent.compare.flow import Kind

    step = shown.step
    names = {one.tensor.here for one in shown.found if one.tensor.kind is Kind.WEIGHT}
    if step.previous < 0 and found.last_same is None:
        before = f", or something in {_gap_text(step)}" if step.step else ""
        return f"another seed, initialisation or checkpoint, in {count_of(len(names), 'weight')}{before}"
    if step.after_gap:
        return f"something in {_gap_text(step)}"
    return "another update in the step before, or weights that something else has changed"


def _gap_text(step: StepPair) -> str:
    first, last = step.previous + 1, step.step - 1
    return (
        f"step {last}, which was not compared" if first == last else f"steps {first} to {last}, which were not compared"
    )


def step_text(step: StepPair) -> str:
    """Name a step, with its mode unless that is TRAIN or GLOBAL."""
    from smd_agent.core.modes import ModeKeys

    mode = "" if step.mode in (ModeKeys.TRAIN, ModeKeys.GLOBAL) else f"{step.mode.name} "
    return f"{mode}step {step.step}"


def _first_text(first: Difference) -> str:
    from smd_agent.compare.flow import Kind

    names = {Kind.INPUT: "inputs differ", Kind.WEIGHT: "weights differ"}
    name = shortened_within(first.tensor.here, _LONGEST_NAME)
    if first.tensor.kind in names:
        return f"{names[first.tensor.kind]} first: {name}"
    values = f": {' | '.join(_values_text(first.apart))}" if first.apart.what in ("value", "text") else ""
    return f"{name} differs first{values}"


def _compared(found: Comparison) -> str:
    workers = f" of {count_of(len(found.workers), 'worker')}" if len(found.workers) > 1 else ""
    return f"{count_of(found.tensors, 'tensor')} over {count_of(found.steps, 'step')}{workers}"


def _noise_name(found: Comparison) -> str:
    from smd_agent.compare.noise import PROFILES

    own = max((name for name in found.dtypes if name), key=lambda name: PROFILES.get(name, 0.0), default="float32")
    if PROFILES.get(own) == found.noise.unit:
        return own
    return next((name for name, unit in PROFILES.items() if unit == found.noise.unit), own)


def _noise(found: Comparison) -> str:
    course = [pair for pair, _ in found.course]
    first, last = course[0], course[-1]
    types = " | ".join(name or "-" for name in found.dtypes) if len({*found.dtypes}) > 1 else ""
    bounds = f"{_noise_name(found)} reaches {found.noise.bound(first.updates):.1e} at {step_text(first)}"
    if last is not first:
        bounds += f", {found.noise.bound(last.updates):.1e} at {step_text(last)}"
    return f"{bounds}{f'; types {types}' if types else ''}"


def _course(found: Comparison) -> str:
    numbers = [apart for _, apart in found.course]
    bars = sparkline(numbers, _BARS)
    (first, start), (last, end) = found.course[0], found.course[-1]
    ends = f"{_apart_text(start)} at {step_text(first)}"
    return f"{bars} {ends}" + (f", {_apart_text(end)} at {step_text(last)}" if last is not first else "")


def _what_is_alone(found: Comparison) -> Iterator[str]:
    both = (
        ("Only in A", found.only_here, found.steps_only_here, found.workers_only_here),
        ("Only in B", found.only_there, found.steps_only_there, found.workers_only_there),
    )
    for label, names, steps, workers in both:
        parts = [f"{count_of(len(names), 'tensor')}: {_listed(names)}"] if names else []
        parts += [count_of(steps, "step")] if steps else []
        parts += [_listed(workers)] if workers else []
        if parts:
            yield _line(label, "; ".join(parts))
    if found.renamed:
        pairs = [f"{name} | {other}" for name, other in found.renamed.items()]
        yield _line("Renamed", f"{count_of(len(pairs), 'tensor')}, taken for the same: {_listed(pairs, _NAMES_SHOWN)}")
    if found.not_alike:
        yield _line(
            "Left out", f"{count_of(len(found.not_alike), 'tensor')} in other forms: {_listed(found.not_alike)}"
        )


def _tensors(shown: StepDifferences, several: bool, most: float) -> Iterator[str]:
    rows = []
    for one in shown.found:
        rows.append(
            (
                shortened_within(one.tensor.here, _LONGEST_NAME),
                one.tensor.kind.name.lower(),
                *([one.worker] if several else []),
                one.apart.what,
                *_values_text(one.apart),
                _apart_text(one.apart.relative),
                "" if one.apart.differing is None else f"{one.apart.differing} of {one.apart.size}",
            )
        )
        if len(rows) >= most:
            break
    header = ("TENSOR", "KIND", *(["WORKER"] if several else []), "OF", "A", "B", "APART", "DIFFER")
    yield f"What differs at {step_text(shown.step)}, in the order of the step:"
    yield from table(header, rows, right="A B APART DIFFER")
    left = len(shown.found) - len(rows)
    if left:
        yield f"... and {left} more: --all lists them"


def _apart_text(relative: float) -> str:
    return "-" if math.isinf(relative) else f"{relative:.1e}" if relative else "0"


def _values_text(apart: Apart) -> tuple[str, str]:
    here, there = (_value_text(value) for value in (apart.here, apart.there))
    if apart.what == "text":
        return _from_first_difference(str(apart.here), str(apart.there))
    if here == there and not isinstance(apart.here, str) and not isinstance(apart.there, str):
        # As many digits as it takes.
        texts = ((f"{apart.here:.{digits}g}", f"{apart.there:.{digits}g}") for digits in (6, 9, 12, 17))
        return next((pair for pair in texts if pair[0] != pair[1]), (here, there))
    return here, there


def _from_first_difference(here: str, there: str) -> tuple[str, str]:
    """Cut off what two texts begin with alike, but for a few characters."""
    same = next((at for at, (mine, its) in enumerate(zip(here, there, strict=False)) if mine != its), 0)
    start = max(same - _CONTEXT, 0)
    return shortened(here[start:], _LONGEST_VALUE), shortened(there[start:], _LONGEST_VALUE)


def _value_text(value: float | str) -> str:
    return shortened_within(value, _LONGEST_VALUE) if isinstance(value, str) else number_text(value)


def _listed(names: Sequence[str], most: int = _NAMES_SHOWN) -> str:
    shown = [shortened_within(name, 2 * _LONGEST_NAME) for name in names[:most]]
    if len(names) > most:
        return f"{', '.join(shown)} and {len(names) - most} more"
    return " and ".join(shown) if len(shown) < 3 else ", ".join(shown)


def _line(label: str, text: str) -> str:
    return f"{label:<{_LABEL}} {text}"


def as_json(found: Comparison, here: Trial, there: Trial) -> dict[str, Any]:
    """Return all of it for programs; a distance that has no size is null."""
    from smd_agent.compare.environments import facts_apart

    return {
        "a": found.here,
        "b": found.there,
        "outcome": found.outcome.value,
        "verdict": verdict(found),
        "likely": likely(found, here, there),
        "steps": found.steps,
        "tensors": found.tensors,
        "workers": found.workers,
        "identical_up_to": _step_json(found.last_same),
        "first": _differences_json(found.first),
        "parted": _differences_json(found.parted),
        "beyond_noise": _step_json(found.left_noise.step if found.left_noise else None),
        "course": [{**(_step_json(pair) or {}), "apart": _distance(apart)} for pair, apart in found.course],
        "noise": {"of": _noise_name(found), "unit_roundoff": found.noise.unit, "at_first": found.noise.bound(0)},
        "types": list(found.dtypes),
        "only_a": {"tensors": found.only_here, "steps": found.steps_only_here, "workers": found.workers_only_here},
        "only_b": {"tensors": found.only_there, "steps": found.steps_only_there, "workers": found.workers_only_there},
        "renamed": found.renamed,
        "not_compared": found.not_alike,
        "environment": facts_as_json(facts_apart(here, there)),
        "problems": list(found.problems),
    }


def _step_json(step: StepPair | None) -> dict[str, Any] | None:
    return None if step is None else {"mode": step.mode.name, "step": step.step}


def _differences_json(found: StepDifferences | None) -> dict[str, Any] | None:
    if found is None:
        return None
    return {**(_step_json(found.step) or {}), "tensors": [_difference_json(one) for one in found.found]}


def _difference_json(one: Difference) -> dict[str, Any]:
    apart: Apart = one.apart
    return {
        "tensor": one.tensor.here,
        "name_in_b": one.tensor.there,
        "kind": one.tensor.kind.name.lower(),
        "worker": one.worker,
        "of": apart.what,
        "a": apart.here if isinstance(apart.here, str) else _finite(apart.here),
        "b": apart.there if isinstance(apart.there, str) else _finite(apart.there),
        "apart": _distance(apart.relative),
        "noise": one.bound,
        "differing": apart.differing,
        "size": apart.size,
    }


def _finite(number: float) -> float | str:
    """Return a number as JSON has it: NaN and Inf are text."""
    return number if math.isfinite(number) else str(number)


def _distance(relative: float) -> float | None:
    return relative if math.isfinite(relative) else None
