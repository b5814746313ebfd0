"""Pictures of tensors over the steps as matplotlib draws them. The extra ``plots`` installs it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from smd_agent.analysis.dataframes import imported
from smd_agent.analysis.statistics import STATISTICS, Measured
from smd_agent.core.modes import ModeKeys
from smd_agent.errors import SMDebugValueError
from smd_agent.printable import printable, shortened

if TYPE_CHECKING:
    from smd_agent.analysis.dataframes import Row

VALUE = "value"
_NORM = "l2"
# A longer legend would leave no room for the lines.
_MOST_NAMES = 12
# Fewer points are marked, so that each can be seen.
_FEW = 40
_SIZE = (8.0, 4.5)
_NOT_FINITE = "#d62728"

_Key = tuple[str, ModeKeys, str]


def plot(rows: Iterable[Row], mode: ModeKeys, statistic: str | None, logarithmic: bool) -> Any:
    """Return a ``matplotlib.figure.Figure``; ``Trial.plot`` says of what.

    Raises:
        SMDebugRuntimeError: matplotlib is not installed.
        SMDebugValueError: nothing of that was saved.
    """
    imported("matplotlib", "plot")
    lines: dict[_Key, tuple[list[int], list[float]]] = {}
    known: set[str] = set()
    for file, measured in rows:
        known |= measured.numbers.keys()
        number = _number(measured, statistic)
        if number is None:
            continue
        step = file.step if mode is ModeKeys.GLOBAL else file.index.mode_step
        steps, numbers = lines.setdefault((measured.name, file.index.mode, file.worker), ([], []))
        steps.append(step)
        numbers.append(number)
    if not lines:
        raise SMDebugValueError(_why_nothing(statistic, known))
    return _drawn(lines, mode, statistic, logarithmic)


def _number(measured: Measured, statistic: str | None) -> float | None:
    if statistic is not None:
        return measured.numbers.get(statistic)
    if measured.record is not None and measured.record.value.size == 1:
        return measured.numbers.get("mean")
    return measured.numbers.get(_NORM)


def _why_nothing(statistic: str | None, known: set[str]) -> str:
    if statistic is None or not known:
        return "no number was saved of the tensors that are asked for"
    names = ", ".join(sorted({*STATISTICS, *known}))
    return f"statistic={shortened(statistic)!r} was not saved and cannot be computed; there are {names}"


def _drawn(
    lines: Mapping[_Key, tuple[Sequence[int], Sequence[float]]],
    mode: ModeKeys,
    statistic: str | None,
    logarithmic: bool,
) -> Any:
    figure = _figure_class()(figsize=_SIZE, layout="constrained")
    axes = figure.add_subplot()
    for key, (steps, numbers) in lines.items():
        finite = [number if math.isfinite(number) else math.nan for number in numbers]
        (line,) = axes.plot(steps, finite, marker="." if len(steps) < _FEW else None, label=_label(key, lines))
        bad = [step for step, number in zip(steps, numbers, strict=True) if not math.isfinite(number)]
        if bad:
            # At the upper edge, whatever the scale: a number that is none has no height.
            height = axes.get_xaxis_transform()
            axes.plot(bad, [1.0] * len(bad), "x", color=_NOT_FINITE, transform=height, clip_on=False, zorder=3)
            line.set_label(f"{line.get_label()} (× NaN or Inf)")
    if logarithmic:
        axes.set_yscale("symlog" if any(number <= 0 for _, own in lines.values() for number in own) else "log")
    axes.set_xlabel("step" if mode is ModeKeys.GLOBAL else f"{mode.name} step")
    axes.set_ylabel(statistic or f"value, or {_NORM} of several elements")
    handles, labels = axes.get_legend_handles_labels()
    left = len(labels) - _MOST_NAMES
    title = f"and {left} more" if left > 0 else None
    shown = handles[:_MOST_NAMES], labels[:_MOST_NAMES]
    figure.legend(*shown, loc="outside lower center", ncols=2, fontsize="small", title=title)
    return figure


def _label(key: _Key, all_keys: Iterable[_Key]) -> str:
    name, mode, worker = key
    parts = [shortened(printable(name))]
    if len({other for _, other, _ in all_keys}) > 1:
        parts.append(mode.name)
    if len({other for _, _, other in all_keys}) > 1:
        parts.append(printable(worker))
    # A name that begins with an underscore has no place in a legend.
    text = " ".join(parts)
    return f" {text}" if text.startswith("_") else text


def _figure_class() -> Any:
    from io import BytesIO

    from matplotlib.figure import Figure

    class Plot(Figure):
        """A figure that belongs to no window, and shows itself in a notebook."""

        def _repr_png_(self) -> bytes:
            file = BytesIO()
            self.savefig(file, format="png")
            return file.getvalue()

    return Plot
