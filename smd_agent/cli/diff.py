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

from smd_agent import guard
from smd_agent.cli.diff_report import as_json, diff_lines
from smd_agent.cli.errors import USAGE_ERROR, CommandError
from smd_agent.cli.output import emit_all, emit_json, progress
from smd_agent.cli.run_folder import open_run
from smd_agent.compare.runs import Comparison, Outcome, compare
from smd_agent.core.modes import ModeKeys
from smd_agent.printable import count_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse

    from smd_agent.analysis.trial import Trial

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
    if found.outcome not in same:
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
