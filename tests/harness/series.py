"""Rows of the series as they are written, for tests that look at nothing of the disk."""

from __future__ import annotations

from smd_agent.core.series import Series
from smd_agent.formats.series import ABSENT


def collected(monkeypatch):
    """Have rows collected; a function gives those of a table, as dicts without the numbers that are absent."""
    found = []

    def add_at(_, table, step, mode, mode_step, names, values):
        assert len(names) == len(values)
        numbers = {name: value for name, value in zip(names, values, strict=True) if value is not ABSENT}
        found.append((table, {"step": step, "mode": mode.name, "mode_step": mode_step, **numbers}))

    def add(series, table, names, values):
        position = series._position
        add_at(series, table, position.step, position.clock.mode, position.clock.step, names, values)

    monkeypatch.setattr(Series, "add", add)
    monkeypatch.setattr(Series, "add_at", add_at)
    return lambda table: [row for name, row in found if name == table]
