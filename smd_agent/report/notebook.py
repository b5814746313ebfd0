"""Trials and tensors as a notebook shows them: the verdict, a small picture, a table."""

from __future__ import annotations

import base64
from collections.abc import Iterator, Sequence

from smd_agent.analysis.statistics import measure
from smd_agent.analysis.tensor import Tensor
from smd_agent.analysis.trial import Trial
from smd_agent.core.collection_keys import CollectionKeys
from smd_agent.core.modes import ModeKeys
from smd_agent.formats.paths import END_MARKER
from smd_agent.printable import shortened
from smd_agent.report.html_elements import Element, count_of, element, joined, number_text, table
from smd_agent.report.line_charts import Line, Lines
from smd_agent.report.still_picture import picture
from smd_agent.rules.step_view import RunView, StepView
from smd_agent.rules.verdict_in_time import in_one_line, look_shortly

# In seconds, and steps that are read for a picture: a cell of a notebook is run often.
_LONGEST = 1.0
_STEPS = 400
_ROWS = 12
_COLUMNS = ("min", "max", "mean", "std", "l2", "zero_share", "nan_count", "inf_count")


def html_of_trial(trial: Trial) -> str:
    """Return what a notebook shows of a run: its verdict, its losses and metrics, its collections."""
    # Not `maybe_refresh`, which waits for late files.
    trial.refresh_data()
    steps = trial.step_table.steps(ModeKeys.GLOBAL, incomplete=True)
    lines = _lines(trial, _some(steps))
    ended = trial.loaded_all_steps or (trial.root / END_MARKER).exists()
    state = "" if ended else " · not ended"
    parts = [
        element("p", element("b", trial.name or trial.path), f" · {trial.path}{state}"),
        element("p", element("b", "Verdict "), _verdict(trial, steps, ended)),
    ]
    drawn = [line for group in (CollectionKeys.LOSSES, CollectionKeys.METRICS) for line in lines.found[group].items()]
    if drawn:
        rows = [
            (shortened(name), mode.name, number_text(line.values[0]), number_text(line.values[-1]))
            for (name, mode), line in drawn[:_ROWS]
        ]
        parts.append(_picture([line for _, line in drawn], "losses and metrics over the steps"))
        parts.append(table(("tensor", "mode", "first", "last"), rows, numbers="first,last"))
        if len(drawn) > _ROWS:
            parts.append(element("p", f"and {count_of(len(drawn) - _ROWS, 'more line')}"))
    parts.append(table(("collection", "tensors"), [*_collections(trial)], numbers="tensors"))
    parts.append(element("p", f"{count_of(len(steps), 'saved step')}: {_steps_by_mode(trial)}"))
    return joined([element("div", *parts)])


def html_of_tensor(tensor: Tensor) -> str:
    """Return what a notebook shows of a tensor: how it goes over the steps, and its last ones in numbers."""
    table_of_steps = tensor.trial.step_table
    steps = _some(tensor.steps(show_incomplete_steps=True))
    line, rows = Line(), []
    for step in steps:
        for worker, file in sorted(table_of_steps.files(step).items()):
            for measured in measure(tensor.trial, file, [tensor.name]):
                numbers = measured.numbers
                size = numbers.get("mean" if measured.record is not None and measured.record.value.size == 1 else "l2")
                if size is not None and (not line.steps or line.steps[-1] != step):
                    line.add(step, step, size)
                cells = (number_text(numbers[name]) if name in numbers else "–" for name in _COLUMNS)
                rows.append((f"{file.index.mode.name} {file.index.mode_step}", shortened(worker), *cells))
    parts = [element("p", element("b", shortened(tensor.name)), f" · {count_of(len(steps), 'saved step')}")]
    if line.steps:
        parts.append(_picture([line], "over the steps"))
    parts.append(table(("step", "worker", *_COLUMNS), rows[-_ROWS:], numbers=",".join(_COLUMNS)))
    return joined([element("div", *parts)])


def _verdict(trial: Trial, steps: Sequence[int], ended: bool) -> str:
    if not steps:
        return "no step has been saved"
    look = look_shortly(trial, steps, trial.step_table.files, _LONGEST)
    return in_one_line(look, so_far=not ended)


def _lines(trial: Trial, steps: Sequence[int]) -> Lines:
    lines, run = Lines(steps), RunView(trial)
    for step in steps:
        for _, file in sorted(trial.step_table.files(step).items()):
            lines.add(StepView(run, file))
    lines.add_series(trial)
    return lines


def _some(steps: Sequence[int]) -> list[int]:
    """Return the steps, or so many of them that can be read at once, spread evenly; the last one is among them."""
    if len(steps) <= _STEPS:
        return list(steps)
    return [steps[number * (len(steps) - 1) // (_STEPS - 1)] for number in range(_STEPS)]


def _picture(lines: Sequence[Line], words: str) -> Element:
    data, width, height = picture(lines, [])
    source = f"data:image/png;base64,{base64.b64encode(data).decode()}"
    return element("img", src=source, width=width, height=height, alt=words)


def _collections(trial: Trial) -> Iterator[tuple[str, str]]:
    names = trial.tensor_names()
    for name, collection in sorted(trial.collections().items()):
        own = sum(collection.matches(tensor) for tensor in names)
        if own:
            yield name, f"{own:,}"


def _steps_by_mode(trial: Trial) -> str:
    modes = sorted(trial.modes(), key=lambda mode: mode.value)
    return ", ".join(f"{mode.name} {len(trial.step_table.steps(mode, incomplete=True)):,}" for mode in modes) or "none"
