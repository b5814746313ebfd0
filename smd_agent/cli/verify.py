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
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import smd_agent
from smd_agent import guard
from smd_agent.analysis.trial import Trial
from smd_agent.cli import launched_program
from smd_agent.cli.errors import USAGE_ERROR, CommandError
from smd_agent.cli.open_run import open_run
from smd_agent.cli.output import emit_all, emit_json, facts, progress
from smd_agent.config import env
from smd_agent.printable import count_of, shortened
from smd_agent.verify.first_difference import Difference
from smd_agent.verify.printed_lines import Printed
from smd_agent.verify.verdict import Outcome, Run, Verdict, judge
from smd_agent.verify.verdict import run as observe

Runs = tuple[Run, Run, Run]

LABEL = 11
_LONGEST = 160
_LISTED = 3


def certificate(
    verdict: Verdict, runs: Runs, trial: Trial | None, steps: int, kept: str | None
) -> Iterator[tuple[str, str]]:
    """Yield labels and texts.

    Args:
        verdict: on the runs.
        runs: two without the agent, one with it.
        trial: what the agent has saved; None for nothing.
        steps: after which the script was ended; 0 for none.
        kept: folder in which that stays.
    """
    yield "Verdict", _verdict(verdict, trial)
    for failure in verdict.failures[:_LISTED]:
        yield "Failure", shortened(failure, _LONGEST)
    if verdict.difference is not None:
        yield from _difference(verdict, verdict.difference)
    yield from _compared(verdict, steps)
    yield "Stdout", _printed(verdict.stdout)
    yield "Stderr", _printed(verdict.stderr)
    yield "Exit code", verdict.code
    yield "Saved", _saved(trial, runs[2], kept)
    one, other, agent = (f"{run.seconds:.1f} s" for run in runs)
    yield "Time", f"{one} and {other} without the agent, {agent} with it; all of them observed"
    yield "Versions", ", ".join(f"{name} {version}" for name, version in _versions(verdict))


def _verdict(verdict: Verdict, trial: Trial | None) -> str:
    if verdict.outcome is Outcome.DIFFERENT:
        return f"different: with the agent the script does something else{_from(verdict.difference)}"
    if verdict.outcome is Outcome.NOT_DETERMINISTIC:
        return f"your script is not deterministic by itself{_from(verdict.difference)}"
    if verdict.failures:
        return "not verified: observing the runs has failed"
    if trial is None:
        return "nothing to verify: the agent has saved nothing, and the script is as it was"
    if not verdict.compared.steps:
        return "equal in what it printed and how it ended; no step was seen that could be compared"
    return "equal: with the agent the script does the same, bit for bit"


def _from(found: Difference | None) -> str:
    return "" if found is None or found.step is None else f", from step {found.step}"


def _difference(verdict: Verdict, found: Difference) -> Iterator[tuple[str, str]]:
    where = " at the end of the program" if found.at_end else "" if found.step is None else f" at step {found.step}"
    yield "First", f"{found.what}{where}{f', {found.process}' if found.process else ''}"
    labels = ("Without", "With") if verdict.outcome is Outcome.DIFFERENT else ("One run", "The other")
    yield from zip(labels, (found.here, found.there), strict=True)
    if found.step:
        yield (
            "Before",
            f"steps 0 to {found.step - 1} are the same with the agent and without"
            if found.step > 1
            else ("step 0 is the same with the agent and without"),
        )


def _compared(verdict: Verdict, steps: int) -> Iterator[tuple[str, str]]:
    compared = verdict.compared
    if len(verdict.processes) > 1 or verdict.unobserved:
        names = ", ".join(name.replace("-", " ") for name in verdict.processes) or "none"
        others = f"; not compared: {count_of(verdict.unobserved, 'other process')}" if verdict.unobserved else ""
        yield "Processes", names + others.replace("processs", "processes")
    if not compared.steps:
        return
    ended = (
        f", after which the script was ended in each run (--steps {steps})" if steps and steps <= compared.steps else ""
    )
    yield "Steps", f"{compared.steps}{ended}"
    yield "Losses", f"{count_of(compared.losses, 'value')}: the same"
    yield "Weights", f"{count_of(compared.weights, 'tensor')} after the steps and at the end: the same"
    if compared.buffers:
        yield "Buffers", f"{count_of(compared.buffers, 'tensor')} after the steps and at the end: the same"
    yield "Random", "; ".join(_random(compared.random)) or "no generator could be looked at"


def _random(generators: dict[str, bool]) -> Iterator[str]:
    seeded = ", ".join(sorted(name for name, strictly in generators.items() if strictly))
    others = ", ".join(sorted(name for name, strictly in generators.items() if not strictly))
    if seeded:
        yield f"{seeded}: the same"
    if others:
        yield f"{others}: not seeded by the script, as many numbers were drawn"


