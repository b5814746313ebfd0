"""Rows of the series as they are written, for tests that look at nothing of the disk."""

from __future__ import annotations

import numpy as np

from smd_agent.core.modes import ModeKeys
from smd_agent.core.series import Series
from smd_agent.formats.series import ABSENT


def collected(monkeypatch):
    """Have rows collected; a function gives those of a table, as dicts without the numbers that are absent."""
    found = []

    def take(_, table, step, mode, mode_step, names, values):
        assert len(names) == len(values)
        numbers = {name: value for name, value in zip(names, values, strict=True) if value is not ABSENT}
        found.append((table, {"step": step, "mode": mode.name, "mode_step": mode_step, **numbers}))

    def add(series, table, names, values):
        position = series._position
        take(series, table, position.step, position.clock.mode, position.clock.step, names, values)

    monkeypatch.setattr(Series, "add", add)
    monkeypatch.setattr(Series, "take", take)
    return lambda table: [row for name, row in found if name == table]


def assert_losses_are_those_saved(both, table):
    """The series of a run of Keras has the training steps, numbered as saved, and in them the losses that are saved."""
    trial, saved = both.trial, both.trial.tensor("batch_loss")
    steps = [trial.global_step(ModeKeys.TRAIN, step) for step in trial.steps(mode=ModeKeys.TRAIN)]
    assert table.steps.tolist() == steps
    assert table.mode_steps.tolist() == [*range(len(steps))]
    assert {*table.modes.tolist()} == {ModeKeys.TRAIN.value}
    np.testing.assert_allclose(table["series/loss"], [float(saved.value(step)) for step in steps], rtol=1e-5)
