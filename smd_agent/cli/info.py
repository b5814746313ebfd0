"""Tell what the agent would do here, and what is wrong: with a script, with this Python, with a run.

With a script, or anything else that can be run, and the options of run before it: what is started, how the agent gets
in, which frameworks the script imports, by a look at its text, and what is saved; the script is not run. Without one:
what the environment says. With the folder of a run: what was asked for, what came up, and what never did, with the
nearest names.

FROM says where a value comes from: the hook file and the key in it, an option, or a default.
Doors are the ways by which the agent starts in an interpreter. They are tried: an interpreter is started that does
nothing. Functions of a framework that are replaced are listed by --patches: which, when, and why.

Exit code 1 if something keeps the agent from saving what was asked for.
"""

from __future__ import annotations

import argparse
import os
import shlex
from pathlib import Path

import smd_agent
from smd_agent.cli import run as launcher
from smd_agent.cli.errors import USAGE_ERROR, CommandError
from smd_agent.cli.output import emit
from smd_agent.cli.run_folder import is_awaited, open_run
from smd_agent.cli.runs import incomplete_lines, runs_in, state_of
from smd_agent.cli.table import size_text, table
from smd_agent.config import keys
from smd_agent.framework.patching import Until
from smd_agent.printable import count_of, shortened

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from typing import Any

    from smd_agent.cli.asked import Asked, Missing
    from smd_agent.cli.libraries import Framework
    from smd_agent.cli.situation import Situation
    from smd_agent.patches.declared import Declared

_WHEN = {
    Until.PROCESS_ENDS: "always",
    Until.MODEL_IS_FOUND: "until the model is found",
    Until.STEP_CLOSES: "in saved steps",
    Until.CALL_RETURNS: "in some calls of saved steps",
}
_FUNCTIONS_SHOWN = 2
# Where they are defaults, too.
_ALWAYS_SHOWN = ("collections", "always saved", "save_interval", "reductions")
_LONGEST = 60


