"""EvaluationOfOtherScale, on inputs that are scaled alike, on others, and on a training of each framework's kind."""

from __future__ import annotations

import numpy as np
import pytest

import smd_agent as smd
from smd_agent.rules import EvaluationOfOtherScale
from smd_agent.rules.finding import Severity

TRAIN, EVAL = smd.modes.TRAIN, smd.modes.EVAL
SAMPLE = np.random.default_rng(0).normal(size=1000)


def said(written, trained, evaluated, trainings=4, evaluations=3, **rule):
    """What is said of a run that has these inputs in each step of training and of evaluation, perhaps with facts."""
    run = written(usage="^usage/")
    for count, mode, data in ((trainings, TRAIN, trained), (evaluations, EVAL, evaluated)):
        for number in range(count):
            now = data(number) if callable(data) else data
            values, more = now if isinstance(now, tuple) else (now, {})
            numbers = {"mean": np.mean(values), "std": np.std(values), **more}
            run.step(mode, **{f"usage/input/Net_0/{name}": np.float64(one) for name, one in numbers.items()})
    return run.ended().verdict(EvaluationOfOtherScale(**rule)).findings


OTHERS = {
    "raw, of another unit": 50 + 9 * SAMPLE,
    "bytes": 127 * (1 + SAMPLE),
    "scaled twice": SAMPLE / 255,
    "only moved": SAMPLE + 20,
}


@pytest.mark.parametrize("name", OTHERS)
def test_what_is_not_scaled_alike(written, name):
    evaluated = OTHERS[name]
    (found,) = said(written, SAMPLE, evaluated)
    assert found.tensor == "usage/input/Net_0/std"
    assert found.severity is Severity.WARNING
    assert found.steps == 3
    assert found.evidence == {
        "std": pytest.approx(np.std(evaluated)),
        "mean": pytest.approx(np.mean(evaluated)),
        "std_trained": pytest.approx(np.std(SAMPLE)),
        "mean_trained": pytest.approx(np.mean(SAMPLE)),
    }


def changing(number):
    return SAMPLE * 10.0 ** (number % 3 - 1)


ALIKE = {
    "the same": (SAMPLE, SAMPLE),
    "twice as large": (SAMPLE, 2 * SAMPLE + 1),
    "constant in evaluation": (SAMPLE, np.ones(9)),
    "constant in training": (np.ones(9), SAMPLE),
    "of every scale in training": (changing, 50 * SAMPLE),
    "of every scale in evaluation": (SAMPLE, changing),
    "not finite": (SAMPLE, np.full(9, np.nan)),
    "integers": ((SAMPLE, {"integers": 1}), 100 * SAMPLE),
}


@pytest.mark.parametrize("name", ALIKE)
def test_what_is_scaled_alike_or_varies(written, name):
    assert said(written, *ALIKE[name]) == []


def test_it_takes_several_steps(written):
    assert said(written, SAMPLE, 100 * SAMPLE, evaluations=2) == []
    assert len(said(written, SAMPLE, 100 * SAMPLE, evaluations=2, patience=2)) == 1


def test_floats_in_training_and_bytes_in_evaluation(written):
    assert len(said(written, SAMPLE, (100 * SAMPLE, {"integers": 1}))) == 1


@pytest.mark.parametrize("scale, count", [(100, 1), (1, 0)])
def test_a_training_of_pytorch(trained, scale, count):
    torch = pytest.importorskip("torch")

    def training(capture):
        net = torch.nn.Linear(3, 1)
        hook = capture(net)
        optimizer = torch.optim.SGD(net.parameters(), 0.01)
        for _ in range(4):
            hook.set_mode(TRAIN)
            optimizer.zero_grad()
            net(torch.randn(16, 3)).square().mean().backward()
            optimizer.step()
            hook.set_mode(EVAL)
            with torch.no_grad():
                net(scale * torch.randn(16, 3))

    assert len(trained(training).findings(EvaluationOfOtherScale())) == count
