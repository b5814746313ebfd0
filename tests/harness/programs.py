"""Whole training programs, run with the agent and without, and what the author of each expects to find in its run."""

from __future__ import annotations

import re
import shutil
from collections import Counter
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from harness.compare import Both, assert_untouched, run_both, saved_values
from harness.runner import SUBJECTS
from smd_agent.analysis.trial import Trial
from smd_agent.core.modes import ModeKeys
from smd_agent.rules.finding import Severity
from smd_agent.rules.judging import Judging
from smd_agent.rules.registry import rules_of_run

PROGRAMS = SUBJECTS / "programs"
EVERYTHING = {"HookParameters": {"save_interval": 1, "save_all": True}}
# Of several threads, sums are not the same in each run.
ONE_THREAD = {
    **dict.fromkeys(("OMP_NUM_THREADS", "TF_NUM_INTRAOP_THREADS", "TF_NUM_INTEROP_THREADS"), "1"),
    "TF_CPP_MIN_LOG_LEVEL": "3",
    "CUDA_VISIBLE_DEVICES": "",
}
# What runs are called, and the file of their configuration.
_OURS = re.compile(r"run(-\d+)?|run\.json")
_USUAL = re.compile("smd_agent: (saving|saved|a saved step takes) ")


@dataclass(frozen=True)
class Printed:
    """Losses that a program prints: each that of a step, or the mean of several.

    Args:
        loss: the name under which they are saved; of several, their mean is printed.
        pattern: finds them in stdout and stderr; its group is the number.
        steps: of how many steps each is the mean.
        first: the step with which they begin.
        every: how many steps there are from one to the next; by default so many as each is the mean of.
        times: what the saved value is multiplied by.
        mode: of the steps.
        anywhere: whether nobody would count the steps: each printed loss is that of some step, in their order.
    """

    loss: str | tuple[str, ...]
    pattern: str
    steps: int = 1
    first: int = 0
    every: int = 0
    times: float = 1.0
    mode: ModeKeys = ModeKeys.TRAIN
    anywhere: bool = False


@dataclass(frozen=True)
class Expected:
    """What the author of a program expects.

    Args:
        files: what it leaves in its folder.
        train: how many training steps there are; None where nobody would count them.
        losses: the losses of training.
        trained: how many parameters are trained, by what their names begin with.
        unused: those of them that have no gradient, by their names: the loss does not depend on them.
        evaluations: how many evaluation steps there are; None where nobody would count them.
        rounds: how many boosting rounds there are.
        printed: losses that the program prints too.
        code: its exit code.
        without_loss: steps in which the program calls its model with gradients, but does not train it.
        without_gradients: those of them in which it does not ask for gradients either.
        said: a part of each line that the agent says beside where it saves, and what it has saved.
        findings: the rules that find a problem or a warning.
        deviations: reasons for which a test fails, by its name: what is expected is not what is saved.
    """

    files: tuple[str, ...]
    train: int | None = 0
    losses: tuple[str, ...] = ()
    trained: dict[str, int] = field(default_factory=dict)
    unused: tuple[str, ...] = ()
    evaluations: int | None = 0
    rounds: int = 0
    printed: tuple[Printed, ...] = ()
    code: int = 0
    without_loss: tuple[int, ...] = ()
    without_gradients: tuple[int, ...] = ()
    said: tuple[str, ...] = ()
    findings: tuple[str, ...] = ()
    deviations: dict[str, str] = field(default_factory=dict)


