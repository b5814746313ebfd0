"""Write the statistics of a run into a file that other programs read.

DIR/tensors.parquet has a row for each tensor, step and worker: step (over all modes), mode, mode_step, worker, tensor,
collection, value (of a tensor of one element), min, max, mean, std, l2, zero_share, nan_count, inf_count, and whatever
other reductions are stored. What was not stored is computed where the whole tensor was saved; what cannot be known is
null. Whole tensors are not in it. It takes pyarrow.

Exit code 0: all is written. 1: a part of the run cannot be read, and is null.
"""

from __future__ import annotations

import os

from smd_agent import guard
from smd_agent.cli.errors import USAGE_ERROR, CommandError
from smd_agent.cli.output import emit
from smd_agent.cli.run_folder import open_run

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse

FILE = "tensors.parquet"


def prepare_parser(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument("run", metavar="RUN", help="folder of the run")
    parser.add_argument("--parquet", metavar="DIR", required=True, help="folder of the file; made if it is not there")


def run(args: argparse.Namespace) -> int:
    """Write the file, and say where it is."""
    trial = open_run(args.run)
    folder = os.path.expanduser(args.parquet)
    path = os.path.join(folder, FILE)
    if os.path.lexists(path):
        raise CommandError(f"{path} is there already: name another folder, or remove it", USAGE_ERROR)
    try:
        os.makedirs(folder, exist_ok=True)
    except OSError as error:
        raise CommandError(f"cannot make the folder {folder}: {error.strerror}") from error
    problems = trial.to_parquet(path)
    emit(f"wrote {path}")
    for problem in dict.fromkeys(problems.values()):
        guard.say(problem)
    return 1 if problems or trial.problems else 0
