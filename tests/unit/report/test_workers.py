"""Several workers beside each other: how far they are apart, and which one is odd."""

from __future__ import annotations

import numpy as np
import pytest
from harness.pages import opened, page_of
from harness.rule_runs import COLLECTIONS
from harness.written_runs import started

from smd_agent.core.collection_manager import CollectionManager
from smd_agent.core.modes import ModeKeys
from smd_agent.report.collecting import collect


def run_of(folder, norms):
    """Write a run in which worker N has gradients with the norms ``norms[N]``, step by step."""
    manager = CollectionManager()
    for name, pattern in COLLECTIONS.items():
        manager.get(name).include(pattern)
    manager.set_num_workers(len(norms))
    writers = []
    for number in range(len(norms)):
        writer = started(folder, f"worker_{number}", alone=False)
        writer.write_collections(manager.to_json())
        writers.append(writer)
    for number, writer in enumerate(writers):
        for step, norm in enumerate(norms[number]):
            file = writer.begin_step(step, ModeKeys.TRAIN, step)
            file.add("gradient/a", np.array([norm, 0.0]))
            file.add("loss", np.array(1.0))
            writer.commit(file)
        assert writer.flush()
    for writer in writers:
        writer.close(True)
    return opened(folder)


@pytest.mark.parametrize(
    "factors, odd",
    [
        ((1, 1.001, 0.999, 1.5), "worker_3"),
        ((1, 0.2, 1.001), "worker_1"),
        ((1, 1.001, 0.999), None),
        ((1, 1.2, 0.8, 1.1), None),
        ((1, 5), None),
    ],
)
def test_the_odd_one(tmp_path, factors, odd):
    trial = run_of(tmp_path, [[factor * (step + 1) for step in range(5)] for factor in factors])
    workers = collect(trial, []).workers
    found = workers.odd_one()
    assert (found and found.worker) == odd
    assert len(workers.spreads()) == len(factors)


def test_the_distance_is_a_share_of_the_middle(tmp_path):
    workers = collect(run_of(tmp_path, [[1.0] * 3, [1.0] * 3, [1.5] * 3]), []).workers
    distances = {one.worker: one.distances for one in workers.spreads()}
    assert distances["worker_2"] == {"loss": 0.0, "gradient": pytest.approx(0.5)}
    assert distances["worker_0"] == {"loss": 0.0, "gradient": 0.0}


def test_the_first_one_that_is_not_finite(tmp_path):
    norms = [[1.0, 1.0, 1.0, np.nan], [1.0, np.nan, np.nan, np.nan], [1.0, 1.0, 1.0, np.nan]]
    trial = run_of(tmp_path, norms)
    found = collect(trial, []).workers.odd_one()
    assert (found.worker, found.not_finite_from) == ("worker_1", 1)
    page = page_of(tmp_path)
    assert "worker_1 is not like the others: not finite from step 1 on" in page


def test_one_worker_has_nobody_beside_it(tmp_path):
    assert collect(run_of(tmp_path, [[1.0] * 3]), []).workers is None
