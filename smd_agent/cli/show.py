"""Show values of tensors over the steps: one row per tensor, step and worker.

The summaries are those the run stored; where it stored the whole tensor they are computed from it. Text stands in
their place as it is, and "-" for what cannot be known. std is that of the population, l2 the root of the sum of squares
of all elements.
"""

from __future__ import annotations

import re

from smd_agent import guard
from smd_agent.cli.errors import USAGE_ERROR, CommandError
from smd_agent.cli.output import emit
from smd_agent.cli.run_folder import open_run
from smd_agent.cli.table import aligned, shape_text
from smd_agent.printable import LONGEST_NAME, shortened

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence
    from typing import Any

    from smd_agent.analysis.tensor import Tensor
    from smd_agent.analysis.trial import Trial
    from smd_agent.core.modes import ModeKeys
    from smd_agent.formats.event import SavedTensor

SUMMARIES = ("min", "max", "mean", "std", "l2")
COLUMNS = {"MODE": 7, "STEP": 5, "GLOBAL": 6, "SHAPE": 9, "DTYPE": 8, **{name.upper(): 9 for name in SUMMARIES}}
RIGHT = "STEP GLOBAL MIN MAX MEAN STD L2"
MODES = ("train", "eval", "predict", "global")
WIDTH = 100
# Five summaries of nine characters, and the gaps between them.
TEXT_WIDTH = 53
NAMES_TO_SUGGEST = 3
STEPS_TO_SUGGEST = 8


