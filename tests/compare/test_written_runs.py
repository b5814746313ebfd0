"""Runs that a test writes: workers, names, steps and forms that are not the same in both."""

from __future__ import annotations

import numpy as np
import pytest

from smd_agent.cli import main
from smd_agent.compare.runs import Outcome
from smd_agent.compare.tensor_order import Kind
from smd_agent.core.modes import ModeKeys


def steps(digests, **changed):
    """Steps of a training that was not made: its weights are drawn, its digests are given."""
    for step, digest in enumerate(digests):
        drawn = np.random.default_rng(step)
        yield {
            "fc.weight": drawn.normal(size=(4, 3)).astype(np.float32),
            "input_digest/Net_0": np.array([digest]),
            "loss": np.float32(drawn.normal()),
            "gradient/fc.weight": drawn.normal(size=(4, 3)).astype(np.float32),
            **changed,
        }


def line(lines, label):
    found = [one.removeprefix(label).strip() for one in lines if one.startswith(f"{label} ")]
    return found[0] if found else None


def test_data_of_two_workers_swapped(write, compared, diff):
    mine, its = [10, 11, 12, 13], [20, 21, 22, 23]
    first = write(steps(mine), steps(its))
    second = write(steps([10, 11, 22, 23]), steps([20, 21, 12, 13]))
    found = compared(first, second)
    assert found.workers == ["worker_0", "worker_1"]
    assert (found.outcome, found.last_same.step, found.parted.step.step) == (Outcome.PARTED, 1, 2)
    assert [(one.tensor.here, one.worker) for one in found.parted.found] == [
        ("input_digest/Net_0", "worker_0"),
        ("input_digest/Net_0", "worker_1"),
    ]
    code, lines, _ = diff(first, second)
    assert code == 1
    assert line(lines, "Verdict") == "identical up to step 1; at step 2 inputs differ first: input_digest/Net_0"
    assert line(lines, "Likely") == "the data of worker_0 and worker_1 is swapped"


def test_data_of_one_worker(write, diff):
    first = write(steps([1, 2, 3]), steps([4, 5, 6]))
    second = write(steps([1, 2, 3]), steps([4, 7, 8]))
    _, lines, _ = diff(first, second)
    assert line(lines, "Verdict") == "identical up to step 0; at step 1 inputs differ first: input_digest/Net_0"
    assert line(lines, "Likely") == "other data, or another order or preparation of it, on worker_1 only"


def test_another_order_of_the_same_batches(write, diff):
    _, lines, _ = diff(write(steps([1, 2, 3, 4])), write(steps([1, 4, 2, 3])))
    assert line(lines, "Verdict").startswith("identical up to step 0; at step 1 inputs differ first")
    assert line(lines, "Likely") == "the same batches in another order"
    _, lines, _ = diff(write(steps([1, 2, 3, 4])), write(steps([1, 5, 6, 2])))
    assert line(lines, "Likely") == "other data, or another order or preparation of it"


def test_another_number_of_workers(write, diff):
    code, lines, _ = diff(write(steps([1, 2]), steps([3, 4])), write(steps([1, 2])))
    assert (code, line(lines, "Verdict")) == (0, "identical: 4 tensors over 2 steps")
    assert line(lines, "Only in A") == "worker_1"


def test_workers_that_are_called_otherwise(write, compared, diff):
    first = write(steps([1, 2]), steps([3, 4]))
    second = write(steps([1, 2]), steps([3, 5]))
    for file in [*second.rglob("*worker_*")]:
        number = file.name.index("worker_")
        file.rename(file.with_name(f"{file.name[:number]}gpu_{file.name[number:]}"))
    for file in second.rglob("index/*/*.json"):
        file.write_text(file.read_text().replace("_worker_", "_gpu_worker_"))
    found = compared(first, second)
    assert found.workers_only_here == found.workers_only_there == []
    assert [(one.worker, one.tensor.here) for one in found.parted.found] == [("worker_1", "input_digest/Net_0")]
    assert found.parted.step.step == 1


def test_shapes_that_change_from_step_to_step(write, compared, monkeypatch):
    monkeypatch.setattr("smd_agent.compare.runs._LAYOUTS_KEPT", 2)

    def of(last):
        for step in range(6):
            whole = np.full((step + 1, 3), 1.0 if step < 5 else last, np.float32)
            yield {f"extra{step}.weight": {"mean": 1.0}, "fc.weight": whole, "loss": np.float32(step)}

    assert compared(write(of(1.0)), write(of(1.0))).tensors == 8
    found = compared(write(of(1.0)), write(of(2.0)))
    assert (found.last_same.step, found.parted.step.step, found.parted.found[0].tensor.here) == (4, 5, "fc.weight")


