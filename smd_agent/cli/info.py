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
from collections.abc import Iterator, Sequence
from itertools import takewhile
from pathlib import Path

import smd_agent
from smd_agent.cli import run as launcher
from smd_agent.cli.entry_points import Framework
from smd_agent.cli.errors import USAGE_ERROR, CommandError
from smd_agent.cli.output import emit_all, emit_json, facts, table
from smd_agent.cli.request_report import Missing, RequestReport, request_report
from smd_agent.cli.run_folders import incomplete_lines, runs_in, state_of
from smd_agent.cli.situation import WHEN, Replaced, Situation, situation
from smd_agent.config import keys
from smd_agent.printable import count_of, shortened, size_text

_FUNCTIONS_SHOWN = 2
# Where they are defaults, too.
_ALWAYS_SHOWN = ("collections", "always saved", "save_interval", "reductions")
_LABEL = 10
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
    options = {
        name: "" if value is True else value
        for name in (*launcher.VALUE_OPTIONS, *launcher.FLAGS)
        if (value := getattr(args, name[2:].replace("-", "_"))) not in (None, False)
    }
    found = situation(options, target)
    if args.json:
        emit_json(found)
    else:
        emit_all(_verdict(found, options, target))
        emit_all(_lines(found, args.patches))
    return 1 if found.problems else 0


# Of a Python and a program.


def _verdict(found: Situation, options: dict[str, str], target: list[str]) -> Iterator[str]:
    names = ", ".join(f"{one.name} {one.version}" for one in found.frameworks if one.name in found.patches)
    if found.problems:
        yield f"{count_of(len(found.problems), 'problem')}:"
        for number, problem in enumerate(found.problems, 1):
            yield f"  {number}. {problem}"
    elif target:
        words = [word for pair in options.items() for word in pair if word]
        command = shlex.join(["python", "-m", "smd_agent", *words, *target])
        yield f"Ready: {shortened(command)} would capture {names}."
    elif not found.configuration.values:
        yield "Nothing says what to capture. To capture a script:"
        yield "  python -m smd_agent script.py, or SMDEBUG_CONFIG_FILE_PATH=hook.json python script.py"
    else:
        by = "" if any(one.state == "open" for one in found.doors[:-1]) else " that the launcher starts"
        yield f"Ready: programs{by} would be captured that train with {names}."


def _lines(found: Situation, patches: bool) -> Iterator[str]:
    yield ""
    yield from facts(_facts(found), _LABEL)
    yield ""
    yield from _settings(found)
    yield ""
    if found.variables:
        rows = [(one["name"], shortened(one["value"], _LONGEST), one["meaning"]) for one in found.variables]
        yield from table(("VARIABLE", "VALUE", "MEANING"), rows)
    else:
        yield "No variable of the agent's is set."
    yield ""
    yield from table(
        ("WAY IN", "STATE", "WHERE, OR WHY NOT"), [(one.name, one.state, one.detail) for one in found.doors]
    )
    yield ""
    yield from table(
        ("FRAMEWORK", "VERSION", "SUPPORTED", "FUNCTIONS REPLACED (--patches: WHICH, WHY)"),
        [_row(one, found.patches.get(one.name, ())) for one in found.relevant()],
    )
    for name, replaced in found.patches.items() if patches else ():
        yield ""
        shown = [(_together(one.functions), one.when, one.why) for one in replaced]
        yield from table((f"REPLACED OF {name.upper()}", "WHEN", "WHY"), shown)


def _facts(found: Situation) -> Iterator[tuple[str, str]]:
    python, start, output = found.interpreter, found.starts, found.output
    with_flags = f", started with {' '.join(python.flags)}" if python.flags else ""
    yield "Python", f"{python.version} (supported: {python.supported}){with_flags}: {python.path}"
    yield "Agent", f"{found.version}: {os.path.dirname(os.path.abspath(smd_agent.__file__))}"
    kernel = "compiled" if found.kernel else "none, NumPy does the reductions and is slower"
    made_on = ", ".join(f"{name} {version or 'missing'}" for name, version in found.libraries.items())
    yield "", f"kernel: {kernel}; {made_on}"
    if start is not None:
        yield "Starts", shortened(shlex.join([start.program, *start.argv[1:]]))
        if start.through:
            path = f" (PYTHONPATH begins with {start.pythonpath})" if start.pythonpath else ""
            yield "", f"the agent by {start.through}{path}"
    if found.imports:
        by = ((one, "" if one.by == one.framework else f", by {one.by}") for one in found.imports)
        yield "Imports", ", ".join(f"{one.framework} ({one.place}{brought})" for one, brought in by)
    if output is not None:
        origin = next(one.origin for one in found.configuration.values if one.name == keys.LOCAL_PATH.name)
        yield "Output", f"{output.path} ({_origin(origin)})"
        yield "", output.holds + ("" if output.free is None else f"; {size_text(output.free)} free")
        if output.goes_to != output.path:
            yield "", f"the run would go to {output.goes_to}"


