"""Overfit, on losses of evaluations that rise or not, and as smdebug documents it."""

from __future__ import annotations

import numpy as np
import pytest

from smd_agent.core.modes import ModeKeys
from smd_agent.rules import Overfit
from smd_agent.rules.finding import Severity

TRAIN, EVAL, GLOBAL = ModeKeys.TRAIN, ModeKeys.EVAL, ModeKeys.GLOBAL
FALLING = [*np.geomspace(2.3, 0.05, 12)]
RISING = [2.3, 1.5, 1.0, 0.9, 0.85, 0.8, 0.85, 0.95, 1.05, 1.15, 1.25, 1.35]


def jitter(seed, size=1.0):
    rng = np.random.default_rng(seed)
    return lambda: 1 + size * rng.normal()


@pytest.fixture
def losses(written):
    """Write epochs of four training steps and two evaluation steps around given means."""

    def write(training, validation, noise=0.0, seed=0):
        run, factor = written(losses="loss"), jitter(seed, noise)
        for trained, evaluated in zip(training, validation, strict=True):
            for _ in range(4):
                run.step(loss=trained * factor())
            for _ in range(2):
                run.step(EVAL, loss=evaluated * factor())
        return run.ended()

    return write


def test_a_validation_loss_that_rises(losses):
    (found,) = losses(FALLING, RISING).findings(Overfit())
    assert (found.severity, found.tensor, found.mode) == (Severity.WARNING, "loss", EVAL)
    # The best of three in the middle is that of epoch 5 or its neighbours, 0.85.
    assert found.evidence == {
        "validation": pytest.approx(1.25),
        "best": pytest.approx(0.85),
        "training": pytest.approx(FALLING[10]),
        "training_then": pytest.approx(FALLING[4]),
    }
    assert (found.first_step, found.last_step, found.steps) == (10, 22, 7)


def test_another_training_in_the_same_run_begins_anew(losses):
    """The second one is harder: its validation loss is far above the best of the first one."""
    harder = [value + 1 for value in [*FALLING[:6], *FALLING[:6]]]
    assert losses([*FALLING, *FALLING], [*FALLING, *harder]).findings(Overfit()) == []
    (found,) = losses([*FALLING, *FALLING], [*FALLING, *RISING]).findings(Overfit())
    assert found.first_step == 34
    # A training loss that goes up by less than half of its fall goes on.
    shaken = [*FALLING[:8], 1.1, *FALLING[9:]]
    assert losses(shaken, RISING).findings(Overfit())[0].first_step == 10


@pytest.mark.parametrize("end, finds", [(1.03, True), (1.01, False)])
def test_the_limit(losses, end, finds):
    """A fifth above the best of 0.85 is 1.02."""
    validation = [*RISING[:8], 1.0, end, end, end]
    assert bool(losses(FALLING, validation).findings(Overfit())) == finds
    assert bool(losses(FALLING, validation).findings(Overfit(rise=1.01 / 0.85 - 1 - 1e-6))) is True


@pytest.mark.parametrize(
    "training, validation",
    [
        (FALLING, FALLING),
        # Worse than the training, as with anything that was not seen, but not worse than before.
        (FALLING, [3 * loss for loss in FALLING]),
        (FALLING, [max(loss, 0.8) for loss in FALLING]),
        # Both rise: that is something else.
        (FALLING[::-1], RISING),
        # It becomes better again.
        (FALLING, [*RISING[:-2], 0.8, 0.7]),
        # Nearly all that was gained stays.
        (FALLING, [2.3, 0.5, 0.1, 0.05, 0.04, 0.03, 0.04, 0.05, 0.06, 0.07, 0.08, 0.09]),
        (FALLING, [-loss for loss in RISING]),
    ],
)
def test_losses_that_are_well(losses, training, validation):
    assert losses(training, validation).findings(Overfit()) == []


@pytest.mark.parametrize("noise", [0.05, 0.2, 0.5])
def test_noise_alone_is_nothing(losses, noise):
    for seed in range(8):
        assert losses([1.0] * 12, [1.0] * 12, noise, seed).findings(Overfit()) == []
        assert losses(FALLING, [max(loss, 0.8) for loss in FALLING], noise, seed).findings(Overfit()) == []


