"""What is in ``losses`` of a PyTorch run: losses only, the trained one first, under one name in TRAIN and EVAL."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")

from harness.printed import Printed, every_step
from harness.runner import SUBJECTS

from smd_agent.core.modes import ModeKeys

PROGRAM = SUBJECTS / "pytorch/printed_losses.py"
TRAIN, EVAL = ModeKeys.TRAIN, ModeKeys.EVAL


def play(runner, scene, **parameters):
    return Printed(runner, PROGRAM, scene, config=every_step("weights", "gradients", **parameters))


def test_a_loss_that_owns_the_model_has_none_of_its_parameters(runner):
    found = play(runner, "loss_owns_the_model")
    assert found.names("losses") == {"CosineSimilarityLoss_output_0"}
    assert found.is_what_was_printed("CosineSimilarityLoss_output_0", TRAIN)
    assert "CosineSimilarityLoss_model.output.weight" in found.trial.tensor_names(collection="weights")


def test_the_first_loss_is_the_one_that_is_trained(runner):
    found = play(runner, "another_loss_than_the_models_own")
    assert found.is_what_was_printed("Loss_output_0", TRAIN, EVAL)
    # What the model returns as its loss is another one.
    assert found.names("losses") == found.names("losses", EVAL) == {"Loss_output_0", "Classifier_loss_output_0"}


def test_a_loss_that_the_model_returns(runner):
    found = play(runner, "the_models_own_loss")
    assert found.names("losses") == found.names("losses", EVAL) == {"Loss_output_0"}
    assert found.is_what_was_printed("Loss_output_0", TRAIN, EVAL)


@pytest.mark.parametrize("everything", [False, True])
def test_a_loss_in_parts_is_one_loss(runner, everything):
    found = play(runner, "loss_in_parts", save_all=everything)
    assert found.names("losses") == {"ProxyLoss_output_0"}
    assert found.is_what_was_printed("ProxyLoss_output_0", TRAIN)


def test_a_matrix_is_no_loss(runner):
    found = play(runner, "loss_that_is_a_matrix")
    assert found.names("losses") == {"Loss_output_0"}
    assert found.is_what_was_printed("Loss_output_0", TRAIN)


def test_a_loss_of_each_row_is_one(runner):
    found = play(runner, "loss_of_each_row")
    assert found.names("losses") == found.names("losses", EVAL) == {"CrossEntropyLoss_output_0"}
    assert found.trial.tensor("CrossEntropyLoss_output_0").value(0, mode=TRAIN).shape == (8,)


@pytest.mark.parametrize(
    "scene", ["functional", "loss_in_a_tuple", "compiled_loss_in_a_tuple", "compiled_model", "scripted_in_the_middle"]
)
def test_a_loss_has_one_name_in_training_and_evaluation(runner, scene):
    found = play(runner, scene)
    assert found.names("losses") == {"Loss_output_0"}
    assert found.is_what_was_printed("Loss_output_0", TRAIN)
    if scene != "scripted_in_the_middle":
        assert found.names("losses", EVAL) == {"Loss_output_0"}
        assert found.is_what_was_printed("Loss_output_0", EVAL)


def test_what_a_loss_is_the_sum_of_has_its_names_in_both(runner):
    found = play(runner, "functional_of_several")
    parts = {"mse_loss_output_0", "l1_loss_output_0"}
    assert found.names("losses") == {"Loss_output_0", *parts}
    assert found.names("losses", EVAL) == parts
    assert found.is_what_was_printed("Loss_output_0", TRAIN)


def test_one_of_the_losses_that_are_added_up_has_its_name_in_evaluation(runner):
    found = play(runner, "one_of_several_in_evaluation")
    assert found.names("losses", EVAL) == {"cross_entropy_loss_output_0"}
    assert found.is_what_was_printed("Loss_output_0", TRAIN)
    assert found.is_what_was_printed("cross_entropy_loss_output_0", EVAL)


def test_a_sum_of_losses_that_the_model_returns(runner):
    found = play(runner, "the_models_own_sum")
    parts = {"cross_entropy_loss_output_0", "mse_loss_output_0"}
    assert found.names("losses") == found.names("losses", EVAL) == {"Loss_output_0", *parts}
    assert found.is_what_was_printed("Loss_output_0", TRAIN, EVAL)


def test_an_evaluation_without_no_grad_has_its_loss(runner):
    found = play(runner, "evaluated_with_gradients")
    assert found.names("losses") == found.names("losses", EVAL) == {"Loss_output_0"}
    assert found.is_what_was_printed("Loss_output_0", TRAIN, EVAL)


def test_all_losses_of_a_long_sum_are_saved(runner):
    found = play(runner, "sum_of_many")
    parts = [f"smooth_l1_loss_output_{number}" for number in range(8)]
    assert found.names("losses") == {"Loss_output_0", *parts}
    assert all(len(found.values(part)) == 3 for part in parts)


def test_what_cannot_be_seen_in_evaluation_is_said(runner):
    found = play(runner, "compiled_function")
    assert found.names("losses") == {"Loss_output_0"}
    (line,) = [line for line in found.lines if "evaluation" in line]
    assert "no loss is seen in evaluation: in training it comes out of a compiled function" in line


@pytest.mark.parametrize("scene", ["by_hand_in_an_object", "by_hand_in_slots", "by_hand_below"])
def test_a_loss_that_the_model_works_out_by_hand_is_found_in_what_it_returns(runner, scene):
    found = play(runner, scene)
    assert found.names("losses") == found.names("losses", EVAL) == {"Loss_output_0"}
    assert found.is_what_was_printed("Loss_output_0", TRAIN, EVAL)


def test_a_loss_that_the_model_keeps_is_said_to_be_missing_in_evaluation(runner):
    found = play(runner, "by_hand_and_kept")
    assert found.names("losses") == {"Loss_output_0"}
    (line,) = [line for line in found.lines if "evaluation" in line]
    assert "in training it is worked out inside of a model that does not return it" in line


def test_a_loss_module_of_another_name_is_one(runner):
    found = play(runner, "loss_of_another_name")
    assert found.names("losses") == found.names("losses", EVAL) == {"Criterion_output_0"}
    assert found.is_what_was_printed("Criterion_output_0", TRAIN, EVAL)
