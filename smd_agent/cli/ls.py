"""List what a run has saved: its steps, collections and tensors. Of a folder of runs, list these.

"Failed" says first what failed of the agent's while it saved, and "Lost" names steps that could not be written.
"Verdict" is what the rules of `check` find, as far as a second tells; "so far" of a run that has not ended.

SAVED says in which form a tensor was saved: raw is the whole tensor, a name such as mean is a summary
of it. Each tensor is listed under the smallest collection it belongs to. Long lists are cut short
unless --all is given. "Series" are a few numbers of every step, saved or not. "Further" are runs that
went beside this one because its folder was taken.

"NaN/Inf", "Same", "Grows", "Fades", "Zeros" and "Rises" say which tensors are unusual, as far as a short look
finds; `show` looks longer, and says what each word means. NOTE says it of each tensor.

"Trained" says how many parameters are, where some are not and the run has the collection "parameters". The others are
frozen (their gradient is switched off), were forgotten (no optimizer has them), or never had a gradient. TRAINED says
it of each tensor.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from smd_agent import guard
from smd_agent.analysis.dataframes import UNGROUPED, collections_of, members_of
from smd_agent.analysis.run_summary import bytes_of, files_alike, state_of
from smd_agent.analysis.trained_parameters import trained_states, untrained
from smd_agent.analysis.trial import Trial
from smd_agent.analysis.unusual_tensors import Effort, Overview, look_at
from smd_agent.cli.courses import finding_lines, trained_lines
from smd_agent.cli.open_run import open_run
from smd_agent.cli.output import emit, emit_all, table
from smd_agent.cli.run_folders import further_runs, incomplete_lines, list_runs, runs_in
from smd_agent.config import env
from smd_agent.core.collection_keys import CollectionKeys
from smd_agent.core.modes import ModeKeys
from smd_agent.printable import count_of, shape_text, shortened, size_text
from smd_agent.rules.verdict_in_time import in_one_line, look_shortly

# Lists up to the first length are printed whole, longer ones are cut to the second for each collection.
WHOLE_LIST = 30
SHORT_LIST = 5
# What is read to find what is unusual: a second. Larger tensors are left to `show`.
_NUMBERS = 200_000
_BYTES = 100_000_000
_LARGEST = 10_000_000


def prepare_parser(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument("run", metavar="RUN", help="folder of the run, or of several")
    parser.add_argument("--all", action="store_true", help="list every tensor")


def run(args: argparse.Namespace) -> int:
    """Print what was saved; 1 if a part of it cannot be read."""
    found = runs_in(Path(args.run).expanduser())
    if found:
        emit_all(list_runs(Path(args.run), found))
        return 0

    trial = open_run(args.run)
    lines = tensor_lines(trial)
    members = members_of(lines.keys(), trial.collections())
    overview = _overview(trial, lines)
    for course in overview.courses:
        if course.finding is not None:
            lines[course.name].note = course.finding
    trained = _trained(trial, lines)
    if untrained(trained):
        for name in trained.keys() & lines.keys():
            lines[name].trained = trained[name]
    head = (
        *incomplete_lines(trial.root),
        *_verdict(trial),
        *_heading(trial, lines),
        *trained_lines(trained),
        *finding_lines(overview),
    )
    emit_all((*head, "", *_steps(trial), "", *_collections(members, lines)))
    groups = _groups(members, lines)
    limit = SHORT_LIST if len(lines) > WHOLE_LIST and not args.all else len(lines)
    if lines:
        emit()
    emit_all(_tensors(groups, limit))
    return 1 if trial.problems else 0


@dataclass
class TensorLine:
    """One tensor of a run over all steps and workers; ``size`` in bytes, ``note`` what is unusual.

    ``trained`` says of a parameter whether it is; empty where that is not known.
    """

    name: str
    dtype: str = "-"
    shape: str = "-"
    raw: bool = False
    reductions: set[str] = field(default_factory=set)
    steps: set[int] = field(default_factory=set)
    modes: set[ModeKeys] = field(default_factory=set)
    size: int = 0
    trained: str = ""
    note: str = ""

    @property
    def saved(self) -> str:
        """In which form the tensor was saved."""
        names = ",".join(sorted(self.reductions))
        if len(names) > 12:
            names = f"{len(self.reductions)} summaries"
        return "+".join(part for part in ("raw" if self.raw else "", names) if part) or "shape"

    def cells(self) -> tuple[str, ...]:
        """Return the tensor's row."""
        modes = ",".join(mode.name for mode in sorted(self.modes, key=lambda mode: mode.value))
        size = size_text(self.size)
        return (
            self.name,
            self.dtype,
            self.shape,
            self.saved,
            str(len(self.steps)),
            modes,
            size,
            self.trained,
            self.note,
        )


def tensor_lines(trial: Trial) -> dict[str, TensorLine]:
    """Gather one line for each tensor, by name."""
    lines: dict[str, TensorLine] = {}
    for contents, alike in files_alike(trial).items():
        sizes = alike.size_by_name()
        trial.bring(alike.first, [name for name in contents.names if name in sizes and name not in lines])
        for name in contents.names:
            line = lines.setdefault(name, TensorLine(name))
            line.steps |= alike.steps
            line.modes |= alike.modes
            line.raw |= name in sizes
            line.size += sizes.get(name, 0)
            for (op, absolute), stored in contents.reductions.get(name, {}).items():
                line.reductions.add(f"abs_{op}" if absolute else op)
                line.size += sizes[stored]
            if line.shape == "-" and (form := trial.form(alike.first, name)) is not None:
                line.dtype, line.shape = form.dtype, shape_text(form.shape)
    return lines