def test_a_rise_stands_out_of_noise(losses):
    assert losses([*FALLING, 0.04, 0.03], [*RISING, 1.5, 1.7], 0.03).findings(Overfit())


@pytest.fixture
def rounds(written):
    """Write the losses of two evaluation sets by round, and what is known of the sets at the first one."""

    def write(training, validation, names=("train-rmse", "test-rmse"), **facts):
        run = written(losses="^[^-/]+-", data_facts="^data_facts/")
        known = {f"data_facts/evaluation/{name.replace('__', '/')}": [value] for name, value in facts.items()}
        for trained, evaluated in zip(training, validation, strict=True):
            run.step(GLOBAL, **{names[0]: [trained], names[1]: [evaluated]}, **known)
            known = {}
        return run.ended()

    return write


SLOWLY = [8.0, 7.0, 6.5, 6.0, 5.98, 6.0, 6.05, 6.1, 6.15, 6.2, 6.22, 6.25, 6.25, 6.25]
ON_AND_ON = [*np.geomspace(9, 0.5, len(SLOWLY))]


def test_a_smaller_rise_is_enough_with_boosted_trees(rounds, losses):
    (found,) = rounds(ON_AND_ON, SLOWLY).findings(Overfit())
    assert (found.severity, found.tensor, found.mode) == (Severity.WARNING, "test-rmse", GLOBAL)
    assert (found.evidence["best"], found.evidence["validation"]) == (6.0, 6.25)
    assert losses(ON_AND_ON, SLOWLY).findings(Overfit()) == []


@pytest.mark.parametrize(
    "training, validation, finds",
    [
        # 3 % above the best of 6 is 6.18.
        (ON_AND_ON, [min(loss, 6.181) for loss in SLOWLY], True),
        (ON_AND_ON, [min(loss, 6.179) for loss in SLOWLY], False),
        # The training loss has not halved since the best round.
        ([max(loss, 0.51 * ON_AND_ON[3]) for loss in ON_AND_ON], SLOWLY, False),
        ([max(loss, 0.49 * ON_AND_ON[3]) for loss in ON_AND_ON], SLOWLY, True),
        # Of what was gained nearly all is left.
        (ON_AND_ON, [50.0, 40.0, 20.0, *SLOWLY[3:]], False),
    ],
)
def test_the_limits_with_boosted_trees(rounds, training, validation, finds):
    assert bool(rounds(training, validation).findings(Overfit())) == finds


def test_a_set_that_early_stopping_goes_by_is_left_alone(rounds):
    own, other = {"train__training_rows": 1}, {"test__training_rows": 0}
    watched = {"test__stopping_rounds": 15, "test__other_sets": 1}
    assert rounds(ON_AND_ON, SLOWLY, **own, **other).findings(Overfit())
    assert rounds(ON_AND_ON, SLOWLY, **own, **other, **watched).findings(Overfit()) == []
    # It goes by the training data, which does not keep the other one from rising.
    watched = {"train__stopping_rounds": 15, "train__other_sets": 1}
    assert rounds(ON_AND_ON, SLOWLY, **own, **other, **watched).findings(Overfit())


def test_the_set_of_the_training_is_known_by_its_rows(rounds):
    names = ("validation_0-rmse", "validation_1-rmse")
    assert rounds(ON_AND_ON, SLOWLY, names).verdict(Overfit()).not_for_it == ["Overfit"]
    facts = {"validation_0__training_rows": 1, "validation_1__training_rows": 0}
    (found,) = rounds(ON_AND_ON, SLOWLY, names, **facts).findings(Overfit())
    assert found.tensor == "validation_1-rmse"
    # Its name does not make it one.
    names = ("train-rmse", "train_2-rmse")
    facts = {"train__training_rows": 1, "train_2__training_rows": 0}
    assert rounds(ON_AND_ON, SLOWLY, names, **facts).findings(Overfit())[0].tensor == "train_2-rmse"


