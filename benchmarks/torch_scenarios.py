"""Makes the table of PyTorch scenarios: what is captured of each, and what it costs.

usage: python -m benchmarks.torch_scenarios [--rounds N] [--only WORDS] [FILE]

Without FILE the table is printed; `--rounds 0` leaves the costs out, `--only` the scenarios without these words. Every
scenario is run in processes forked from this one, which has imported torch and computed nothing: plain, with its layers
watched, with the agent saving nothing, and with the agent saving all of every step.
"""

from __future__ import annotations

import argparse
import atexit
import json
import os
import platform
import shutil
import socket
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch

from benchmarks.family import Worker, interleave, middle, pairwise
from benchmarks.scenarios import compiled, loops, models
from benchmarks.scenarios.captured import Captured, examine
from benchmarks.scenarios.page import Cost, page
from benchmarks.scenarios.player import Player, prepare
from benchmarks.scenarios.scene import SCENES

# In the order of the table.
PARTS = (loops, models, compiled)
ROUNDS = 60
WINDOW_SECONDS = 0.004
TIMED = ("plain", "unsaved", "saved", "again")


@dataclass
class Fork:
    """A variant of a scenario in a process of its own; ``worker`` gives it commands."""

    worker: Worker
    pid: int
    connection: socket.socket
    folder: Path


def start(words: str, variant: str, folder: Path, others: Sequence[Fork]) -> Fork:
    """Fork a variant; its stderr goes to a file in its folder."""
    folder = folder / variant
    folder.mkdir(parents=True)
    mine, its = socket.socketpair()
    pid = os.fork()
    if pid:
        its.close()
        return Fork(Worker(f"{words}: {variant}", mine), pid, mine, folder)
    mine.close()
    for other in others:
        hang_up(other)
    run(lambda: serve(words, variant, folder, its), folder / "stderr")
    os._exit(0)


def run(program: Callable[[], None], stderr: Path) -> None:
    """Run a program in this forked process as if it were the whole of it, up to its exit functions."""
    os.dup2(os.open(stderr, os.O_WRONLY | os.O_CREAT, 0o600), 2)
    try:
        program()
    except Exception:  # noqa: BLE001 - this is the end of a process
        traceback.print_exc()
    atexit._run_exitfuncs()
    sys.stderr.flush()


def serve(words: str, variant: str, folder: Path, connection: socket.socket) -> None:
    """Answer commands until the other side hangs up."""
    player = Player(words, variant, folder)
    stream = connection.makefile("rw")
    commands = ((operation, count) for operation, count in map(json.loads, stream))
    player.serve(commands, lambda sample: print(json.dumps(sample), file=stream, flush=True))


def end(fork: Fork) -> None:
    """Have a variant end as a program ends."""
    hang_up(fork)
    os.waitpid(fork.pid, 0)


def hang_up(fork: Fork) -> None:
    """Close this process's side of the connection."""
    fork.worker.hang_up()
    fork.connection.close()


def measure(words: str, folder: Path, rounds: int) -> tuple[Captured, Cost | None]:
    """Run one scenario in all variants."""
    forks: list[Fork] = []
    variants = ("plain", "watched", "unsaved", "saved", *(("again",) if rounds else ()))
    for variant in variants:
        forks.append(start(words, variant, folder, forks))
        take_notes(forks[-1])
    cost = timed({fork.folder.name: fork.worker for fork in forks}, rounds) if rounds else None
    for fork in forks:
        end(fork)
    return examine(*(folder / variant for variant in variants[:4])), cost


def take_notes(fork: Fork) -> None:
    """Have a variant run its first iterations.

    Raises:
        RuntimeError: it failed; the message is what it said.
    """
    try:
        fork.worker.run("note")
    except (RuntimeError, OSError):
        os.waitpid(fork.pid, 0)
        raise RuntimeError((fork.folder / "stderr").read_text()) from None


def timed(workers: dict[str, Worker], rounds: int) -> Cost:
    """Take turns with windows of a few milliseconds."""
    plain = workers["plain"]
    plain.run("steps", 3)
    count = max(1, round(WINDOW_SECONDS / (plain.run("steps", 3)["cpu"] / 3)))
    samples = dict(zip(TIMED, interleave([workers[name] for name in TIMED], rounds, "steps", count), strict=True))
    return Cost(
        plain=middle(samples["plain"], "cpu") / count,
        unsaved=pairwise(samples["unsaved"], samples["plain"], "cpu"),
        saved=pairwise(samples["saved"], samples["plain"], "process"),
        again=pairwise(samples["again"], samples["plain"], "cpu"),
    )


def results(rounds: int, only: str) -> Iterator[tuple[str, Captured, Cost | None]]:
    """Yield the rows, one after the other; ``only`` those with these words in them."""
    folder = Path(tempfile.mkdtemp())
    try:
        order = [part.__name__ for part in PARTS]
        scenes = [words for words in SCENES if only in words]
        scenes.sort(key=lambda words: order.index(SCENES[words].__module__))
        for number, words in enumerate(scenes):
            print(f"{number + 1}/{len(scenes)} {words}", file=sys.stderr, flush=True)
            yield words, *measure(words, folder / str(number), rounds)
            shutil.rmtree(folder / str(number))
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def main() -> int:
    """Make the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.torch_scenarios")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--only", default="")
    parser.add_argument("file", nargs="?", type=Path)
    options = parser.parse_args()
    prepare()
    text = page(
        list(results(options.rounds, options.only)),
        f"PyTorch {torch.__version__.split('+')[0]}, Python {platform.python_version()}",
    )
    if options.file is None:
        print(text, end="")
    else:
        options.file.parent.mkdir(parents=True, exist_ok=True)
        options.file.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
