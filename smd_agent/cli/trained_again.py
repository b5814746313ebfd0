"""Training that ``replay`` has done again up to the step that went wrong, where a run has nothing to put into a step.

That is TensorFlow with Keras and tapes, and MXNet with Gluon: a compiled graph gives away no batch and no random state
without becoming another graph. So the program trains again, as it is, and the losses of the steps before are compared
with those of the run, bit for bit. Only where they are the same is somebody blamed.
"""

from __future__ import annotations

import argparse
import dataclasses
import math
import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from smd_agent.analysis.trial import Trial
from smd_agent.cli.errors import USAGE_ERROR, CommandError
from smd_agent.cli.open_run import open_run
from smd_agent.cli.output import emit_all, emit_json, facts
from smd_agent.cli.replayed_program import free_folder, last_line, run_program, words_of
from smd_agent.core.collection_keys import CollectionKeys
from smd_agent.core.modes import ModeKeys
from smd_agent.errors import SMDebugError
from smd_agent.formats.bundles import Bundle
from smd_agent.formats.replays import Order, Replayed
from smd_agent.formats.series import PREFIX
from smd_agent.rules.series_view import LOSS, Course, SeriesView
from smd_agent.storage.worker_files_reader import read_about

LABEL = 11
NOT_THE_SAME = 1
_LOSSES = (LOSS, f"{PREFIX}execution_loss")
_FRAMEWORKS = ("TensorFlow", "MXNet")
# Seconds that a program trains a third time without being asked.
_SHORT = 60.0


class Wrong(NamedTuple):
    """The step that went wrong.

    Attributes:
        step: the training step.
        first: the first step of which it is not known that it went well; steps before have finite losses.
        loss: as text; empty where the run has none of it.
        seconds: that the run has trained.
    """

    step: int
    first: int
    loss: str
    seconds: float


def is_for(root: Path, bundles: Iterable[Bundle]) -> bool:
    """True if a step of this run is made again by training: it has no bundle with tensors, of what could have none."""
    if any(bundle.model for bundle in bundles):
        return False
    known = [about.environment for about in read_about(root)]
    versions = {name for groups in known for name in groups.get("versions", ())}
    backends = {groups.get("settings", {}).get("backend of Keras", "") for groups in known}
    return not versions.isdisjoint(_FRAMEWORKS) and ("PyTorch" not in versions or "tensorflow" in backends)


def run(args: argparse.Namespace, note: Bundle | None) -> int:
    """Train again and print what has come of it.

    Args:
        args: of the command.
        note: what the run has noted of its program; None where it has not.
    """
    for name in ("dtype", "device", "eager", "from_start"):
        if getattr(args, name):
            option = f"--{name.replace('_', '-')}"
            raise CommandError(f"{option} is for steps of PyTorch: {args.run} has to be trained again", USAGE_ERROR)
    trial = open_run(args.run)
    before = losses_of(trial)
    wrong = _wrong(args, before, _seconds(trial) if note is None else note.seconds)
    words = words_of(args.words, [] if note is None else note.words)
    folder, out = "" if note is None else note.folder, free_folder(args.run, args.out)
    order = Order("", "", at=wrong.first, until=wrong.step)
    replayed, ended = run_program(words, order, folder, out)
    if replayed.spoilt and args.step is None and order.at == replayed.step > 0 and wrong.seconds < _SHORT:
        # What has spoilt the weights are the gradients of the step before.
        shutil.rmtree(out, ignore_errors=True)
        order = dataclasses.replace(order, at=replayed.step - 1)
        replayed, ended = run_program(words, order, folder, out)
    compared = _Compared.of(before, out, order.at) if replayed.reached else _Compared(0, "")
    differs = compared.differs or _differs(replayed, wrong)
    if args.json:
        told = {**vars(replayed), "differs": differs, "maker": "" if differs else replayed.maker}
        emit_json({"step": wrong.step, "loss_in_run": wrong.loss, "compared": compared.steps, **told})
    else:
        emit_all(facts(_told(wrong, replayed, order, compared, out, ended), LABEL))
    if not replayed.reached:
        return USAGE_ERROR
    return NOT_THE_SAME if differs else 0


def losses_of(trial: Trial) -> list[Course]:
    """The losses of the training steps of a run, and of executions of several; else those of the saved steps."""
    for worker, table in trial.series_of_steps().items():
        view = SeriesView(worker, table)
        for mode in (ModeKeys.TRAIN, ModeKeys.GLOBAL):
            found = [course for name in _LOSSES if (course := view.course(name, mode)) is not None]
            if found:
                return found
    saved = _saved_losses(trial)
    return [] if saved is None else [saved]


def _saved_losses(trial: Trial) -> Course | None:
    worker = next(iter(trial.workers()), "")
    for mode in (ModeKeys.TRAIN, ModeKeys.GLOBAL):
        for name in trial.tensor_names(collection=CollectionKeys.LOSSES) if trial.steps(mode=mode) else ():
            try:
                found = trial.tensor(name).values(mode)
            except SMDebugError:
                continue
            if found and all(value.size for value in found.values()):
                steps, values = np.array([*found]), [np.mean(value, dtype=np.float64) for value in found.values()]
                return Course(name, mode, worker, steps, steps, np.array(values), np.zeros(len(steps), bool))
    return None


