"""CheckInputImages, on images with a mean beside 0."""

from __future__ import annotations

import numpy as np
import pytest
from harness.rule_runs import found, met, verdict, written

from smd_agent.core.modes import ModeKeys
from smd_agent.rules import CheckInputImages

NAME = "hybridsequential0_input_0"


def images(*means, count=100, name=NAME):
    """A batch with these means of its colours."""
    values = np.tile([-1.0, 1.0], 8).reshape(4, 4)
    return {name: np.broadcast_to(values + np.reshape(means, (1, -1, 1, 1)), (count, len(means), 4, 4))}


@pytest.mark.parametrize(
    "means, finds",
    [((0.0, 0.0, 0.21), True), ((0.0, 0.0, 0.19), False), ((-0.21,), True), ((-0.19,), False), ((0.1, -0.21), True)],
)
def test_as_it_is_documented(tmp_path, means, finds):
    trial = written(tmp_path / "run", [images(*means)] * 7)
    # 500 images are seen at the fifth step.
    assert met(trial, CheckInputImages(base_trial=trial)) == [4, 5, 6] * finds
    assert met(trial, CheckInputImages(base_trial=trial, threshold_mean="0.1")) == [4, 5, 6]
    assert met(trial, CheckInputImages(base_trial=trial, threshold_samples=700)) == [6] * finds
    assert met(trial, CheckInputImages(base_trial=trial, threshold_samples=701)) == []
    assert met(trial, CheckInputImages(base_trial=trial, regex="nothing")) == []


def test_the_mean_is_over_all_steps(tmp_path):
    trial = written(tmp_path / "run", [images(0.5), images(-0.5, count=50), images(0.1, count=350), images(0.5)])
    (one,) = verdict(trial, CheckInputImages(threshold_mean=0.1)).findings
    assert (one.first_step, one.evidence["images"]) == (2, 500)
    assert one.evidence["mean"] == pytest.approx((50 - 25 + 35) / 500)


def test_the_axis_of_colours(tmp_path):
    value = np.moveaxis(images(0.3, 0.0, -0.3)[NAME], 1, -1)
    trial = written(tmp_path / "run", [{NAME: value}] * 5)
    assert met(trial, CheckInputImages(base_trial=trial, channel="-1")) == [4]
    assert met(trial, CheckInputImages(base_trial=trial, channel=3)) == [4]


@pytest.mark.parametrize("mean, finds", [(0.21, True), (0.19, False)])
def test_from_the_mean_alone(tmp_path, mean, finds):
    trial = written(tmp_path / "run", [{"Net_input_0": {"mean": mean, "shape": (250, 3, 8, 8)}}] * 3)
    assert found(trial, CheckInputImages()) == ({"Net_input_0": (1, 2)} if finds else {})


def test_whole_values_and_means_in_turn(tmp_path):
    steps = [images(0.9, -0.3, name="Net_input_0"), {"Net_input_0": {"mean": 0.3, "shape": (400, 2, 4, 4)}}]
    (one,) = verdict(written(tmp_path / "run", steps), CheckInputImages()).findings
    assert one.evidence == {"mean": pytest.approx(0.3), "images": 500}


@pytest.mark.parametrize("shape", [(600, 3), (600, 16, 4, 4), (0, 3, 4, 4)])
def test_what_is_no_image(tmp_path, shape):
    trial = written(tmp_path / "run", [{"Net_input_0": {"mean": 9.0, "shape": shape}}])
    assert verdict(trial, CheckInputImages()).findings == []


def test_too_few_images_are_no_judgement(tmp_path):
    (one,) = verdict(written(tmp_path / "run", [images(9.0, name="Net_input_0")] * 4), CheckInputImages()).not_judged
    assert one.reason == "it takes 500 images to judge, and there are 400"


def test_modes_are_told_apart(tmp_path):
    trial = written(tmp_path / "run", [images(0.3, count=300)] * 3, [ModeKeys.TRAIN, ModeKeys.EVAL, ModeKeys.TRAIN])
    assert met(trial, CheckInputImages(base_trial=trial)) == [2]
    assert CheckInputImages.only_by_name