class ProgramRuns:
    """A program that has been run without the agent and with it, saving everything of every step."""

    def __init__(self, runner: Any, program: Path, expected: Expected) -> None:
        self.runner = runner
        self.expected = expected
        plain = runner.plain(program, **ONE_THREAD)
        self.files_without = self.take_files()
        self.both: Both = run_both(runner, program, plain=plain, config=EVERYTHING, strict=True, **ONE_THREAD)
        self.files_with = self.take_files()

    def take_files(self, *but: str) -> dict[str, bytes]:
        """Return what the program has left in its folder, and remove it; ``but`` names further runs."""
        found, folder = {}, self.runner.folder
        for path in [each for each in folder.iterdir() if not (each.name in but or _OURS.fullmatch(each.name))]:
            inner = [each for each in path.rglob("*") if each.is_file()] if path.is_dir() else [path]
            found |= {each.relative_to(folder).as_posix(): each.read_bytes() for each in inner}
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        return found

    @property
    def trial(self) -> Trial:
        """What was saved; a trial would wait for a run that is not there."""
        assert self.both.folder.is_dir(), self.both.said
        return self.both.trial

    @cached_property
    def values(self) -> dict[tuple[str, ModeKeys, int], np.ndarray]:
        """All that was saved, which is read for that."""
        return saved_values(self.trial)

    def check_untouched(self) -> None:
        """Assert that the program has printed, written and ended as it does without the agent."""
        assert_untouched(self.both, code=self.expected.code)
        assert sorted(self.files_with) == sorted(self.files_without) == sorted(self.expected.files)
        assert [name for name, found in self.files_with.items() if found != self.files_without[name]] == []

    def check_said(self) -> None:
        """Assert that the agent has said where and how much it saves, and nothing else that is not expected."""
        lines = [line for line in self.both.said if not _USUAL.match(line)]
        assert len(lines) == len(self.expected.said), lines
        assert [part for part in self.expected.said if not any(part in line for line in lines)] == [], lines

    def check_steps(self) -> None:
        """Assert that steps are counted as the author counts them."""
        trial, expected = self.trial, self.expected
        if expected.train is not None:
            assert trial.steps(mode=ModeKeys.TRAIN) == [*range(expected.train)]
        if expected.evaluations is not None:
            assert trial.steps(mode=ModeKeys.EVAL) == [*range(expected.evaluations)]
        if expected.rounds:
            assert trial.steps() == [*range(expected.rounds)]

    def check_losses(self) -> None:
        """Assert that the losses are there that are trained, and one in every step of training."""
        mode = ModeKeys.GLOBAL if self.expected.train == 0 else ModeKeys.TRAIN
        found = self.trial.tensor_names(collection="losses", mode=mode)
        assert sorted(found) == sorted(self.expected.losses)
        assert self._steps_without("losses") == [*self.expected.without_loss]

    def check_parameters(self) -> None:
        """Assert that weights and biases are the trained parameters, with gradients in every step of training."""
        trial = self.trial
        parameters = {*trial.tensor_names(collection="weights"), *trial.tensor_names(collection="biases")}
        with_gradient = parameters.difference(self.expected.unused)
        # Those of a second update within a step have a number.
        gradients = {re.sub(r"Grad_\d+$", "Grad", name) for name in trial.tensor_names(collection="gradients")}
        assert sorted(map(_gradient_of, with_gradient)) == sorted(gradients)
        starts = sorted(self.expected.trained, key=len, reverse=True)
        counted = Counter(next((start for start in starts if name.startswith(start)), name) for name in parameters)
        assert counted == self.expected.trained
        assert self._steps_without("gradients") == [*self.expected.without_gradients]

    def check_printed(self) -> None:
        """Assert that losses which the program has printed are those that were saved."""
        output = self.both.plain.stdout + self.both.plain.stderr
        for printed in self.expected.printed:
            texts = re.findall(printed.pattern, output, re.MULTILINE)
            assert len(texts) > 1, printed
            names = (printed.loss,) if isinstance(printed.loss, str) else printed.loss
            if printed.anywhere:
                self._check_printed_somewhere(printed, names, texts)
                continue
            for place, text in enumerate(texts):
                start = printed.first + place * (printed.every or printed.steps)
                keys = [(name, printed.mode, start + step) for name in names for step in range(printed.steps)]
                value = printed.times * np.mean([np.mean(self.values[key], dtype="float64") for key in keys])
                message = f"{printed.loss} in step {start}"
                np.testing.assert_allclose(float(text), value, rtol=2e-6, atol=_rounded_by(text), err_msg=message)

    def check_findings(self) -> None:
        """Assert that the rules which are applied unasked find the problems that there are, and fail on none."""
        trial = self.trial
        judging = Judging(trial, rules_of_run(trial))
        judging.take_new(incomplete=True)
        verdict = judging.verdict()
        found = [one for one in verdict.findings if one.severity is not Severity.NOTE]
        assert {one.rule for one in found} == {*self.expected.findings}, found
        assert verdict.problems == []
        assert verdict.failed == {}

    def _check_printed_somewhere(self, printed: Printed, names: tuple[str, ...], texts: list[str]) -> None:
        """Assert that what was printed is among the losses of these names, in the order of their steps."""
        keys = sorted(
            (step, names.index(name)) for name, mode, step in self.values if name in names and mode is printed.mode
        )
        saved = (printed.times * np.mean(self.values[names[place], printed.mode, step]) for step, place in keys)
        for text in texts:
            assert any(abs(value - float(text)) <= _rounded_by(text) + 2e-6 * abs(value) for value in saved), text

    def _steps_without(self, collection: str) -> list[int]:
        names = {*self.trial.tensor_names(collection=collection)}
        saved = {step for name, mode, step in self.values if name in names and mode is ModeKeys.TRAIN}
        return [step for step in self.trial.steps(mode=ModeKeys.TRAIN) if step not in saved]


CHECKS = tuple(name.removeprefix("check_") for name in vars(ProgramRuns) if name.startswith("check_"))


def checks_of(programs: dict[str, Expected], checks: tuple[str, ...] = CHECKS) -> list[Any]:
    """The checks of all programs, as parameters of a test; those that deviate have to fail."""
    return [
        pytest.param(
            program,
            check,
            id=f"{program}-{check}",
            marks=[pytest.mark.xfail(reason=expected.deviations[check], strict=True, raises=(AssertionError, KeyError))]
            if check in expected.deviations
            else [],
        )
        for program, expected in programs.items()
        for check in checks
    ]


def _gradient_of(parameter: str) -> str:
    if parameter.endswith(":0"):
        return f"gradients/{parameter.rpartition('weights/')[2].removesuffix(':0')}Grad"
    return f"gradient/{parameter}"


def _rounded_by(text: str) -> float:
    """By how much a number in decimal digits may differ from the one that it is made from."""
    mantissa, _, exponent = text.lower().partition("e")
    return 0.501 * 10.0 ** (int(exponent or 0) - len(mantissa.partition(".")[2]))