def prepare_parser(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    words = "a script, -m module, -c code or a command, with its arguments; or the folder of a run"
    # All words behind the first are the program's own.
    rest = argparse.REMAINDER
    parser.add_argument("what", nargs=rest, metavar="SCRIPT | RUN", help=words)
    for flag in ("-m", "-c"):
        parser.add_argument(flag, nargs=rest, default=[], help=argparse.SUPPRESS)
    parser.add_argument("--json", action="store_true", help="print all of it for programs")
    parser.add_argument("--patches", action="store_true", help="list the functions that are replaced, and why")
    for option in launcher.VALUE_OPTIONS:
        parser.add_argument(option, metavar="X", help="as of run")
    for option in launcher.FLAGS:
        parser.add_argument(option, action="store_true", help="as of run")


def run(args: argparse.Namespace) -> int:
    """Print what there is; 1 if something is wrong."""
    target = [*args.what[args.what[:1] == ["--"] :]]
    for flag in ("m", "c"):
        if getattr(args, flag):
            target = [f"-{flag}", *getattr(args, flag)]
    if target and os.path.isdir(target[0]) and not os.path.isfile(os.path.join(target[0], "__main__.py")):
        if target[1:] not in ([], ["--json"]):
            raise CommandError(f"a run has no arguments: {shortened(shlex.join(target[1:]))}", USAGE_ERROR)
        return _of_run(target[0], args.json or bool(target[1:]))
    from smd_agent.cli.situation import situation

    options = {
        name: "" if value is True else value
        for name in (*launcher.VALUE_OPTIONS, *launcher.FLAGS)
        if (value := getattr(args, name[2:])) not in (None, False)
    }
    found = situation(options, target)
    _print(_as_json(found) if args.json else _lines(found, options, target, args.patches))
    return 1 if found.problems else 0


def _print(lines: Iterable[str]) -> None:
    for line in lines:
        emit(line)


# Of a Python and a program.


def _lines(found: Situation, options: dict[str, str], target: list[str], patches: bool) -> Iterator[str]:
    yield from _verdict(found, options, target)
    yield ""
    python, made_on = found.interpreter, ", ".join(f"{one.name} {one.version or 'missing'}" for one in found.libraries)
    with_flags = f", started with {' '.join(python.flags)}" if python.flags else ""
    yield f"Python    {python.version} (supported: {python.supported}){with_flags}: {python.path}"
    kernel = "compiled" if found.kernel else "none, NumPy does the reductions and is slower"
    yield f"Agent     {smd_agent.__version__}: {os.path.dirname(os.path.abspath(smd_agent.__file__))}"
    yield f"          kernel: {kernel}; {made_on}"
    yield from _script(found)
    yield from _output(found)
    yield ""
    yield from _settings(found)
    yield ""
    yield from table(
        ("WAY IN", "STATE", "WHERE, OR WHY NOT"), [(one.name, one.state, one.detail) for one in found.doors]
    )
    yield ""
    yield from table(
        ("FRAMEWORK", "VERSION", "SUPPORTED", "FUNCTIONS REPLACED (--patches: WHICH, WHY)"),
        [_row(one, found) for one in found.relevant()],
    )
    if patches:
        for name, declared in found.patches.items():
            yield ""
            yield from _patches(name, declared)


def _verdict(found: Situation, options: dict[str, str], target: list[str]) -> Iterator[str]:
    names = ", ".join(f"{one.name} {one.version}" for one in found.frameworks if one.name in found.patches)
    if found.problems:
        yield f"{count_of(len(found.problems), 'problem')}:"
        for number, problem in enumerate(found.problems, 1):
            yield f"  {number}. {problem}"
    elif target:
        yield f"Ready: {shortened(_command(options, target))} would capture {names}."
    elif found.configuration.settings is None:
        yield "Nothing says what to capture. To capture a script:"
        yield "  python -m smd_agent script.py, or SMDEBUG_CONFIG_FILE_PATH=hook.json python script.py"
    else:
        by = "" if any(one.state == "open" for one in found.doors[:-1]) else " that the launcher starts"
        yield f"Ready: programs{by} would be captured that train with {names}."


def _command(options: dict[str, str], target: list[str]) -> str:
    words = [word for pair in options.items() for word in pair if word]
    return shlex.join(["python", "-m", "smd_agent", *words, *target])


def _script(found: Situation) -> Iterator[str]:
    if found.plan is None:
        return
    plan = found.plan
    yield f"Starts    {shortened(shlex.join([plan.program, *plan.argv[1:]]))}"
    if plan.through:
        path = f" (PYTHONPATH begins with {plan.pythonpath})" if plan.pythonpath else ""
        yield f"          the agent by {plan.through}{path}"
    if found.look is not None and found.look.imports:
        texts = (
            f"{one.framework} ({one.place}{'' if one.by == one.framework else f', by {one.by}'})"
            for one in found.look.imports
        )
        yield f"Imports   {', '.join(texts)}"


def _output(found: Situation) -> Iterator[str]:
    if found.output is None:
        return
    output = found.output
    origin = next(one.origin for one in found.configuration.values if one.name == keys.LOCAL_PATH.name)
    yield f"Output    {output.path} ({_origin(origin)})"
    free = "" if output.free is None else f"; {size_text(output.free)} free"
    yield f"          {output.holds}{free}"
    if output.goes_to != output.path:
        yield f"          the run would go to {output.goes_to}"


def _settings(found: Situation) -> Iterator[str]:
    configuration = found.configuration
    if configuration.source:
        yield f"Settings  {configuration.source}"
    values = [one for one in configuration.values if one.name != keys.LOCAL_PATH.name]
    if values:
        shown = [one for one in values if not one.is_default or one.name.startswith(_ALWAYS_SHOWN)]
        rows = [(one.name, shortened(one.value, _LONGEST), _origin(one.origin)) for one in shown]
        yield ""
        yield from table(("SETTING", "VALUE", "FROM"), rows)
        yield f"{len(values) - len(shown)} more have their defaults: --json lists them"
    yield ""
    if found.variables:
        rows = [(one.name, shortened(one.value, _LONGEST), one.meaning) for one in found.variables]
        yield from table(("VARIABLE", "VALUE", "MEANING"), rows)
    else:
        yield "No variable of the agent's is set."


def _origin(origin: str) -> str:
    file, colon, key = origin.partition(": ")
    return f"{os.path.basename(file) or file}: {key}" if colon else origin


def _row(one: Framework, found: Situation) -> tuple[str, ...]:
    if not one.version:
        return one.name, "-", one.supported, "not installed"
    declared = found.patches.get(one.name, ())
    counts = {when: sum(len(own.functions) for own in declared if own.until is when) for when in Until}
    text = ", ".join(f"{count} {_WHEN[when]}" for when, count in counts.items() if count)
    return one.name, one.version, one.supported, "; ".join(filter(None, (one.note, text)))


def _patches(name: str, declared: Sequence[Declared]) -> Iterator[str]:
    rows = []
    for one in declared:
        more = len(one.functions) - _FUNCTIONS_SHOWN
        shown = _together(one.functions[:_FUNCTIONS_SHOWN])
        rows.append((f"{shown} and {more} more" if more > 0 else shown, _WHEN[one.until], one.why))
    yield from table((f"REPLACED OF {name.upper()}", "WHEN", "WHY"), rows)


def _together(functions: Sequence[str]) -> str:
    """Name functions one after the other; what the names begin with alike stands there once."""
    first, *others = functions
    common = 0
    for one in others:
        parts = zip(first.split("."), one.split("."), strict=False)
        common = next((number for number, (here, there) in enumerate(parts) if here != there), 0)
    return ", ".join((first, *(".".join(one.split(".")[common:]) for one in others)))


def _as_json(found: Situation) -> Iterator[str]:
    configuration = found.configuration
    yield from _dumped(
        {
            "version": smd_agent.__version__,
            "problems": found.problems,
            "is_off": found.is_off,
            "interpreter": found.interpreter._asdict(),
            "kernel": found.kernel,
            "libraries": {one.name: one.version for one in found.libraries},
            "doors": [one._asdict() for one in found.doors],
            "configuration": {
                "source": configuration.source,
                "error": configuration.error,
                "warnings": configuration.warnings,
                "values": [one._asdict() for one in configuration.values],
            },
            "variables": [one._asdict() for one in found.variables],
            "output": None if found.output is None else found.output._asdict(),
            "starts": None if found.plan is None else found.plan._asdict(),
            "imports": None if found.look is None else [one._asdict() for one in found.look.imports],
            "frameworks": [one._asdict() for one in found.frameworks],
            "patches": {
                name: [{"functions": one.functions, "when": _WHEN[one.until], "why": one.why} for one in declared]
                for name, declared in found.patches.items()
            },
        }
    )


# Of a run.


def _of_run(path: str, as_json: bool) -> int:
    from smd_agent.cli.asked import asked_of

    if runs_in(Path(path)):
        raise CommandError(
            f"{path} holds several runs: name one of them (python -m smd_agent ls {path} lists them)", USAGE_ERROR
        )
    if is_awaited(path):
        raise CommandError(f"{path} holds no run, and no __main__.py that could be started", USAGE_ERROR)
    trial = open_run(path)
    found = asked_of(trial)
    state = state_of(Path(path)) or "no run"
    lacking = list(incomplete_lines(trial.root))
    _print(_run_as_json(path, state, found) if as_json else (*lacking, *_run_lines(path, state, found, bool(lacking))))
    return 1 if trial.problems else 0


def _run_lines(path: str, state: str, found: Asked, failed: bool) -> Iterator[str]:
    if found.missing:
        yield "Never came up:"
        for missing in found.missing:
            yield from _missing(missing)
    else:
        yield "All that was asked for came up, if not in every step." if failed else "All that was asked for came up."
    yield ""
    yield f"Run       {path}"
    yield f"State     {state}"
    if not found.tells:
        yield "          it does not tell which collections were asked for"
    yield ""
    rows = []
    for one in found.collections:
        steps = ", ".join(f"{mode} {text}".strip() for mode, text in one.steps.items()) or "-"
        asked = "" if one.asked is None else "yes" if one.asked else "no"
        rows.append((one.name, asked, steps, one.form, str(one.tensors)))
    yield from table(("COLLECTION", "ASKED FOR", "STEPS", "FORM", "TENSORS"), rows, right="TENSORS")
    yield ""
    if not found.steps:
        yield "No step has been saved."
        return
    saved = [(one.mode, str(one.number), str(one.first), str(one.last)) for one in found.steps]
    yield from table(("MODE", "SAVED", "FIRST", "LAST"), saved, right="SAVED FIRST LAST")


def _missing(one: Missing) -> Iterator[str]:
    if one.what == "include_regex":
        yield f"  {shortened(one.name)}: include_regex {shortened(one.asked, _LONGEST)}: {one.why}"
    elif one.what == "steps":
        yield f"  {one.name}: steps {one.asked}: {one.why}"
    else:
        yield f"  {shortened(one.name)}: {one.why}"
    if one.nearest:
        yield f"    nearest: {', '.join(map(shortened, one.nearest))}"


def _run_as_json(path: str, state: str, found: Asked) -> Iterator[str]:
    yield from _dumped(
        {
            "run": path,
            "state": state,
            "tensors": found.tensors,
            "collections": [one._asdict() for one in found.collections],
            "steps": [one._asdict() for one in found.steps],
            "never_came_up": [one._asdict() for one in found.missing],
        }
    )


def _dumped(content: dict[str, Any]) -> list[str]:
    import json

    return json.dumps(content, indent=2).splitlines()
