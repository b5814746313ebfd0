"""TensorVariance: tensors with a variance out of bounds."""

from __future__ import annotations

import math

from smd_agent.rules.built_in import BuiltInRule, CollectionKeys, Need, Severity, Split, StepView
from smd_agent.rules.parameters import TENSOR_REGEX, Parameter, number


class TensorVariance(BuiltInRule):
    """Tensors with a variance out of bounds.

    No bounds suit all models: weights that begin at 0 have a variance of 0. So it has none by its documented defaults,
    and for `check` those of smdebug's example.
    """

    meaning = "the variance of a tensor is above max_threshold or below min_threshold"
    collection_names = Parameter.of_collections(CollectionKeys.WEIGHTS)
    tensor_regex = TENSOR_REGEX
    max_threshold: Parameter[float | None] = Parameter(number, 10.0, "upper bound", documented=math.inf)
    min_threshold: Parameter[float | None] = Parameter(number, 1e-5, "lower bound", documented=0.0)
    brings = {"weights": {"reductions": "std"}}
    chosen_by = ("collection_names", "tensor_regex")
    split = Split.TENSOR
    only_by_name = True
    severity = Severity.NOTE
    evidence = {"variance": "population variance of the tensor, at the first step"}
    cause = "The tensor grows towards an explosion, or its units have become alike"
    advice = "Look at the course of the tensor; begin with other weights, lower the learning rate, or normalise"

    def start(self) -> None:
        """Say what is needed."""
        saved_by = "" if self.collection_names else "all to --save, with --reductions statistics or --raw"
        self.needs = (Need(self.collection_names or (), ("variance", "std"), self.tensor_regex or (), saved_by),)

    def take(self, step: StepView) -> None:
        """Look at the chosen tensors of a step."""
        names = self.needs[0].names(step)
        variances = {name: std**2 for name, std in step.column("std", names).items()}
        variances |= dict(step.column("variance", names).items())
        highest = math.inf if self.max_threshold is None else self.max_threshold
        lowest = 0.0 if self.min_threshold is None else self.min_threshold
        for name, variance in variances.items():
            if variance > highest or variance < lowest:
                self.found(step, name, {"variance": variance})
