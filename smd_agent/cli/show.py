"""Show how tensors go over the steps: what is unusual first, a line for each tensor, and its values.

TENSORS is a part of a name, a regular expression, or the name of a collection; capital and small letters are told
apart only where that leaves something. Without it all tensors are meant. The numbers that the run has of every step are
shown where they are asked for, as "series" or "series/loss".

The first lines say which tensors have NaN or Inf, are the same at all steps, have grown 50 times or shrunk 1000
times, or have nine zeros in ten elements, and which loss rises. Of a tensor of one element FIRST, LAST and TREND are
its value; of a larger one they are its norm l2, the root of the sum of squares. A cross in TREND is NaN or Inf. NAN
and INF are numbers of elements at the last step that has any, ZERO is the share of zeros at the last step. Where a
layer has such channels, DEAD is the share of those of its output that are 0 throughout the batch, and SAT of those that
are held at an end of sigmoid or tanh.

Values follow where they are few, or asked for. Summaries are those the run stored; where it stored the whole tensor
they are computed from it. Text stands in their place as it is, and "-" for what cannot be known. std is that of the
population.
"""

from __future__ import annotations

import argparse
import difflib
import re
from collections.abc import Collection, Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from smd_agent import guard
from smd_agent.analysis.series_source import COLLECTION, SeriesSource
from smd_agent.analysis.statistics import Measured, measure
from smd_agent.analysis.steps import Contents
from smd_agent.analysis.trial import Trial
from smd_agent.analysis.unusual_tensors import Effort, Overview, look_at
from smd_agent.cli.courses import MOST_LINES, course_lines, finding_lines
from smd_agent.cli.errors import USAGE_ERROR, CommandError
from smd_agent.cli.open_run import open_run
from smd_agent.cli.output import WIDTH, emit, emit_all, few_text, share_text
from smd_agent.cli.run_folders import incomplete_lines
from smd_agent.core.modes import ModeKeys
from smd_agent.core.patterns import UnfitPattern, name_pattern
from smd_agent.formats.event_decoder import Form, SavedTensor
from smd_agent.formats.series import PREFIX
from smd_agent.framework.training_facts import USAGE
from smd_agent.printable import LONGEST_NAME, number_text, shape_text, shortened
from smd_agent.storage.index_files import StepIndex

Source = Trial | SeriesSource
MODES = ("train", "eval", "predict", "global")
ORDERS = ("unusual", "name")
NAMES_TO_SUGGEST = 3
STEPS_TO_SUGGEST = 8
# So many rows are printed without being asked for, and of one tensor so many of the last ones where there are more.
MOST_ROWS = 30
LAST_ROWS = 10
# Numbers, and bytes, that are read to see how tensors go over the steps: a few seconds.
_NUMBERS = 500_000
_BYTES = 2_000_000_000