def _printed(printed: Printed) -> str:
    text = count_of(printed.lines, "line")
    if printed.difference is not None:
        text += f": {printed.difference.what} is different"
    elif not printed.counted:
        text += ": not compared, there is another number of them in each run"
    elif printed.lines:
        text += ": the same"
    if printed.counted and printed.varying:
        listed = ", ".join(map(str, printed.varying[:_LISTED])) + (", ..." if printed.varying[_LISTED:] else "")
        lines = "line" if len(printed.varying) == 1 else "lines"
        text += f", but for what is another in each run without the agent too ({lines} {listed})"
    if printed.ours:
        text += f"; {count_of(printed.ours, 'line')} of the agent's own left out"
    return text


def _saved(trial: Trial | None, agent: Run, kept: str | None) -> str:
    if trial is None:
        said = [line for line in agent.stderr.decode(errors="replace").splitlines() if line.startswith("smd_agent: ")]
        return f"nothing{': ' + shortened(said[-1], _LONGEST) if said else ''}"
    text = f"{count_of(len(trial.tensor_names()), 'tensor')} at {count_of(len(trial.steps()), 'step')}"
    return f"{text}, in {kept}" if kept else text


def _versions(verdict: Verdict) -> Iterator[tuple[str, str]]:
    from smd_agent.patches.declared import declared

    yield "Python", ".".join(map(str, sys.version_info[:3]))
    frameworks = declared()
    for name, version in verdict.versions.items():
        yield frameworks[name].title, version
    yield "smd_agent", smd_agent.__version__


def as_json(verdict: Verdict, runs: Runs, trial: Trial | None, steps: int) -> dict[str, Any]:
    """Return the same for programs."""
    found = verdict.difference
    first: dict[str, Any] | None = None
    if found is not None:
        first = {"what": found.what, "step": found.step, "at_end": found.at_end, "process": found.process or "main"}
        first |= {"values": [found.here, found.there]}
    return {
        "verdict": verdict.outcome.value,
        "first_difference": first,
        "failures": verdict.failures,
        "steps": verdict.compared.steps,
        "ended_after": steps or None,
        "losses": verdict.compared.losses,
        "weights": verdict.compared.weights,
        "buffers": verdict.compared.buffers,
        "random": {name: "the same" if strictly else "as many" for name, strictly in verdict.compared.random.items()},
        "stdout": _printed_as_json(verdict.stdout),
        "stderr": _printed_as_json(verdict.stderr),
        "exit_codes": [run.code for run in runs],
        "processes": verdict.processes,
        "processes_not_compared": verdict.unobserved,
        "saved": None if trial is None else {"tensors": len(trial.tensor_names()), "steps": len(trial.steps())},
        "seconds": [round(run.seconds, 3) for run in runs],
        "versions": dict(_versions(verdict)),
    }


def _printed_as_json(printed: Printed) -> dict[str, Any]:
    found, own = printed.difference, printed.own
    return {
        "lines": printed.lines,
        "left_out": printed.ours,
        "lines_that_vary": len(printed.varying),
        "first_that_varies": own and {"what": own.what, "values": [own.here, own.there]},
        "difference": None if found is None else {"what": found.what, "values": [found.here, found.there]},
    }


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
        trial = _trial_in(out)
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
    program, words = launched_program.resolve(target)
    if program == sys.executable and (sys.flags.no_site or sys.flags.ignore_environment):
        raise CommandError("a script cannot be observed under python -S, -E or -I", USAGE_ERROR)
    if not env.use_smdebug():
        raise CommandError(f"{env.USE} switches the agent off: there is nothing to verify", USAGE_ERROR)
    launcher = [sys.orig_argv[0], *launched_program.interpreter_options(), "-m", "smd_agent", "run", *options]
    _try(launcher, folder / "tried")
    launched_program.prepend_pythonpath(launched_program.door())
    runs = []
    with progress("run {} of {}") as tell:

        def observed(number: int, program: str, words: list[str]) -> None:
            place = folder / str(number)
            try:
                runs.append(observe(program, words, place, steps, lambda: tell(number, 3)))
            except OSError as error:
                raise CommandError(
                    f"cannot execute {program}: {error.strerror}", launched_program.CANNOT_EXECUTE
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


def _trial_in(out: Path) -> Trial | None:
    """The run of the agent's; None where it has saved nothing."""
    try:
        trial = open_run(str(out))
    except CommandError:
        return None
    return trial if trial.tensor_names() else None