def test_other_names(write, compared, diff):
    def of(prefix, second=0.0):
        for step in range(2):
            yield {
                f"{prefix}1.weight": np.full((4, 3), 1.0 + step, np.float32),
                f"{prefix}2.weight": np.full((4, 3), 5.0 + second, np.float32),
                "loss": np.float32(step),
            }

    found = compared(write(of("a.fc")), write(of("b.linear")))
    assert found.outcome is Outcome.IDENTICAL
    assert found.renamed == {"a.fc1.weight": "b.linear1.weight", "a.fc2.weight": "b.linear2.weight"}
    assert found.only_here == found.only_there == []
    code, lines, _ = diff(write(of("a.fc")), write(of("b.linear", second=1.0)))
    assert code == 1
    assert line(lines, "Verdict") == "weights differ at step 0: another seed or initialisation"
    names = "a.fc1.weight | b.linear1.weight and a.fc2.weight | b.linear2.weight"
    assert line(lines, "Renamed") == f"2 tensors, taken for the same: {names}"


def test_tensors_that_only_one_has(write, compared, diff):
    more = steps([1, 2], **{"head.weight": np.zeros((9, 9), np.float32)})
    first, second = write(more), write(steps([1, 2]))
    found = compared(first, second)
    assert (found.outcome, found.only_here, found.only_there) == (Outcome.IDENTICAL, ["head.weight"], [])
    _, lines, _ = diff(first, second)
    assert line(lines, "Only in A") == "1 tensor: head.weight"
    # Of one shape, but not as many.
    one, two = {"a.weight": np.ones(3)}, {"b.weight": np.ones(3), "c.weight": np.ones(3)}
    found = compared(write([{**one, "loss": 1.0}]), write([{**two, "loss": 1.0}]))
    assert (found.renamed, found.only_here, found.only_there) == ({}, ["a.weight"], ["b.weight", "c.weight"])


def test_the_first_step_that_was_saved_is_not_the_first_of_the_training(write, diff):
    def of(weight):
        return write([{"fc.weight": np.full((4, 3), weight), "loss": 1.0}], start=50)

    _, lines, _ = diff(of(1.0), of(2.0))
    assert line(lines, "Verdict") == "at step 50 weights differ first: fc.weight"
    before = "or something in steps 0 to 49, which were not compared"
    assert line(lines, "Likely") == f"another seed, initialisation or checkpoint, in 1 weight, {before}"


def test_steps_that_only_one_has(write, compared, diff):
    first, second = write(steps([1, 2, 3, 4])), write(steps([1, 2]))
    found = compared(first, second)
    assert (found.outcome, found.steps, found.steps_only_here, found.steps_only_there) == (Outcome.IDENTICAL, 2, 2, 0)
    assert line(diff(first, second)[1], "Only in A") == "2 steps"


def test_statistics_that_both_have(write, compared):
    def of(**statistics):
        return write([{"fc.weight": statistics, "loss": 1.0}])

    same = of(l2=2.0, mean=0.5), of(mean=0.5, max=3.0)
    assert compared(*same).outcome is Outcome.IDENTICAL
    apart = compared(of(l2=2.0, mean=0.5), of(l2=2.0, mean=0.25)).parted.found[0].apart
    assert (apart.what, apart.here, apart.there) == ("mean", 0.5, 0.25)
    nothing = compared(of(l2=2.0), of(mean=0.5))
    assert (nothing.not_alike, nothing.tensors) == (["fc.weight"], 1)
    histograms = [np.zeros(260, np.int64), np.zeros(260, np.int64)]
    histograms[0][190:194] = 250
    histograms[1][191:195] = 250
    apart = compared(of(histogram=histograms[0]), of(histogram=histograms[1])).parted.found[0].apart
    assert (apart.what, apart.relative) == ("histogram 190", 0.25)


def test_text_that_differs(write, diff):
    first, second = (write([{"hyperparameters/eta": text, "loss": 1.0}]) for text in ("0.3 of all", "0.1 of all"))
    code, lines, _ = diff(first, second)
    assert code == 1
    assert line(lines, "Verdict") == "at step 0 hyperparameters/eta differs first: 0.3 of all | 0.1 of all"
    assert line(lines, "Likely") == "another configuration of the training"