def _overview(trial: Trial, lines: dict[str, TensorLine]) -> Overview:
    steps = trial.step_table.steps(ModeKeys.GLOBAL, incomplete=True)
    effort = Effort(_NUMBERS, _BYTES, _LARGEST)
    return look_at(trial, sorted(lines), trial.collections(), ModeKeys.GLOBAL, steps, effort)


def _trained(trial: Trial, lines: dict[str, TensorLine]) -> dict[str, str]:
    """The state of each parameter, trained or not, by name; empty where the run does not tell."""
    noted = trial.collections().get(CollectionKeys.PARAMETERS)
    return {} if noted is None else trained_states(trial, noted, sorted(lines))


def _verdict(trial: Trial) -> Iterator[str]:
    seconds = env.verdict_seconds()
    steps = trial.step_table.steps(ModeKeys.GLOBAL, incomplete=True)
    if not steps or not seconds:
        return
    look = look_shortly(trial, steps, trial.step_table.files, seconds, attempt=guard.attempt)
    yield f"Verdict  {in_one_line(look, so_far=not trial.loaded_all_steps)}"
    if look.groups or not look.is_whole:
        more = "more" if look.is_whole else "the rest"
        yield f"         {more}: python -m smd_agent check {trial.path}"


def _heading(trial: Trial, lines: dict[str, TensorLine]) -> Iterator[str]:
    steps = trial.step_table.steps(ModeKeys.GLOBAL, incomplete=True)
    yield f"Run      {trial.path}"
    yield f"State    {state_of(trial)}"
    yield f"Workers  {', '.join(trial.workers())}"
    yield f"Saved    {size_text(bytes_of(trial))}: {count_of(len(lines), 'tensor')} in {count_of(len(steps), 'step')}"
    series = trial.series_source.step_table
    if numbers := series.names():
        steps = series.steps(ModeKeys.GLOBAL)
        held = f"{count_of(len(numbers), 'number')} in {count_of(len(steps), 'step')}, {steps[0]} to {steps[-1]}"
        yield f"Series   {held}: python -m smd_agent show {trial.path} series"
    further = further_runs(trial.root)
    if further:
        yield f"Further  {', '.join(further)}"


def _steps(trial: Trial) -> Iterator[str]:
    found = trial.step_table
    by_mode: dict[ModeKeys, list[int]] = {}
    for step in found.steps(ModeKeys.GLOBAL, incomplete=True):
        mode, _ = trial.mode_modestep(step)
        if mode is not None:
            by_mode.setdefault(mode, []).append(step)
    rows = []
    for mode, own in sorted(by_mode.items(), key=lambda entry: entry[0].value):
        numbers = [str(trial.mode_step(step)) for step in own]
        incomplete = sum(not found.is_complete(step) for step in own)
        note = f"{incomplete} not written by all workers" if incomplete else ""
        rows.append((mode.name, str(len(own)), numbers[0], numbers[-1], note))
    if not rows:
        return iter(("No step has been saved.",))
    return table(("MODE", "STEPS", "FIRST", "LAST", ""), rows, right="STEPS FIRST LAST")


def _collections(members: dict[str, set[str]], lines: dict[str, TensorLine]) -> Iterator[str]:
    rows = []
    for name, own in sorted(members.items()):
        if own:
            rows.append((name, str(len(own)), size_text(sum(lines[one].size for one in own))))
    return table(("COLLECTION", "TENSORS", "SIZE"), rows, right="TENSORS SIZE") if rows else iter(())


def _groups(members: dict[str, set[str]], lines: dict[str, TensorLine]) -> dict[str, list[TensorLine]]:
    """Put every tensor into the smallest collection it belongs to; those that are unusual come first."""
    own = collections_of(lines.keys(), members)
    groups: dict[str, list[TensorLine]] = {}
    for name, line in sorted(lines.items(), key=lambda item: (not item[1].note, item[0])):
        groups.setdefault(own[name], []).append(line)
    return dict(sorted(groups.items(), key=lambda group: (group[0] == UNGROUPED, group[0])))


def _tensors(groups: dict[str, list[TensorLine]], limit: int) -> Iterator[str]:
    header = ("TENSOR", "DTYPE", "SHAPE", "SAVED", "STEPS", "MODES", "SIZE", "TRAINED", "NOTE")
    shown = {group: lines if len(lines) <= limit + 1 else lines[:limit] for group, lines in groups.items()}
    rows = [line.cells() for lines in shown.values() for line in lines]
    # The last two stand there where they say something.
    columns = [i for i in range(len(header)) if i < len(header) - 2 or any(row[i] for row in rows)]
    text = table([header[i] for i in columns], [[row[i] for i in columns] for row in rows], right="STEPS SIZE")
    if not rows:
        return
    yield f"  {next(text)}"
    for group, lines in groups.items():
        yield f"{shortened(group)}:"
        for _ in shown[group]:
            yield f"  {next(text)}"
        left = len(lines) - len(shown[group])
        if left:
            yield f"  ... and {left} more: --all lists them"