def _settings(found: Situation) -> Iterator[str]:
    if found.configuration.source:
        yield f"{'Settings':<{_LABEL}}{found.configuration.source}"
    values = [one for one in found.configuration.values if one.name != keys.LOCAL_PATH.name]
    if values:
        shown = [one for one in values if one.origin != "default" or one.name.startswith(_ALWAYS_SHOWN)]
        rows = [(one.name, shortened(one.value, _LONGEST), _origin(one.origin)) for one in shown]
        yield ""
        yield from table(("SETTING", "VALUE", "FROM"), rows)
        yield f"{len(values) - len(shown)} more have their defaults: --json lists them"


def _origin(origin: str) -> str:
    file, colon, key = origin.partition(": ")
    return f"{os.path.basename(file) or file}: {key}" if colon else origin


def _row(one: Framework, replaced: Sequence[Replaced]) -> tuple[str, ...]:
    if not one.version:
        return one.name, "-", one.supported, "not installed"
    counts = {when: sum(len(own.functions) for own in replaced if own.when == when) for when in WHEN.values()}
    text = ", ".join(f"{count} {when}" for when, count in counts.items() if count)
    return one.name, one.version, one.supported, "; ".join(filter(None, (one.note, text)))


def _together(functions: Sequence[str]) -> str:
    """Name the first functions, and count the others; what the names begin with alike stands there once."""
    first, *others = functions[:_FUNCTIONS_SHOWN]
    more = len(functions) - _FUNCTIONS_SHOWN
    alike = takewhile(
        lambda parts: len({*parts}) == 1, zip(*(one.split(".") for one in (first, *others)), strict=False)
    )
    common = len([*alike])
    shown = ", ".join((first, *(".".join(one.split(".")[common:]) for one in others)))
    return f"{shown} and {more} more" if more > 0 else shown


# Of a run.


def _of_run(path: str, as_json: bool) -> int:
    # It takes NumPy, without which the rest can be told.
    from smd_agent.cli.open_run import is_awaited, open_run

    if runs_in(Path(path)):
        raise CommandError(
            f"{path} holds several runs: name one of them (python -m smd_agent ls {path} lists them)", USAGE_ERROR
        )
    if is_awaited(path):
        raise CommandError(f"{path} holds no run, and no __main__.py that could be started", USAGE_ERROR)
    trial = open_run(path)
    found = request_report(trial, path, state_of(Path(path)) or "no run")
    if as_json:
        emit_json(found)
    else:
        lacking = list(incomplete_lines(trial.root))
        emit_all(lacking)
        emit_all(_run_lines(found, bool(lacking), trial.collection_manager.asked_for is not None))
    return 1 if trial.problems else 0


def _run_lines(found: RequestReport, failed: bool, tells: bool) -> Iterator[str]:
    if found.never_came_up:
        yield "Never came up:"
        for missing in found.never_came_up:
            yield from _missing(missing)
    else:
        yield "All that was asked for came up, if not in every step." if failed else "All that was asked for came up."
    yield ""
    unknown = [] if tells else [("", "it does not tell which collections were asked for")]
    yield from facts([("Run", found.run), ("State", found.state), *unknown], _LABEL)
    yield ""
    rows = []
    for one in found.collections:
        steps = ", ".join(f"{mode} {text}".strip() for mode, text in one.steps.items()) or "-"
        asked = "" if one.asked is None else "yes" if one.asked else "no"
        rows.append((one.name, asked, steps, one.form, str(one.tensors)))
    yield from table(("COLLECTION", "ASKED FOR", "STEPS", "FORM", "TENSORS"), rows, right="TENSORS")
    yield ""
    if found.steps:
        saved = [(one.mode, str(one.number), str(one.first), str(one.last)) for one in found.steps]
        yield from table(("MODE", "SAVED", "FIRST", "LAST"), saved, right="SAVED FIRST LAST")
    else:
        yield "No step has been saved."


def _missing(one: Missing) -> Iterator[str]:
    what = {"include_regex": f"include_regex {shortened(one.asked, _LONGEST)}: ", "steps": f"steps {one.asked}: "}
    yield f"  {shortened(one.name)}: {what.get(one.what, '')}{one.why}"
    if one.nearest:
        yield f"    nearest: {', '.join(map(shortened, one.nearest))}"