def test_a_tree_of_a_later_round(write, diff):
    def of(gains):
        return write([{"trees/Gain": np.array([1.0, gain]), "loss": np.float64(gain)} for gain in gains])

    _, lines, _ = diff(of([3.0, 2.0, 1.0]), of([3.0, 2.0, 0.5]))
    assert line(lines, "Verdict") == "identical up to step 1; at step 2 trees/Gain differs first"
    assert line(lines, "Likely").startswith("another tree: ")


def test_nan_is_like_nan_and_like_nothing_else(write, compared):
    values = np.array([1.0, np.nan, np.inf], np.float32)
    other = np.array([1.0, np.nan, 2.0], np.float32)
    run = write([{"fc.weight": values, "loss": np.float32(np.nan)}])
    assert compared(run, write([{"fc.weight": values, "loss": np.float32(np.nan)}])).outcome is Outcome.IDENTICAL
    found = compared(run, write([{"fc.weight": other, "loss": np.float32(np.nan)}]))
    assert found.parted.found[0].apart.what == "element (2)"
    assert np.isinf(found.parted.found[0].apart.relative)
    found = compared(run, write([{"fc.weight": values, "loss": np.float32(3)}]))
    assert [one.tensor.kind for one in found.parted.found] == [Kind.LOSS]


def test_noise_that_grows(write, compared, diff):
    def of(factor):
        for step in range(20):
            yield {"fc.weight": np.full((4, 3), 1.0 + factor * 3.0**step, np.float64), "loss": np.float64(1.0)}

    # In float64, whose noise is below 1e-13.
    first, second = write(of(0.0)), write(of(1e-15))
    found = compared(first, second)
    assert found.outcome is Outcome.GROWN
    assert (found.first.step.step, found.parted) == (0, None)
    code, lines, _ = diff(first, second, "--tolerance", "auto")
    assert code == 1
    where = found.left_noise.step.step
    assert 1 < where < 10
    assert line(lines, "Verdict") == f"float noise that grows: within its bounds before step {where}, beyond them there"
    # The same in one leap is no growth.
    leap = write({"fc.weight": np.full((4, 3), 1.0 + (1e-15, 1e-4)[step > 9]), "loss": 1.0} for step in range(20))
    assert compared(first, leap).parted.step.step == 10


def test_a_shape_that_differs(write, diff):
    first, second = (write([{"fc.weight": np.ones(shape), "loss": 1.0}]) for shape in ((4, 3), (3, 4)))
    code, lines, _ = diff(first, second)
    assert code == 1
    assert any(one.split()[:5] == ["fc.weight", "weight", "shape", "4x3", "3x4"] for one in lines)


def test_steps_of_modes_are_their_own(write, diff):
    first, second = write(steps([1]), mode=ModeKeys.EVAL), write(steps([2]), mode=ModeKeys.EVAL)
    assert line(diff(first, second)[1], "Verdict") == "at EVAL step 0 inputs differ first: input_digest/Net_0"
    code, lines, err = diff(first, write(steps([1])))
    assert (code, lines, len(err)) == (2, [], 1)
    assert err[0].endswith("have no step in common: EVAL 0 to EVAL 0 | TRAIN 0 to TRAIN 0")


def test_runs_that_cannot_be_compared(write, diff, tmp_path):
    run = write([{"a.weight": 1.0}])
    code, lines, err = diff(run, write([{"loss": np.ones((2, 2))}]))
    assert (code, lines, len(err)) == (2, [], 1)
    assert err[0].endswith("have saved no tensor in common at the 1 step that both have")
    code, lines, err = diff(run, tmp_path / "none")
    assert (code, lines, len(err)) == (2, [], 1)
    with pytest.raises(SystemExit) as ended:
        main(["diff", str(run)])
    assert ended.value.code == 2


def test_a_value_that_cannot_be_read(write, diff):
    runs = [write([{"fc.weight": np.ones((40, 3)), "loss": 1.0}]) for _ in range(2)]
    (events,) = (runs[1] / "events").rglob("*.tfevents")
    content = bytearray(events.read_bytes())
    content[content.index(np.ones(9).tobytes()) + 70] ^= 1
    events.write_bytes(content)
    code, lines, err = diff(*runs)
    assert code == 2
    assert line(lines, "Verdict") == "identical: 2 tensors over 1 step"
    assert len(err) == 1
    assert "fc.weight" in err[0]