def test_a_cross_validation_is_a_note(rounds):
    names = ("train-rmse-mean", "test-rmse-mean")
    (found,) = rounds(ON_AND_ON, SLOWLY, names).findings(Overfit())
    assert (found.severity, found.tensor) == (Severity.NOTE, "test-rmse-mean")


def test_runs_without_evaluations_are_not_for_it(losses, written):
    run = written(losses="loss")
    for loss in FALLING:
        run.step(loss=loss)
    verdict = run.ended().verdict(Overfit())
    assert (verdict.not_for_it, verdict.not_judged) == (["Overfit"], [])
    assert losses(FALLING[:4], FALLING[:4]).verdict(Overfit()).not_for_it == ["Overfit"]
    assert losses(FALLING[:5], FALLING[:5]).verdict(Overfit()).judged == ["Overfit"]


def test_losses_of_keras_are_those_of_whole_evaluations(written):
    run = written(losses="loss")
    for trained, evaluated in zip(FALLING, RISING, strict=True):
        run.step(loss=trained)
        run.step(EVAL, loss=evaluated * 1.1)
        run.step(loss=trained, val_loss=evaluated)
    (found,) = run.ended().findings(Overfit())
    assert (found.tensor, found.evidence["best"]) == ("val_loss", 0.85)


def test_trees_that_learn_noise_by_heart(boosted):
    rng = np.random.default_rng(0)
    rows, more = rng.normal(size=(60, 5)), rng.normal(size=(200, 5))
    labels = (rows[:, 0] + 2 * rng.normal(size=60) > 0).astype(int)
    others = (more[:, 0] + 2 * rng.normal(size=200) > 0).astype(int)
    how = {"objective": "binary:logistic", "max_depth": 6, "eta": 0.5}
    run = boosted(how, rows, labels, 60, train=(rows, labels), test=(more, others))
    (found,) = run.findings(Overfit())
    assert (found.tensor, found.mode) == ("test-logloss", GLOBAL)
    # Without a set of the training there is nothing to compare with.
    run = boosted(how, rows, labels, 60, validation_0=(rows, labels), validation_1=(more, others))
    assert run.verdict(Overfit()).not_for_it == ["Overfit"]
    learned = (more[:, 0] > 0).astype(int)
    parts = {"train": (more[:150], learned[:150]), "test": (more[150:], learned[150:])}
    run = boosted(how | {"eta": 0.1}, *parts["train"], 60, **parts)
    assert run.findings(Overfit()) == []


def test_as_it_is_documented(losses, met_at):
    trial = losses([1.0, 1.0, 1.0, 1.0], [1.0, 1.09, 1.11, 1.25]).trial()
    # Each epoch is six steps, of which the last two evaluate.
    assert met_at(Overfit(base_trial=trial), trial) == [16, 17, 22, 23]
    assert met_at(Overfit(base_trial=trial, patience="3"), trial) == [22, 23]
    assert met_at(Overfit(base_trial=trial, ratio_threshold="0.24"), trial) == [22, 23]
    assert met_at(Overfit(base_trial=trial, ratio_threshold="0.25"), trial) == []
    assert met_at(Overfit(base_trial=trial, start_step=17), trial) == [22, 23]
    assert met_at(Overfit(base_trial=trial, tensor_regex=["nothing"]), trial) == []
    assert met_at(Overfit(base_trial=trial, tensor_regex="lo.s"), trial) == [16, 17, 22, 23]
    rule = Overfit(base_trial=trial)
    assert (rule.start_step, rule.patience, rule.ratio_threshold) == (0, 1, 0.1)


def test_the_mean_of_a_training_and_of_an_evaluation(written, met_at):
    run = written(losses="loss")
    for loss in (3.0, 1.0):
        run.step(loss=loss)
    for loss in (1.0, 2.0, 5.0):
        run.step(EVAL, loss=loss)
    trial = run.ended().trial()
    # The means are 2 of the training, and 1, 1.5 and 2.67 of the evaluation.
    assert met_at(Overfit(base_trial=trial), trial) == [4]
    assert met_at(Overfit(base_trial=trial, ratio_threshold=0.4), trial) == []


def test_clean_trainings_are_silent(clean):
    assert {name: found for name, run in clean.items() if (found := run.verdict(Overfit()).findings)} == {}
