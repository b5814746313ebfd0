"""Run a script twice without the agent and once with it, and compare bit by bit what it did.

Compared are, after each step, the losses, the weights that are trained and the state of random number generators; and
in the end stdout, stderr, exit code and the weights once more. A step is here an update of an optimizer or a boosting
round, counted from 0. The options of run, such as --save and --every, say what the agent saves meanwhile. The script
runs three times in this folder and reads nothing from stdin. A process that it starts is compared if it is a rank of
torchrun, or of a launcher like it.

Exit code 0: the runs are equal. 1: with the agent something is different; the first difference is shown. 2: nothing
could be compared. 3: the script does not do the same twice without the agent either.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path

from smd_agent import guard
from smd_agent.cli import program as user_program
from smd_agent.cli.certificate import LABEL, as_json, certificate
from smd_agent.cli.errors import USAGE_ERROR, CommandError
from smd_agent.cli.output import emit_all, emit_json, facts, progress
from smd_agent.cli.run_folder import open_run
from smd_agent.config import env
from smd_agent.verify.running import Run
from smd_agent.verify.running import run as observe
from smd_agent.verify.verdict import Outcome, judge

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator

    from smd_agent.analysis.trial import Trial

DIFFERENT, NOT_DETERMINISTIC = 1, 3
_HANDED_ON = ("config", "save", "every", "reductions", "tensorboard")
_FLAGS = ("raw", "strict")
# Of runs without the agent: whatever the environment asks it to do.
_WITHOUT = {env.USE: None, env.HOOK: None, env.CONFIG_PATH: None}


def prepare_parser(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.usage = f"{parser.prog} [options] (script.py | -m module | -c code | command) [args ...]"
    parser.add_argument("words", metavar="script.py [args ...]", nargs=argparse.REMAINDER, help="the script")
    parser.add_argument("-m", metavar="MODULE", nargs=argparse.REMAINDER, help="a module in its place")
    parser.add_argument("-c", metavar="CODE", nargs=argparse.REMAINDER, help="a piece of code in its place")
    parser.add_argument("--steps", type=int, default=0, metavar="N", help="end the script after N steps, in all runs")
    parser.add_argument("--out", metavar="DIR", help="keep there what the agent has saved (default: it is removed)")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    ours = parser.add_argument_group("what the agent saves, as of run").add_argument
    for name in _HANDED_ON:
        ours(f"--{name}", metavar=name.upper())
    for name in _FLAGS:
        ours(f"--{name}", action="store_true")


def run(args: argparse.Namespace) -> int:
    """Print the certificate, or the first difference; the exit code says which."""
    target = _target(args)
    with tempfile.TemporaryDirectory(prefix="smd-verify-") as name:
        folder = Path(name)
        out = _out(args.out, folder)
        runs = _run_all(target, _options(args), out, args.steps, folder)
        verdict = judge(*runs)
        trial = _saved(out)
        if args.json:
            emit_json(as_json(verdict, runs, trial, args.steps))
        else:
            emit_all(facts(certificate(verdict, runs, trial, args.steps, kept=args.out), LABEL))
    if verdict.outcome is Outcome.DIFFERENT:
        return DIFFERENT
    if verdict.outcome is Outcome.NOT_DETERMINISTIC:
        return NOT_DETERMINISTIC
    return USAGE_ERROR if verdict.failures or trial is None else 0


def _target(args: argparse.Namespace) -> list[str]:
    if args.steps < 0:
        raise CommandError(f"option --steps is {args.steps}, allowed is a number from 1 up", USAGE_ERROR)
    for option in ("m", "c"):
        words: list[str] | None = getattr(args, option)
        if words:
            return [f"-{option}", *words]
    target: list[str] = args.words[1:] if args.words[:1] == ["--"] else args.words
    if not target:
        raise CommandError("name a script, -m module, -c code or a command to verify", USAGE_ERROR)
    return target


def _options(args: argparse.Namespace) -> list[str]:
    values = [f"--{name}={value}" for name in _HANDED_ON if (value := getattr(args, name)) is not None]
    return values + [f"--{name}" for name in _FLAGS if getattr(args, name)]


def _out(given: str | None, folder: Path) -> Path:
    if given is None:
        return folder / "run"
    path = Path(given).expanduser().absolute()
    if path.exists():
        raise CommandError(f"{path} is there already: name another folder, or remove it", USAGE_ERROR)
    return path


def _run_all(target: list[str], options: list[str], out: Path, steps: int, folder: Path) -> tuple[Run, Run, Run]:
    program, words = user_program.resolve(target)
    if program == sys.executable and (sys.flags.no_site or sys.flags.ignore_environment):
        raise CommandError("a script cannot be observed under python -S, -E or -I", USAGE_ERROR)
    if not env.use_smdebug():
        raise CommandError(f"{env.USE} switches the agent off: there is nothing to verify", USAGE_ERROR)
    launcher = [sys.orig_argv[0], *user_program.interpreter_options(), "-m", "smd_agent", "run", *options]
    _try(launcher, folder / "tried")
    user_program.prepend_pythonpath(user_program.door())
    runs = []
    with progress("run {} of {}") as tell:

        def observed(number: int, program: str, words: list[str]) -> None:
            place = folder / str(number)
            try:
                runs.append(observe(program, words, place, steps, lambda: tell(number, 3)))
            except OSError as error:
                raise CommandError(
                    f"cannot execute {program}: {error.strerror}", user_program.CANNOT_EXECUTE
                ) from error

        # Where the training service has put a hook file, nothing else keeps the agent from following it.
        off = {env.USE: "0"} if os.path.isfile(env.DEFAULT_CONFIG_PATH) else {}
        with _variables({**_WITHOUT, **off}):
            for number in (1, 2):
                observed(number, program, words)
        observed(3, sys.executable, [*launcher, f"--out={out}", "--", *target])
    return runs[0], runs[1], runs[2]


@contextmanager
def _variables(values: dict[str, str | None]) -> Iterator[None]:
    """Variables of the environment for as long as children are started; None unsets one."""
    before = {name: env.get(name) for name in values}
    for name, value in values.items():
        env.put(name, value)
    try:
        yield
    finally:
        for name, value in before.items():
            env.put(name, value)


def _try(launcher: list[str], out: Path) -> None:
    """Have the launcher look at the options, before a long training has run twice."""
    tried = subprocess.run([*launcher, f"--out={out}", "-c", ""], capture_output=True, text=True, check=False)
    if tried.returncode:
        lines = tried.stderr.strip().splitlines() or ["the agent cannot be started"]
        raise CommandError(lines[-1].removeprefix(guard.PREFIX), tried.returncode)


def _saved(out: Path) -> Trial | None:
    """The run of the agent's; None where it has saved nothing."""
    try:
        trial = open_run(str(out))
    except CommandError:
        return None
    return trial if trial.tensor_names() else None
