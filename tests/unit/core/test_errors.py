from __future__ import annotations

import pickle

import pytest

from smd_agent import errors
from smd_agent.core.modes import ModeKeys

G = ModeKeys.GLOBAL
SENTENCES = [
    (
        errors.InvalidCollectionConfiguration("c"),
        "Collection c has not been configured.         Please fill in tensor_name or include_regex",
    ),
    (errors.StepNotYetAvailable(1, G), "Step 1 of mode GLOBAL not yet available"),
    (errors.StepUnavailable(1, G), "Step 1 of mode GLOBAL is not available as it was not saved"),
    (errors.TensorUnavailable("x"), "Tensor x was not saved."),
    (
        errors.TensorUnavailableForStep("x", 1, ModeKeys.EVAL),
        "Value for tensor x is not available for step 1 with mode EVAL as it was not saved.",
    ),
    (
        errors.TensorUnavailableForStep("x", 1, has_reductions=True),
        "Value for tensor x is not available for step 1 with mode GLOBAL as it was not saved."
        "This tensor has reductions saved for this step. You might want to query for the reductions.",
    ),
    (
        errors.ShapeUnavailableForStep("x", 1),
        "Shape for tensor x is not available for step 1 with mode GLOBAL as it was not saved.",
    ),
    (errors.InvalidWorker("w"), "Invalid Worker: w"),
    (
        errors.NoMoreData(99, G, 5),
        "Looking for step 99 of mode GLOBAL and reached end of training. Max step available is 5",
    ),
    (errors.NoMoreProfilerData(3), "Looking for timestamp 3 and reached end of training."),
    (
        errors.MissingCollectionFiles(),
        "Training job has ended. All the collection files could not be loaded",
    ),
    (errors.IndexReaderException("m"), "m"),
    (
        errors.RuleEvaluationConditionMet("R", 5),
        "Evaluation of the rule R at step 5 resulted in the condition being met",
    ),
    (
        errors.InsufficientInformationForRuleInvocation("R", "m"),
        "Insufficient information to invoke rule R: m",
    ),
    (errors.DamagedRecord("f", "x", 3, "bits"), "Tensor x at step 3 is damaged in f: bits"),
]


@pytest.mark.parametrize("error, sentence", SENTENCES)
def test_error_says_its_sentence_also_after_pickling(error: errors.SMDebugError, sentence: str) -> None:
    assert str(error) == sentence
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is type(error)
    assert str(again) == sentence
    assert vars(again) == vars(error)


@pytest.mark.parametrize(
    "ours, builtin",
    [
        (errors.SMDebugTypeError, TypeError),
        (errors.SMDebugRuntimeError, RuntimeError),
        (errors.SMDebugNotImplementedError, NotImplementedError),
        (errors.SMDebugValueError, ValueError),
        (errors.ConfigError, errors.SMDebugValueError),
        (errors.DamagedRecord, errors.SMDebugRuntimeError),
    ],
)
def test_error_is_caught_as_its_builtin(ours: type[Exception], builtin: type[Exception]) -> None:
    assert issubclass(ours, builtin)
    assert issubclass(ours, errors.SMDebugError)


def test_every_error_is_one_of_ours() -> None:
    classes = [one for one in vars(errors).values() if isinstance(one, type)]
    assert len(classes) > 15
    assert all(issubclass(one, errors.SMDebugError) for one in classes)
