"""Tensors at single steps as a table: one row a tensor, step and worker."""

from __future__ import annotations

import numpy as np

from smd_agent import guard
from smd_agent.analysis.statistics import Measured, measure
from smd_agent.cli.output import emit
from smd_agent.cli.table import WIDTH, few_text, share_text
from smd_agent.printable import number_text, shape_text, shortened

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Sequence
    from typing import Any

    from smd_agent.analysis.trial import Trial
    from smd_agent.core.modes import ModeKeys
    from smd_agent.formats.event import Form, SavedTensor
    from smd_agent.storage.index_files import StepIndex

_SUMMARIES = ("min", "max", "mean", "std", "l2")
_SHARES = {"DEAD": "dead_share", "SAT": "saturated_share"}
_NUMBER = 8
# What is left out first where a line would be too long.
_LESS_NEEDED = ("STD", "MEAN")


class Rows:
    """Prints rows, each as soon as it is known.

    Args:
        trial: the run.
        mode: how steps are counted.
        names: of the tensors that will be shown.
        steps: all that will be shown.
        worker: only what this worker saved.
        raw: print the values too.
        said: what could not be read, and has been said; what else cannot is added.
    """

    def __init__(
        self,
        trial: Trial,
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