def prepare_parser(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument("run", metavar="RUN", help="folder of the run")
    parser.add_argument("tensors", metavar="TENSORS", nargs="?", default="", help="part of a name, or a collection")
    parser.add_argument("--mode", choices=MODES, type=str.lower, help="only steps of this mode")
    steps = "only this step or these steps, as --mode counts them (default: over all); FIRST-, -LAST and FIRST-LAST"
    parser.add_argument("--step", type=_step_range, metavar="N", help=steps)
    parser.add_argument("--last", type=_positive, metavar="N", help="only the last N steps")
    parser.add_argument("--worker", metavar="NAME", help="only what this worker saved")
    parser.add_argument("--sort", choices=ORDERS, default="unusual", help="order of the tensors (default: unusual)")
    parser.add_argument("--all", action="store_true", help="a line for every tensor")
    parser.add_argument("--rows", action="store_true", help="a row for every step, however many they are")
    parser.add_argument("--raw", action="store_true", help="print the values too (large tensors shortened)")


def run(args: argparse.Namespace) -> int:
    """Print what is unusual, lines and rows; 1 if nothing matches or a record is damaged."""
    trial = open_run(args.run)
    mode = ModeKeys[(args.mode or "global").upper()]
    source = _source(trial, args.tensors)
    names = _matching(trial, source, args.tensors)
    if args.worker is not None and args.worker not in trial.workers():
        raise CommandError(f"no worker {args.worker} wrote to {args.run}, only {', '.join(trial.workers())}")
    saved = _steps_of(source, names, mode)
    every = sorted(set().union(*saved.values()))
    first, last = args.step or (0, None)
    steps = [step for step in every if step >= first and (last is None or step <= last)]
    steps = steps[-args.last :] if args.last else steps
    if not steps:
        raise CommandError(_no_steps(names, every, source, mode, first))
    said: set[str] = set()
    emit_all(incomplete_lines(trial.root))
    if len(steps) > 1:
        overview = _overview(source, names, mode, steps, args)
        # Text has no course.
        names = list(dict.fromkeys((*(course.name for course in overview.courses), *names)))
        said.update(overview.problems)
    chosen = {name: [step for step in steps if step in saved[name]] for name in names}
    chosen = {name: own for name, own in chosen.items() if own}
    rows = _rows_to_show(chosen, args)
    if rows and len(steps) > 1:
        emit()
    if rows:
        shown_steps = sorted(set().union(*rows.values()))
        report = Rows(source, mode, rows, shown_steps, args.worker, args.raw, said)
        for name, own in rows.items():
            report.show(name, own)
    return 1 if said or trial.problems else 0


def _overview(
    source: Source, names: Sequence[str], mode: ModeKeys, steps: Sequence[int], args: argparse.Namespace
) -> Overview:
    """Print findings and a line for each tensor; the courses come back in the order of the lines."""
    effort = Effort(_NUMBERS, _BYTES)
    overview = look_at(source, names, source.collections(), mode, steps, effort, args.worker)
    by_name = args.sort == "name"
    overview.courses.sort(key=lambda one: (() if by_name else one.unusual, _natural(one.name), one.mode.value))
    lines = list(finding_lines(overview))
    if overview.courses:
        most = len(overview.courses) if args.all else MOST_LINES
        several = len({course.mode for course in overview.courses}) > 1
        lines += ([""] if lines else []) + list(course_lines(overview.courses, several, most))
    emit_all(lines)
    for problem in overview.problems:
        guard.say(problem)
    return overview


def _natural(name: str) -> list[tuple[int, str]]:
    """Order block 10 after block 9."""
    parts = re.split(r"([0-9]{1,18})", name)
    return [(int(part), "") if number % 2 else (0, part) for number, part in enumerate(parts)]


def _rows_to_show(chosen: dict[str, list[int]], args: argparse.Namespace) -> dict[str, list[int]]:
    count = sum(map(len, chosen.values()))
    single = len(set().union(*map(set, chosen.values()))) == 1
    if args.rows or args.raw or single or count <= MOST_ROWS:
        return chosen
    return {name: steps[-LAST_ROWS:] for name, steps in chosen.items()} if len(chosen) == 1 else {}


def _source(trial: Trial, wanted: str) -> Source:
    """Tell what the tensors are looked for in: the run, or its series, which says so by a word of its own."""
    is_of_series = wanted.lower() == COLLECTION or wanted.lower().lstrip("^").startswith(PREFIX)
    return trial.series_source if is_of_series and trial.series() else trial


def _matching(trial: Trial, source: Source, wanted: str) -> list[str]:
    names = source.tensor_names()
    members = next((one for name, one in source.collections().items() if name.lower() == wanted.lower()), None)
    try:
        pattern = name_pattern(wanted)
        found = [name for name in names if pattern.found_in(name) or (members and members.matches(name))]
        if not _without_usage(found, wanted):
            with suppress(UnfitPattern):
                pattern = name_pattern(f"(?i:{wanted})")
                found = [name for name in names if pattern.found_in(name)] or found
        found = _without_usage(found, wanted) or found
    except UnfitPattern as error:
        raise CommandError(str(error), USAGE_ERROR) from error
    if not found:
        nearest = _nearest(wanted, names)
        hint = f"the nearest are {', '.join(map(shortened, nearest))}" if nearest else "no tensor was saved"
        raise CommandError(f"no tensor of {trial.path} matches {shortened(repr(wanted))}: {hint}")
    return found


def _without_usage(names: Sequence[str], wanted: str) -> list[str]:
    """Leave out how things are used: "loss" rather means CrossEntropyLoss than what such a loss was given."""
    if not wanted or USAGE.startswith(wanted.lower()) or wanted.lower().startswith(USAGE):
        return list(names)
    return [name for name in names if not name.startswith(USAGE)]


def _steps_of(source: Source, names: Sequence[str], mode: ModeKeys) -> dict[str, set[int]]:
    """Return the steps at which each tensor was saved, as the mode counts them."""
    if isinstance(source, SeriesSource):
        return {name: {*source.step_table.steps_of(name, mode)} for name in names}
    by_contents: dict[Contents, set[int]] = {}
    for step in source.step_table.steps(mode, incomplete=True):
        for file in source.step_table.files(step, mode).values():
            by_contents.setdefault(source.contents(file), set()).add(step)
    saved: dict[str, set[int]] = {name: set() for name in names}
    for contents, steps in by_contents.items():
        for name in contents.names & saved.keys():
            saved[name] = saved[name] | steps if saved[name] else steps
    return saved


def _nearest(regex: str, names: Sequence[str]) -> list[str]:
    plain = re.sub(r"[^\w/. ]|\.\*", "", regex[:LONGEST_NAME]).lower()
    by_case = {name[:LONGEST_NAME].lower(): name for name in names}
    return [by_case[name] for name in difflib.get_close_matches(plain, by_case, NAMES_TO_SUGGEST, cutoff=0)]


def _no_steps(names: Sequence[str], saved: Sequence[int], source: Source, mode: ModeKeys, step: int) -> str:
    what = shortened(names[0]) if len(names) == 1 else f"none of the {len(names)} tensors"
    verb = "was not saved" if len(names) == 1 else "was saved"
    if saved:
        steps = ", ".join(map(str, saved[:STEPS_TO_SUGGEST])) + (", ..." if len(saved) > STEPS_TO_SUGGEST else "")
        return f"{what} {verb} at step {step} of mode {mode.name}; saved steps are {steps}"
    modes = ", ".join(mode.name for mode in source.step_table.modes()) or "GLOBAL"
    return f"{what} {verb} in mode {mode.name}; the run has steps of {modes}"


def _step_range(text: str) -> tuple[int, int | None]:
    """Read N, FIRST-, -LAST or FIRST-LAST."""
    match = re.fullmatch(r"(\d*)(-?)(\d*)", text, re.ASCII)
    if match is None or not (match[1] or match[3]):
        raise CommandError(f"--step {shortened(text)} is neither a step nor FIRST-, -LAST or FIRST-LAST", USAGE_ERROR)
    first = int(match[1] or 0)
    return (first, int(match[3]) if match[3] else None) if match[2] else (first, first)


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise CommandError(f"--last {shortened(text)} is no number of steps", USAGE_ERROR)
    return int(text)


_SUMMARIES = ("min", "max", "mean", "std", "l2")
_SHARES = {"DEAD": "dead_share", "SAT": "saturated_share"}
_NUMBER = 8
# What is left out first where a line would be too long.
_LESS_NEEDED = ("STD", "MEAN")


class Rows:
    """Prints rows, each as soon as it is known.

    Args:
        trial: the run, or its series.
        mode: how steps are counted.
        names: of the tensors that will be shown.
        steps: all that will be shown.
        worker: only what this worker saved.
        raw: print the values too.
        said: what could not be read, and has been said; what else cannot is added.
    """

    def __init__(
        self,
        trial: Source,
        mode: ModeKeys,
        names: Collection[str],
        steps: Sequence[int],
        worker: str | None,
        raw: bool,
        said: set[str],
    ) -> None:
        self._said = said
        self._trial = trial
        self._mode = mode
        self._worker = worker
        self._raw = raw
        self._columns = self._widths(names, [file for step in steps for file in self._files(step)])
        emit(self._line({name: name for name in self._columns}))

    def _widths(self, names: Collection[str], files: Sequence[StepIndex]) -> dict[str, int]:
        modes = {file.index.mode.name for file in files}
        columns = {"MODE": max(map(len, (*modes, "MODE")))}
        columns["STEP"] = max(len(str(file.index.mode_step)) for file in files)
        if any(file.index.mode_step != file.step for file in files):
            columns["GLOBAL"] = max(len(str(file.step)) for file in files)
        columns |= {name.upper(): _NUMBER for name in _SUMMARIES} | {"ZERO": 4}
        stored = {self._trial.contents(file) for file in files}
        reductions = [contents.reductions.get(name, {}) for contents in stored for name in names]
        columns |= {name: 4 for name, share in _SHARES.items() if any((share, False) in one for one in reductions)}
        columns |= {"NAN": 4, "INF": 4}
        if len(self._trial.workers()) > 1:
            columns["WORKER"] = max(len(shortened(file.worker)) for file in files)
        columns = {name: max(width, len(name)) for name, width in columns.items()}
        for name in _LESS_NEEDED:
            if sum(columns.values()) + len(columns) > WIDTH:
                del columns[name]
        return columns

    def _files(self, step: int) -> list[StepIndex]:
        files = sorted(self._trial.step_table.files(step, self._mode).items())
        return [file for worker, file in files if self._worker in (None, worker)]

    def show(self, name: str, steps: Sequence[int]) -> None:
        """Print a tensor's rows under its name, shape and type."""
        files = [file for step in steps for file in self._files(step) if name in self._trial.contents(file).names]
        first = next((form for file in files if (form := self._trial.form(file, name)) is not None), None)
        emit(f"{shortened(name)}  {_form_text(first)}".rstrip())
        for file in files:
            self._show_one(name, file, first)

    def _show_one(self, name: str, file: StepIndex, usual: Form | None) -> None:
        index = file.index
        cells = {"MODE": index.mode.name, "STEP": str(index.mode_step), "GLOBAL": str(file.step)}
        cells["WORKER"] = shortened(file.worker)
        for measured in measure(self._trial, file, [name], whole=self._raw):
            form = self._trial.form(file, name)
            emit(self._line(cells | self._numbers(measured), _form_text(form) if form != usual else ""))
            if measured.record is not None and self._raw:
                _print_values(measured.record)

    def _numbers(self, measured: Measured) -> dict[str, str]:
        numbers, record = measured.numbers, measured.record
        if measured.problem is not None:
            self._say(str(measured.problem))
            return {name: "damaged" if name.lower() in _SUMMARIES else "" for name in self._columns}
        if record is not None and record.value.dtype.kind in "UO":
            texts = ", ".join(map(str, record.value.reshape(-1).tolist()))
            shown = [
                name for name in self._columns if name.lower() in _SUMMARIES or name in ("ZERO", *_SHARES, "NAN", "INF")
            ]
            width = sum(self._columns[name] for name in shown) + len(shown) - 1
            return {"TEXT": shortened(texts, width).ljust(width)}
        cells = {name.upper(): number_text(numbers.get(name)) for name in _SUMMARIES}
        return cells | {
            "ZERO": share_text(numbers.get("zero_share")),
            **{name: share_text(numbers.get(share)) for name, share in _SHARES.items()},
            "NAN": few_text(numbers.get("nan_count")),
            "INF": few_text(numbers.get("inf_count")),
        }

    def _say(self, problem: str) -> None:
        if problem not in self._said:
            self._said.add(problem)
            guard.say(problem)

    def _line(self, cells: dict[str, str], end: str = "") -> str:
        texts = []
        for name, width in self._columns.items():
            if name in cells:
                texts.append(cells[name].ljust(width) if name in ("MODE", "WORKER") else cells[name].rjust(width))
            elif "TEXT" in cells and name == "MIN":
                texts.append(cells["TEXT"])
        return f" {' '.join((*texts, end))}".rstrip()


def _form_text(form: Form | None) -> str:
    return "" if form is None else f"{shape_text(form.shape)} {form.dtype}"


def _print_values(record: SavedTensor) -> None:
    text: Any = np.array2string(record.value, max_line_width=WIDTH - 4, separator=", ")
    for line in text.split("\n"):
        emit(f"    {line}")
