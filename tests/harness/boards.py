"""Files for TensorBoard as its own reader reads them, and what they ought to have by the run that they are of.

The reader runs in an interpreter that has TensorBoard: this one, or the one that ``TENSORBOARD_PYTHON`` names.
"""

from __future__ import annotations

import importlib.util
import json
import os
import re
import subprocess
import sys
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from smd_agent import create_trial
from smd_agent.core.collection_keys import SCALAR_COLLECTIONS

READER = """
import json, os, sys
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
def numbers(h):
    return [h.min, h.max, h.num, h.sum, h.sum_squares, list(h.bucket_limit), list(h.bucket)]
found = {}
for folder, _, files in os.walk(sys.argv[1]):
    if any("tfevents" in name for name in files):
        events = EventAccumulator(folder, {"scalars": 0, "histograms": 0, "tensors": 0})
        events.Reload()
        tags = events.Tags()
        assert not tags["tensors"] and not tags["images"], tags
        found[os.path.relpath(folder, sys.argv[1])] = {
            "scalars": {tag: [[one.step, one.value] for one in events.Scalars(tag)] for tag in tags["scalars"]},
            "histograms": {
                tag: [[one.step, one.wall_time, *numbers(one.histogram_value)] for one in events.Histograms(tag)]
                for tag in tags["histograms"]
            },
        }
json.dump(found, sys.stdout)
"""


def board_python() -> str:
    """Return an interpreter that has TensorBoard; the test is skipped where there is none."""
    named = os.environ.get("TENSORBOARD_PYTHON")
    if named:
        return named
    if importlib.util.find_spec("tensorboard") is None:
        pytest.skip("TENSORBOARD_PYTHON does not name an interpreter that has TensorBoard")
    return sys.executable


def read_board(folder: Path) -> dict[str, dict[str, dict[str, list[list[Any]]]]]:
    """Return what TensorBoard's reader finds: by its run, kind and tag, each step and what it has."""
    command = [board_python(), "-W", "ignore", "-c", READER, str(folder)]
    env = {name: text for name, text in os.environ.items() if not name.startswith("SMD")}
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, env=env, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def check_board(run: Path, board: Path, pictures: bool = True) -> dict[str, dict[str, int]]:
    """Compare a board with the run that it is of; return how many scalars and histograms each of its runs has.

    Args:
        run: the run's folder, which has whole tensors, reductions or both.
        board: the folder of TensorBoard's files.
        pictures: of tensors that are not saved whole there are histograms, too.
    """
    found = read_board(board)
    expected = _expected(run)
    assert found.keys() == expected.keys()
    for name, (scalars, tensors) in expected.items():
        assert found[name]["scalars"].keys() == scalars.keys()
        for tag, values in scalars.items():
            np.testing.assert_array_equal(np.array(found[name]["scalars"][tag]), np.array(values), tag)
        histograms = found[name]["histograms"]
        whole = {tag for tag, values in tensors.items() if any(value is not None for _, value in values)}
        assert histograms.keys() == (tensors.keys() if pictures else whole)
        for tag in whole:
            steps = {one[0]: one for one in histograms[tag]}
            for step, value in tensors[tag]:
                if value is not None:
                    check_histogram(steps[step], value)
    return {name: {kind: len(tags) for kind, tags in kinds.items()} for name, kinds in found.items()}


def check_histogram(found: list[Any], value: Any) -> None:
    """Compare one histogram as the reader gives it with the values that it is of."""
    x = np.asarray(value, np.float64).reshape(-1)
    x = np.sort(x[np.isfinite(x)])
    low, high, count, total, squares, ends, counts = found[2:]
    assert (low, high, count) == (x[0], x[-1], x.size)
    np.testing.assert_allclose([total, squares], [x.sum(), x @ x], rtol=1e-5, atol=1e-6 * np.abs(x).sum())
    ends, counts = np.array(ends), np.array(counts)
    assert (np.diff(ends) > 0).all()
    assert ends[-1] >= x[-1]
    # A bucket has the end that is further from zero, the last one has both.
    up_to = np.where(ends < 0, np.searchsorted(x, ends, "right"), np.searchsorted(x, ends, "left"))
    up_to[-1] = x.size
    assert np.cumsum(counts).tolist() == up_to.tolist()


def _expected(run: Path) -> dict[str, Any]:
    trial = create_trial(str(run), timeout=0)
    trial.take_as_it_is()
    collections = trial.collections()
    expected: dict[str, Any] = {}
    for saved in chain(trial.iterate(), trial.iterate(collection="series")):
        first = saved.worker in ("worker_0", trial.workers()[0])
        place = saved.mode.name if first else f"{saved.mode.name}/{saved.worker}"
        scalars, tensors = expected.setdefault(place, ({}, {}))
        names = {name for name, one in collections.items() if saved.tensor in one.tensor_names}
        pictured = {name for name in names - SCALAR_COLLECTIONS if collections[name].save_histogram}
        # What a script gives by save_scalar is in no collection.
        order = {name: (name in ("all", "default"), name not in pictured, name) for name in names or {"losses"}}
        home = min(order, key=order.__getitem__)
        tag = re.sub(r"[^-/\w.]", "_", f"{home}/{saved.tensor}")
        stored = trial.tensor(saved.tensor).reduction_values(saved.mode_step, saved.mode, saved.worker)
        for (op, absolute), number in stored.items():
            if op == "histogram":
                continue
            full = f"{tag}/{'abs_' if absolute else ''}{op}"
            scalars.setdefault(full, []).append([saved.step, np.float32(number)])
        try:
            value = saved.value()
        except Exception:
            value = None
        if value is not None and value.size == 1 and value.dtype.kind in "fiub":
            own = tag.partition("/")[2] if home in SCALAR_COLLECTIONS else tag
            scalars.setdefault(own, []).append([saved.step, np.float32(value.reshape(-1)[0])])
        elif value is None and ("histogram", False) in stored and stored["histogram", False].sum() == 1:
            continue
        elif home in pictured and (value is None or (value.size > 1 and value.dtype.kind in "fiu")):
            others = 0 if value is None else int(np.sum(~np.isfinite(value)))
            if others or f"{tag}/nonfinite_count" in scalars:
                scalars.setdefault(f"{tag}/nonfinite_count", []).append([saved.step, np.float32(others)])
            if value is None or others < value.size:
                tensors.setdefault(tag, []).append((saved.step, value))
    return expected
