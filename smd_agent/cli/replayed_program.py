"""Program of a run that ``replay`` starts once more: in a process of its own, up to the end of one step."""

from __future__ import annotations

import dataclasses
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from smd_agent import guard
from smd_agent.cli import launched_program
from smd_agent.cli.errors import USAGE_ERROR, CommandError
from smd_agent.cli.output import progress
from smd_agent.config import env
from smd_agent.formats.replays import Order, Replayed, replayed_of, text_of
from smd_agent.printable import shortened
from smd_agent.regular_file import read_text

_LOOKS = 0.2
_LONGEST = 2000
# The program is started by the agent whatever the environment asks it to do.
_OWN: dict[str, str | None] = {env.USE: None, env.HOOK: None, env.CONFIG_PATH: None, env.OBSERVER: None}
# Each step has its numbers where they are compared, however short it is.
_WHOLE_TIME = "--budget=100"


def free_folder(run: str, asked: str | None) -> Path:
    """The folder for what is saved: the one that is asked for, or one beside the run.

    Raises:
        CommandError: what is asked for is there already.
    """
    path = Path(asked or f"{Path(run).absolute()}-replay").expanduser().absolute()
    if asked and path.exists():
        raise CommandError(f"{path} is there already: name another folder, or remove it", USAGE_ERROR)
    number, free = 1, path
    while free.exists():
        number += 1
        free = path.with_name(f"{path.name}-{number}")
    return free


def words_of(asked: list[str], noted: list[str]) -> list[str]:
    """The program and its arguments: those that are asked for, else those that a run has noted.

    Raises:
        CommandError: there is none, or it is code that stands in a file of the run, which is not run.
    """
    if asked or (noted and noted[0] != "-" and not noted[0].startswith("-c")):
        return asked or noted
    raise CommandError("the run names no program in a file: name it behind --", USAGE_ERROR)


def run_program(words: list[str], order: Order, folder: str, out: Path) -> tuple[Replayed, str]:
    """Run a program up to the end of the step; return what has come of it, and the last lines that it has said.

    Args:
        words: the program and its arguments.
        order: for it, without the file of the result.
        folder: the current one of the program; the one of this process if that is not there.
        out: the folder of the run that it makes.
    """
    launcher = [sys.executable, *launched_program.interpreter_options(), "-m", "smd_agent", "run"]
    every = [f"--every={max(order.at, 1)}", *(() if order.bundle else (_WHOLE_TIME,))]
    options = ["--save=all", *every, "--raw", "--no-bundles", f"--out={out}", "--"]
    with (
        tempfile.TemporaryDirectory(prefix="smd-replay-") as place,
        tempfile.TemporaryFile() as said,
        progress("{} s, until the step is made") as tell,
    ):
        result = Path(place) / "result.json"
        text = text_of(dataclasses.replace(order, result=str(result)))
        variables = env.for_child({**_OWN, env.REPLAY: text, env.VERDICT_SECONDS: "0"})
        current = folder if os.path.isdir(folder) else None
        process = subprocess.Popen(
            [*launcher, *options, *words],
            stdin=subprocess.DEVNULL,
            stdout=said,
            stderr=said,
            env=variables,
            cwd=current,
        )
        began = time.monotonic()
        while process.poll() is None:
            time.sleep(_LOOKS)
            tell(int(time.monotonic() - began), 0)
        said.seek(max(said.seek(0, os.SEEK_END) - _LONGEST, 0))
        replayed = replayed_of(read_text(result)) if result.exists() else Replayed()
        return replayed, said.read().decode(errors="replace")


def last_line(ended: str) -> str:
    """The last line that a program has said, or the agent in it, as the end of a sentence; empty without one."""
    lines = [line for line in ended.splitlines() if line.strip()]
    own = [line.removeprefix(guard.PREFIX) for line in lines if line.startswith(guard.PREFIX)]
    return f"; the program's last line: {shortened((lines or own)[-1], 300)}" if lines else ""
