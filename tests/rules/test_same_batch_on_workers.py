"""SameBatchOnWorkers, on ranks that read all of the data, or a part of it each."""

from __future__ import annotations

import numpy as np
import pytest

from smd_agent.rules import SameBatchOnWorkers
from smd_agent.rules.finding import Severity

DIGEST = "input_digest/Net_0"


def test_each_rank_reads_all_of_the_data(ranks):
    (found,) = ranks("same_batches").findings(SameBatchOnWorkers())
    assert (found.tensor, found.severity, found.worker) == (DIGEST, Severity.WARNING, "")
    assert (found.first_step, found.last_step, found.steps) == (4, 11, 8)
    assert found.evidence == {"same": 5, "compared": 5, "workers": 2}


# Parts of one model need the same inputs; and that a batch never changes is for another rule.
@pytest.mark.parametrize("way", ["data_parallel", "by_hand", "same_batches_of_experts", "one_batch"])
def test_ranks_with_data_or_models_of_their_own(ranks, way):
    assert ranks(way).verdict(SameBatchOnWorkers()).findings == []


def of_two(workers, same, steps):
    def values(worker, step):
        digest = 1000 * step + (0 if step in same else worker)
        return {DIGEST: np.array([digest]), "Net_a.weight": np.arange(3.0) + step}

    return workers(values, steps, count=2)


@pytest.mark.parametrize(
    "same, steps, finds",
    [(range(5), 5, True), (range(4), 5, False), (range(5), 9, True), (range(5), 10, False), (range(3, 8), 8, True)],
)
def test_at_how_many_steps(workers, same, steps, finds):
    assert bool(of_two(workers, same, steps).findings(SameBatchOnWorkers())) == finds


def test_two_of_three_workers(workers):
    def values(worker, step):
        return {DIGEST: np.array([10 * step + max(worker, 1)]), "Net_a.weight": np.arange(3.0) + step}

    (found,) = workers(values, 6, count=3).findings(SameBatchOnWorkers())
    assert found.evidence == {"same": 5, "compared": 5, "workers": 3}


def test_a_run_of_one_worker_is_not_for_it(clean):
    assert clean["sgd"].verdict(SameBatchOnWorkers()).not_for_it == ["SameBatchOnWorkers"]
