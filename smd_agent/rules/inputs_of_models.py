"""Inputs that models were called with in a step, and their digests."""

from __future__ import annotations

from smd_agent.core.collection_keys import CollectionKeys
from smd_agent.rules.step_view import StepView

_INPUT = "_input_[0-9]+$"


def model_inputs(step: StepView) -> list[str]:
    """Return what the models were called with; the names of their parameters and inputs begin with the model's."""
    weights = step.names(CollectionKeys.WEIGHTS, CollectionKeys.BIASES)
    models = {name.partition("_")[0] for name in weights}
    named = [name for name in step.names(patterns=(_INPUT,)) if name.rpartition("_input_")[0] in models]
    return [*named, *step.names(CollectionKeys.INPUTS)]


def first_inputs(step: StepView) -> dict[str, int]:
    """Return the digests of the first inputs of models, by the names of the tensors that have them."""
    names = [name for name in step.names(CollectionKeys.INPUT_DIGESTS) if name.endswith("_0")]
    return {name: int(digest) for name in names if (digest := step.single(name)) is not None}
