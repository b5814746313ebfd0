"""Say where two runs part: at which step, and in which tensor first.

What both have saved is compared: the same tensor of the same worker at the same step, as its mode counts it; value by
value, or by the statistics that both have. In a step come first the inputs, then weights, outputs of layers in their
order, losses, gradients from the last layer to the first, settings of the optimizer, and updates: what differs first
in this order is not caused by what comes later.

Runs of the same mathematics differ by rounding, on another device, with another order of sums or in another precision.
How far that reaches is told from the types, the sizes and the number of updates; --tolerance says whose noise is taken
for the same.

Exit code 0: the runs are identical, or with --tolerance within float noise of each other. 1: they differ. 2: they
cannot be compared.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterator, Sequence
from typing import Any

from smd_agent import guard
from smd_agent.analysis.trial import Trial
from smd_agent.cli.errors import USAGE_ERROR, CommandError
from smd_agent.cli.open_run import open_run
from smd_agent.cli.output import emit_all, emit_json, facts, progress, sparkline, table
from smd_agent.compare.common_values import StepPair
from smd_agent.compare.divergence import (
    LONGEST_NAME,
    likely_cause,
    listed,
    may_be_random,
    noise_name,
    step_text,
    verdict,
)
from smd_agent.compare.environments import RANDOM_STATE, SEEDS, FactPair, facts_apart, spoken
from smd_agent.compare.every_loss import LossesApart, first_loss_apart
from smd_agent.compare.runs import Comparison, Difference, Outcome, StepDifferences, compare
from smd_agent.core.modes import ModeKeys
from smd_agent.printable import count_of, shortened, shortened_within

TOLERANCES = ("auto", "float64", "float32", "device", "tf32", "float16", "bfloat16")
DIFFERENT, NOT_COMPARED = 1, 2


def prepare_parser(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument("run", metavar="RUN_A", help="folder of a run")
    parser.add_argument("other", metavar="RUN_B", help="folder of another one")
    tolerance = (
        "take float noise of this precision for the same: auto is that of the types which the runs have, device that "
        "of other kernels in float32; of auto float64 float32 device tf32 float16 bfloat16"
    )
    parser.add_argument("--tolerance", choices=TOLERANCES, metavar="PRECISION", help=tolerance)
    parser.add_argument("--all", action="store_true", help="list every tensor that differs")
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def run(args: argparse.Namespace) -> int:
    """Print where the runs part; the exit code says whether they do."""
    here, there = open_run(args.run), open_run(args.other)
    with progress("compared {} of {} steps") as tell:
        found = compare(here, there, args.tolerance or "auto", tell)
    if not found.steps or not found.tensors:
        raise CommandError(_nothing_in_common(here, there, found), USAGE_ERROR)
    if args.json:
        emit_json(as_json(found, here, there))
    else:
        emit_all(diff_lines(found, here, there, args.all))
    for problem in found.problems:
        guard.say(problem)
    same = (Outcome.IDENTICAL, Outcome.NOISE) if args.tolerance else (Outcome.IDENTICAL,)
    # Saved steps may be the same where others are not.
    if found.outcome not in same or (not args.tolerance and first_loss_apart(here, there) is not None):
        return DIFFERENT
    return NOT_COMPARED if found.problems or here.problems or there.problems else 0


def _nothing_in_common(here: Trial, there: Trial, found: Comparison) -> str:
    if found.steps:
        both = f"the {count_of(found.steps, 'step')} that both have"
        return f"{here.path} and {there.path} have saved no tensor in common at {both}"
    if found.workers_only_here and not {*here.workers()} & {*there.workers()}:
        own, other = ", ".join(here.workers()), ", ".join(there.workers())
        return f"{here.path} and {there.path} have no worker in common: {own} | {other}"
    return f"{here.path} and {there.path} have no step in common: {_steps(here)} | {_steps(there)}"


def _steps(trial: Trial) -> str:
    table = trial.step_table
    steps = table.steps(ModeKeys.GLOBAL, incomplete=True)
    if not steps:
        return "none was saved"
    first, last = (table.mode_step(step) for step in (steps[0], steps[-1]))
    return " to ".join(f"{one[0].name} {one[1]}" for one in (first, last) if one is not None)


_LABEL = 11
_LONGEST_FACT = 60
_LINES_SHOWN = 10
_BARS = 20


def diff_lines(found: Comparison, here: Trial, there: Trial, every: bool) -> Iterator[str]:
    """Yield where the runs part, the likely cause, and which tensors differ there; ``every`` lists all of them."""
    yield from facts(_facts(found, here, there), _LABEL)
    shown = found.parted or found.left_noise or found.first
    if shown is not None:
        yield ""
        yield from _tensors(shown, len(found.workers) > 1, len(shown.found) if every else _LINES_SHOWN)


def _facts(found: Comparison, here: Trial, there: Trial) -> Iterator[tuple[str, str]]:
    yield "A", found.here
    yield "B", found.there
    workers = f" of {count_of(len(found.workers), 'worker')}" if len(found.workers) > 1 else ""
    yield "Compared", f"{count_of(found.tensors, 'tensor')} over {count_of(found.steps, 'step')}{workers}"
    yield "Verdict", verdict(found)
    cause = likely_cause(found, here, there)
    if cause:
        yield "Likely", cause
    yield from _environment(facts_apart(here, there) or (), may_be_random(found))
    losses = first_loss_apart(here, there)
    if losses is not None:
        step = f"{losses.mode.name} step {losses.step}"
        yield "Losses", f"of all steps, saved or not: apart from {step} on, {losses.here:.7g} | {losses.there:.7g}"
    if found.first is not None:
        yield "Noise", _noise(found)
        yield "Apart", _course(found)
    yield from _what_is_alone(found)


def _environment(pairs: Sequence[FactPair], random_matters: bool) -> Iterator[tuple[str, str]]:
    """Yield a line for each kind of facts that differ; ``random_matters`` where random numbers may be the cause."""
    groups: dict[str, list[FactPair]] = {}
    for pair in pairs:
        groups.setdefault(pair.group, []).append(pair)
    seeded = {pair.name for pair in groups.get(SEEDS, ())}
    states = [pair.name for pair in groups.pop(RANDOM_STATE, ()) if pair.name not in seeded]
    for group, own in groups.items():
        texts = (f"{one.name} {spoken(group, one.here)} | {spoken(group, one.there)}" for one in own)
        yield group.capitalize()[:10], "; ".join(shortened(text, 2 * _LONGEST_FACT) for text in texts)
    if states and random_matters:
        names = " and ".join(shortened(name, _LONGEST_FACT) for name in states)
        yield "Random", f"another state of {names} at the first saved step"


def _noise(found: Comparison) -> str:
    first, last = found.course[0][0], found.course[-1][0]
    types = " | ".join(name or "-" for name in found.dtypes) if len({*found.dtypes}) > 1 else ""
    bounds = f"{noise_name(found)} reaches {found.noise.bound(first.updates):.1e} at {step_text(first)}"
    if last is not first:
        bounds += f", {found.noise.bound(last.updates):.1e} at {step_text(last)}"
    return f"{bounds}{f'; types {types}' if types else ''}"


def _course(found: Comparison) -> str:
    bars = sparkline([distance for _, distance in found.course], _BARS)
    (first, start), (last, end) = found.course[0], found.course[-1]
    ends = f"{_distance_text(start)} at {step_text(first)}"
    return f"{bars} {ends}" + (f", {_distance_text(end)} at {step_text(last)}" if last is not first else "")


def _what_is_alone(found: Comparison) -> Iterator[tuple[str, str]]:
    both = (
        ("Only in A", found.only_here, found.steps_only_here, found.workers_only_here),
        ("Only in B", found.only_there, found.steps_only_there, found.workers_only_there),
    )
    for label, names, steps, workers in both:
        parts = [f"{count_of(len(names), 'tensor')}: {listed(names)}"] if names else []
        parts += [count_of(steps, "step")] if steps else []
        parts += [listed(workers)] if workers else []
        if parts:
            yield label, "; ".join(parts)
    if found.renamed:
        pairs = [f"{name} | {other}" for name, other in found.renamed.items()]
        yield "Renamed", f"{count_of(len(pairs), 'tensor')}, taken for the same: {listed(pairs)}"
    if found.not_alike:
        yield "Left out", f"{count_of(len(found.not_alike), 'tensor')} in other forms: {listed(found.not_alike)}"


def _tensors(shown: StepDifferences, several: bool, most: int) -> Iterator[str]:
    rows = [
        (
            shortened_within(one.tensor.here, LONGEST_NAME),
            one.tensor.kind.name.lower(),
            *([one.worker] if several else []),
            one.apart.what,
            *one.apart.texts(),
            _distance_text(one.apart.relative),
            "" if one.apart.differing is None else f"{one.apart.differing} of {one.apart.size}",
        )
        for one in shown.found[:most]
    ]
    header = ("TENSOR", "KIND", *(["WORKER"] if several else []), "OF", "A", "B", "APART", "DIFFER")
    yield f"What differs at {step_text(shown.step)}, in the order of the step:"
    yield from table(header, rows, right="A B APART DIFFER")
    left = len(shown.found) - len(rows)
    if left:
        yield f"... and {left} more: --all lists them"


def _distance_text(relative: float) -> str:
    return "-" if math.isinf(relative) else f"{relative:.1e}" if relative else "0"


def as_json(found: Comparison, here: Trial, there: Trial) -> dict[str, Any]:
    """Return all of it for programs; a distance that has no size is null."""
    pairs, losses = facts_apart(here, there), first_loss_apart(here, there)
    environment = [{"group": one.group, "name": one.name, "a": one.here, "b": one.there} for one in pairs or ()]
    return {
        "a": found.here,
        "b": found.there,
        "outcome": found.outcome.value,
        "verdict": verdict(found),
        "likely": likely_cause(found, here, there),
        "steps": found.steps,
        "tensors": found.tensors,
        "workers": found.workers,
        "identical_up_to": found.last_same and _step_json(found.last_same),
        "first": found.first and _differences_json(found.first),
        "parted": found.parted and _differences_json(found.parted),
        "beyond_noise": found.left_noise and _step_json(found.left_noise.step),
        "course": [{**_step_json(pair), "apart": _size_or_none(distance)} for pair, distance in found.course],
        "noise": {"of": noise_name(found), "unit_roundoff": found.noise.unit, "at_first": found.noise.bound(0)},
        "types": list(found.dtypes),
        "only_a": {"tensors": found.only_here, "steps": found.steps_only_here, "workers": found.workers_only_here},
        "only_b": {"tensors": found.only_there, "steps": found.steps_only_there, "workers": found.workers_only_there},
        "renamed": found.renamed,
        "not_compared": found.not_alike,
        "environment": None if pairs is None else environment,
        "losses_apart": losses and {"mode": losses.mode.name, "step": losses.step, **_both(losses)},
        "problems": list(found.problems),
    }


def _both(losses: LossesApart) -> dict[str, float | str]:
    return {"a": _finite_or_text(losses.here), "b": _finite_or_text(losses.there)}


def _step_json(step: StepPair) -> dict[str, Any]:
    return {"mode": step.mode.name, "step": step.step}


def _differences_json(found: StepDifferences) -> dict[str, Any]:
    return {**_step_json(found.step), "tensors": [_difference_json(one) for one in found.found]}


def _difference_json(one: Difference) -> dict[str, Any]:
    distance = one.apart
    return {
        "tensor": one.tensor.here,
        "name_in_b": one.tensor.there,
        "kind": one.tensor.kind.name.lower(),
        "worker": one.worker,
        "of": distance.what,
        "a": _finite_or_text(distance.here),
        "b": _finite_or_text(distance.there),
        "apart": _size_or_none(distance.relative),
        "noise": one.bound,
        "differing": distance.differing,
        "size": distance.size,
    }


def _finite_or_text(value: float | str) -> float | str:
    return value if isinstance(value, str) or math.isfinite(value) else str(value)


def _size_or_none(relative: float) -> float | None:
    return relative if math.isfinite(relative) else None