def _wrong(args: argparse.Namespace, courses: list[Course], seconds: float) -> Wrong:
    if not courses:
        raise CommandError(f"{args.run} has no losses of training steps, by which a step is found", USAGE_ERROR)
    # Of an execution the last step has its row.
    steps = np.concatenate([course.steps for course in courses])
    values = np.concatenate([course.values for course in courses])
    bad = np.concatenate([course.steps[course.not_finite()] for course in courses])
    if args.step is None and not bad.size:
        raise CommandError(
            f"{args.run} has no training step whose loss is not finite; --step N looks at another one", USAGE_ERROR
        )
    step = int(bad.min()) if args.step is None else args.step
    good = steps[np.isfinite(values) & (steps < step)]
    # Of some short steps there may be no row.
    first = int(good.max()) + 1 if good.size and args.step is None else step
    found = values[steps == step]
    return Wrong(step, first, repr(float(found[0])) if found.size else "", seconds)


def _seconds(trial: Trial) -> float:
    """The time from the first row of the series to the last one."""
    tables = [table.seconds for table in trial.series_of_steps().values()]
    return max((float(times.max() - times.min()) for times in tables if times.size), default=0.0)


class _Compared(NamedTuple):
    """The losses of the steps before that are watched, of the run and of the new one.

    ``steps``: how many there are of both. ``differs``: in what they differ, in words.
    """

    steps: int
    differs: str

    @classmethod
    def of(cls, there: list[Course], out: Path, until: int) -> _Compared:
        """Compare what a run has with what has been written into a folder, of the steps before ``until``."""
        here = {course.name: course for course in losses_of(open_run(str(out)))} if out.is_dir() else {}
        found = [_compared(here[course.name], course, until) for course in there if course.name in here]
        differs = next((one.differs for one in found if one.differs), "")
        return cls(sum(one.steps for one in found), differs)


def _compared(here: Course, there: Course, until: int) -> _Compared:
    steps, these, those = np.intersect1d(here.steps, there.steps, return_indices=True)
    rows = steps < until
    ours, theirs = here.values[these[rows]], there.values[those[rows]]
    different = np.flatnonzero(_bits(ours) != _bits(theirs))
    if not different.size:
        return _Compared(int(rows.sum()), "")
    at = different[0]
    loss, other = float(ours[at]), float(theirs[at])
    return _Compared(int(rows.sum()), f"the loss of step {steps[rows][at]} is {loss}, in the run {other}")


def _bits(values: npt.NDArray[np.float64]) -> npt.NDArray[np.int64]:
    return np.ascontiguousarray(values).view(np.int64)


def _differs(replayed: Replayed, wrong: Wrong) -> str:
    """In what the watched steps differ from those of the run; a loss that is finite in both is no matter."""
    if not replayed.reached or replayed.differs or not replayed.passed:
        return replayed.differs or ("the step has no loss" if replayed.reached and not replayed.error else "")
    was_bad = wrong.loss != "" and not _is_finite(wrong.loss)
    if was_bad and _is_finite(replayed.loss) and not replayed.broken:
        return f"the loss of step {replayed.step}, computed operation by operation, is {replayed.loss}"
    return ""


def _is_finite(loss: str) -> bool:
    try:
        return math.isfinite(float(loss))
    except ValueError:
        return False


def _told(
    wrong: Wrong, replayed: Replayed, order: Order, compared: _Compared, out: Path, ended: str
) -> Iterator[tuple[str, str]]:
    step = replayed.step if replayed.reached else wrong.step
    loss = wrong.loss if step == wrong.step else replayed.loss
    yield "Step", f"{step}{f', which went wrong: the loss is {loss}' if loss and not _is_finite(loss) else ''}"
    if not replayed.reached:
        yield "Not made", replayed.problem or f"the program did not train up to step {order.at}{last_line(ended)}"
        return
    if replayed.error and not replayed.passed:
        yield "Error", replayed.error
    if replayed.passed:
        # Of an execution of several steps the run has one loss.
        it = "it" if step == wrong.step else f"that of step {wrong.step}"
        yield "Loss", f"{replayed.loss}{f'; in the run {it} was {wrong.loss}' if wrong.loss else ''}"
    differs = compared.differs or _differs(replayed, wrong)
    if differs:
        yield "Not same", f"not reproducible: {differs}"
        if not compared.differs and compared.steps:
            yield "Note", _same(compared, order.at)
    else:
        if replayed.maker or not _is_finite(replayed.loss):
            yield "Made by", replayed.maker or "not known: no operation that was seen has made it"
        yield "Same", _same(compared, order.at)
    if replayed.spoilt and step > 0 and not differs:
        yield "Note", f"--step {step - 1} looks at the gradients of the step before"
    which = "the step" if step == order.at else f"step {order.at}"
    yield "Saved", f"all tensors of {which}: python -m smd_agent show {out} --step {order.at}"


def _same(compared: _Compared, at: int) -> str:
    if not at:
        return "it goes wrong again, in the first step"
    if not compared.steps:
        return "not known: no loss of the steps before is in both runs"
    steps = (
        "the step" if at == 1 else f"all {at} steps" if compared.steps == at else f"{compared.steps} of the {at} steps"
    )
    return f"the losses of {steps} before are those of the run, bit for bit"
