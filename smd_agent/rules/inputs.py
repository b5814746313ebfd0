"""Tensors of a step that are what its models were called with."""

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
