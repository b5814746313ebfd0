"""Small tensors of a step are read and computed together, and one that is damaged costs itself alone."""

from __future__ import annotations

import numpy as np
import pytest

from smd_agent import create_trial
from smd_agent.analysis.statistics import STATISTICS, compute, measure
from smd_agent.errors import DamagedRecord
from smd_agent.formats.paths import event_path
from smd_agent.storage import event_file_reader

VALUES = {f"t{i}": np.arange(i + 2, dtype=np.float32) - i for i in range(40)}
VALUES |= {"whole": np.arange(3), "complex": np.array([1j, 2]), "none": np.zeros((0, 3))}
VALUES |= {"large": np.arange(10_000.0)}


@pytest.fixture
def opened(run, monkeypatch):
    """The trial of one step, its only file, and the names of files that have been opened since."""
    run.collections(all=".*").step(0, VALUES).end()
    trial = create_trial(str(run.root))
    ((file,),) = [trial.step_table.files(step).values() for step in trial.steps()]
    paths = []
    before = event_file_reader.open_to_read
    monkeypatch.setattr(event_file_reader, "open_to_read", lambda path: paths.append(path) or before(path))
    return trial, file, paths


def test_what_is_told_is_what_is_told_of_each_alone(opened):
    trial, file, paths = opened
    found = {one.name: one for one in measure(trial, file, [*VALUES])}
    assert list(found) == list(VALUES)
    # The stored numbers, of which there are none, all small tensors, and the large one.
    assert len(paths) <= 3
    for name, value in VALUES.items():
        assert found[name].problem is None
        assert found[name].numbers == pytest.approx(compute(value, STATISTICS), nan_ok=True)
        np.testing.assert_array_equal(found[name].record.value, value)


def test_forms_need_no_file_of_their_own(opened):
    trial, file, paths = opened
    trial.bring(file, [*VALUES])
    assert {name: trial.form(file, name).shape for name in VALUES} == {name: v.shape for name, v in VALUES.items()}
    assert len(paths) <= 1


def test_one_that_is_damaged_is_told(opened, run):
    trial, file, _ = opened
    path = run.root / event_path(0, "worker_0")
    content = bytearray(path.read_bytes())
    start, length = file.index.payload.location("t7")
    content[start + length - 6] ^= 1
    path.write_bytes(bytes(content))
    found = {one.name: one for one in measure(trial, file, [*VALUES])}
    assert [name for name, one in found.items() if one.problem] == ["t7"]
    assert isinstance(found["t7"].problem, DamagedRecord)
    assert found["t8"].numbers == compute(VALUES["t8"], STATISTICS)