def prepare_parser(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument("run", metavar="RUN", help="folder of the run")
    parser.add_argument("regex", metavar="REGEX", help="tensors in whose name this regular expression is found")
    parser.add_argument("--mode", choices=MODES, type=str.lower, help="only steps of this mode")
    parser.add_argument("--step", type=int, metavar="N", help="only this step, as --mode counts it (default: over all)")
    parser.add_argument("--worker", metavar="NAME", help="only what this worker saved")
    parser.add_argument("--raw", action="store_true", help="print the values too (large tensors shortened)")


def run(args: argparse.Namespace) -> int:
    """Print the rows; 1 if nothing matches or a record is damaged."""
    from smd_agent.core.modes import ModeKeys

    trial = open_run(args.run)
    mode = ModeKeys[(args.mode or "global").upper()]
    tensors = [trial.tensor(name) for name in _matching(trial, args.regex)]
    if args.worker is not None and args.worker not in trial.workers():
        raise CommandError(f"no worker {args.worker} wrote to {args.run}, only {', '.join(trial.workers())}")
    steps = {tensor.name: _steps(tensor, mode, args.step) for tensor in tensors}
    if not any(steps.values()):
        raise CommandError(_no_steps(trial, tensors, mode, args.step))
    report = _Report(trial, args.worker, args.raw)
    for tensor in tensors:
        if steps[tensor.name]:
            report.show(tensor, steps[tensor.name])
    return 1 if report.damaged or trial.problems else 0


def _matching(trial: Trial, regex: str) -> list[str]:
    from smd_agent.core.patterns import UnfitPattern, name_pattern

    try:
        pattern = name_pattern(regex)
    except UnfitPattern as error:
        raise CommandError(str(error), USAGE_ERROR) from error
    names = trial.tensor_names()
    found = [name for name in names if pattern.found_in(name)]
    if not found:
        nearest = _nearest(regex, names)
        hint = f"the nearest are {', '.join(map(shortened, nearest))}" if nearest else "no tensor was saved"
        raise CommandError(f"no tensor of {trial.path} matches {shortened(repr(regex))}: {hint}")
    return found


def _nearest(regex: str, names: Sequence[str]) -> list[str]:
    import difflib

    plain = re.sub(r"[^\w/. ]|\.\*", "", regex[:LONGEST_NAME]).lower()
    by_case = {name[:LONGEST_NAME].lower(): name for name in names}
    return [by_case[name] for name in difflib.get_close_matches(plain, by_case, NAMES_TO_SUGGEST, cutoff=0)]


def _steps(tensor: Tensor, mode: ModeKeys, step: int | None) -> list[int]:
    """Return the global steps to show."""
    steps = tensor.steps(mode, show_incomplete_steps=True)
    found = (tensor.trial.global_step(mode, number) for number in steps if step in (None, number))
    return [number for number in found if number is not None]


def _no_steps(trial: Trial, tensors: Sequence[Tensor], mode: ModeKeys, step: int | None) -> str:
    saved = sorted({number for tensor in tensors for number in tensor.steps(mode, show_incomplete_steps=True)})
    what = shortened(tensors[0].name) if len(tensors) == 1 else f"none of the {len(tensors)} tensors"
    verb = "was not saved" if len(tensors) == 1 else "was saved"
    if saved:
        steps = ", ".join(map(str, saved[:STEPS_TO_SUGGEST])) + (", ..." if len(saved) > STEPS_TO_SUGGEST else "")
        return f"{what} {verb} at step {step} of mode {mode.name}; saved steps are {steps}"
    modes = ", ".join(mode.name for mode in trial.modes()) or "GLOBAL"
    return f"{what} {verb} in mode {mode.name}; the run has steps of {modes}"


class _Report:
    def __init__(self, trial: Trial, worker: str | None, raw: bool) -> None:
        self.damaged = False
        self._trial = trial
        self._worker = worker
        self._raw = raw
        columns = dict(COLUMNS)
        self._several = len(trial.workers()) > 1
        if self._several:
            columns["WORKER"] = max(map(len, ("WORKER", *map(shortened, trial.workers()))))
        self._widths = list(columns.values())
        self._at_right = [name in RIGHT.split() for name in columns]
        self._print_row(list(columns))

    def show(self, tensor: Tensor, steps: list[int]) -> None:
        """Print a tensor's rows, each as soon as it is known."""
        emit(shortened(tensor.name))
        for step in steps:
            for worker in tensor.workers(step):
                if self._worker in (None, worker):
                    self._show_one(tensor, step, worker)

    def _show_one(self, tensor: Tensor, step: int, worker: str) -> None:
        from smd_agent.core.modes import ModeKeys
        from smd_agent.errors import SMDebugError

        # Workers may count the same global step as another one.
        index = self._trial.step_table.files(step)[worker].index
        mode, mode_step = index.mode, index.mode_step
        form = tensor.form(step, ModeKeys.GLOBAL, worker)
        record = None
        try:
            numbers, record = self._measure(tensor, step, worker)
            cells = [_number(numbers.get(name)) for name in SUMMARIES]
            if record is not None and record.value.dtype.kind in "UO":
                cells = [_preview(record.value.reshape(-1).tolist()), *("" for _ in SUMMARIES[1:])]
        except SMDebugError as error:
            self.damaged = True
            guard.say(str(error))
            cells = ["damaged" for _ in SUMMARIES]
        place = [mode.name, str(mode_step), str(step)]
        what = [shape_text(form.shape), form.dtype] if form else ["-", "-"]
        self._print_row([*place, *what, *cells, *([worker] if self._several else [])])
        if record is not None and self._raw:
            self._print_values(record)

    def _measure(self, tensor: Tensor, step: int, worker: str) -> tuple[dict[str, float], SavedTensor | None]:
        """Return the summaries, and the record if it had to be read."""
        from smd_agent.core.modes import ModeKeys
        from smd_agent.core.reductions import reduce_batch
        from smd_agent.errors import TensorUnavailableForStep

        stored = tensor.reduction_values(step, ModeKeys.GLOBAL, worker)
        numbers = {name: float(stored[name, False]) for name in SUMMARIES if (name, False) in stored}
        if len(numbers) == len(SUMMARIES) and not self._raw:
            return numbers, None
        try:
            record = tensor.record(step, ModeKeys.GLOBAL, worker)
        except TensorUnavailableForStep:
            return numbers, None
        kind = record.value.dtype.kind
        # Of complex values only the norm is defined, of text nothing.
        names = SUMMARIES if kind in "fiub" else ("l2",) if kind == "c" else ()
        if names and record.value.size:
            computed = reduce_batch([record.value], [(name, False) for name in names])[0].tolist()
            numbers = dict(zip(names, computed, strict=True)) | numbers
        return numbers, record

    def _print_row(self, row: list[str]) -> None:
        emit(f"  {aligned(row, self._widths, self._at_right)}")

    def _print_values(self, record: SavedTensor) -> None:
        import numpy as np

        text = np.array2string(record.value, max_line_width=WIDTH - 4, separator=", ")
        for line in text.split("\n"):
            emit(f"    {line}")


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.4g}"


def _preview(texts: Sequence[Any]) -> str:
    """Return as much of some texts as fits where the summaries stand."""
    return shortened(", ".join(str(text) for text in texts), TEXT_WIDTH)
