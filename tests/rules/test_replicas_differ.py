"""ReplicasDiffer, on ranks that average their gradients and on ranks of which nobody does."""

from __future__ import annotations

import numpy as np
import pytest

from smd_agent.rules import ReplicasDiffer
from smd_agent.rules.finding import Severity

EVERY = {f"Net_{layer}.{kind}" for layer in ("inner", "norm", "head") for kind in ("weight", "bias")}


@pytest.mark.parametrize("way", ["data_parallel", "by_hand", "experts", "averaged_now_and_then"])
def test_ranks_that_keep_their_weights_the_same_or_never_had_the_same(ranks, way):
    assert ranks(way).findings(ReplicasDiffer()) == []


def test_nothing_averages_the_gradients(ranks):
    found = ranks("nothing_reduced").findings(ReplicasDiffer())
    assert {one.tensor for one in found} == EVERY
    assert {(one.severity, one.first_step, one.last_step, one.worker) for one in found} == {
        (Severity.WARNING, 3, 11, "")
    }
    assert found[0].evidence["same"] == 0


def test_a_layer_that_was_made_after_the_model_was_wrapped(ranks):
    found = ranks("late_head").findings(ReplicasDiffer())
    assert {(one.tensor, one.severity) for one in found} == {
        ("Net_head.bias", Severity.PROBLEM),
        ("Net_head.weight", Severity.PROBLEM),
    }
    assert (found[0].evidence["same"], found[0].evidence["weights"]) == (4, 6)


def of_two(workers, apart, steps=6, begins_same=True):
    """Write a run in which one of two weights differs between workers by this part of its size."""
    base = np.array([1.0, -2.0, 3.0])

    def values(worker, step):
        differs = worker and (apart(step) if step else not begins_same)
        return {"Net_a.weight": base * (1 + 0.01 * step), "Net_b.weight": base * (1 + 0.01 * step + differs)}

    return workers(lambda worker, step: values(worker, step), steps, count=2)


@pytest.mark.parametrize("apart, finds", [(0.9e-5, False), (1.1e-5, True)])
def test_how_far_apart(workers, apart, finds):
    assert bool(of_two(workers, lambda step: apart).findings(ReplicasDiffer())) == finds


@pytest.mark.parametrize(
    "steps, finds",
    [((3, 4, 5), True), ((2, 3, 4), False), ((4, 5), False), ((1, 2, 3, 5), False), ((1, 2, 3, 4, 5), True)],
)
def test_some_steps_in_a_row_and_to_the_end(workers, steps, finds):
    assert bool(of_two(workers, lambda step: 0.1 * (step in steps)).findings(ReplicasDiffer())) == finds


def test_workers_that_never_had_the_same_weights(workers):
    assert of_two(workers, lambda step: 0.1, begins_same=False).findings(ReplicasDiffer()) == []


def test_one_of_three_workers(workers):
    base = np.array([1.0, -2.0])
    run = workers(lambda worker, step: {"Net_a.weight": base + 0.1 * step * (worker == 2)}, 6, count=3)
    (found,) = run.findings(ReplicasDiffer())
    assert (found.first_step, found.steps) == (3, 3)


def test_a_run_of_one_worker_is_not_for_it(workers):
    run = workers(lambda worker, step: {"Net_a.weight": np.arange(3.0)}, 6, count=1)
    assert run.verdict(ReplicasDiffer()).not_for_it == ["ReplicasDiffer"]
