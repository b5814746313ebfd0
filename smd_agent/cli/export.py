"""Write a run into files that other programs read.

--parquet: DIR/tensors.parquet has a row for each tensor, step and worker: step (over all modes), mode, mode_step,
worker, tensor, collection, value (of a tensor of one element), min, max, mean, std, l2, zero_share, nan_count,
inf_count, and whatever other reductions are stored. What was not stored is computed where the whole tensor was saved;
what cannot be known is null. Whole tensors are not in it. DIR/series.parquet has a row for each step and worker of the
series, and a column for each number. It takes pyarrow.

--tensorboard: DIR has a folder for each mode, and tensorboard --logdir DIR shows them: losses, metrics and other
numbers, and the reductions that are stored, as scalars; histograms of tensors saved whole or as a histogram. Of the
series, 10,000 steps are there at most.

Exit code 0: all is written. 1: a part of the run cannot be read, and is missing.
"""

from __future__ import annotations

import argparse
import os

from smd_agent import guard
from smd_agent.analysis.dataframes import series_to_parquet
from smd_agent.analysis.series_source import COLLECTION
from smd_agent.analysis.trial import Trial
from smd_agent.cli.errors import USAGE_ERROR, CommandError
from smd_agent.cli.open_run import open_run
from smd_agent.cli.output import emit
from smd_agent.core.modes import ModeKeys

FILE = "tensors.parquet"
SERIES_FILE = "series.parquet"
# TensorBoard shows a thousand of them.
_MOST_STEPS = 10_000


def prepare_parser(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument("run", metavar="RUN", help="folder of the run")
    forms = parser.add_argument_group("forms, one at least").add_argument
    forms("--parquet", metavar="DIR", help="folder of a Parquet file; made if it is not there")
    forms("--tensorboard", metavar="DIR", help="folder of TensorBoard's files; made if it is not there")


def run(args: argparse.Namespace) -> int:
    """Write the files, and say where they are."""
    if args.parquet is None and args.tensorboard is None:
        raise CommandError("name a form: --parquet DIR, --tensorboard DIR or both", USAGE_ERROR)
    trial = open_run(args.run)
    problems: dict[tuple[int, str, str], str] = {}
    if args.parquet is not None:
        problems |= _to_parquet(trial, os.path.expanduser(args.parquet))
    if args.tensorboard is not None:
        problems |= _to_tensorboard(trial, os.path.expanduser(args.tensorboard))
    for problem in dict.fromkeys(problems.values()):
        guard.say(problem)
    return 1 if problems or trial.problems else 0


def _to_parquet(trial: Trial, folder: str) -> dict[tuple[int, str, str], str]:
    path = os.path.join(folder, FILE)
    if os.path.lexists(path):
        raise CommandError(f"{path} is there already: name another folder, or remove it", USAGE_ERROR)
    try:
        os.makedirs(folder, exist_ok=True)
    except OSError as error:
        raise CommandError(f"cannot make the folder {folder}: {error.strerror}") from error
    problems = trial.to_parquet(path)
    emit(f"wrote {path}")
    if trial.series():
        path = os.path.join(folder, SERIES_FILE)
        series_to_parquet(trial.series_source.tables, path)
        emit(f"wrote {path}")
    return problems


def _to_tensorboard(trial: Trial, folder: str) -> dict[tuple[int, str, str], str]:
    if os.path.isdir(folder) and os.listdir(folder):
        # TensorBoard would draw both runs as one.
        raise CommandError(f"{folder} is not empty: name another folder, or remove it", USAGE_ERROR)
    problems = trial.to_tensorboard(folder)
    steps = trial.series_source.step_table.steps(ModeKeys.GLOBAL)
    if steps:
        trial.to_tensorboard(folder, collection=COLLECTION, steps=steps[:: -(-len(steps) // _MOST_STEPS)])
    emit(f"wrote {folder}; to see it: tensorboard --logdir {folder}")
    return problems
