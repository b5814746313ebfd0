"""RepeatedBatch: a model that is given the same inputs step after step."""

from __future__ import annotations

from smd_agent.rules.built_in import TRAINING, BuiltInRule, Severity, Split, StepView
from smd_agent.rules.inputs_of_models import first_inputs
from smd_agent.rules.parameters import Parameter, whole


class RepeatedBatch(BuiltInRule):
    """A model that is given the same inputs step after step.

    Training on all data at once does that, and so does an update with several passes, so it is a note. Only steps that
    follow each other are compared: without shuffling, a batch comes again in each epoch.
    """

    meaning = "the inputs of a model's first call are the same at several training steps that follow each other"
    patience = Parameter(whole, 3, "steps in a row, each the next of the one before")
    brings = {"input_digests": {}}
    modes = TRAINING
    fewest_steps = 3
    split = Split.TENSOR
    severity = Severity.NOTE
    evidence = {"in_a_row": "how many steps in a row had the same inputs by then"}
    cause = "All data is one batch, or the loader hands out the same one: an iterator that is made anew in each step"
    advice = "If the data is more than one batch, make the iterator once, before the loop, and shuffle"
    short = "the same batch in each step: {}"

    def start(self) -> None:
        """Begin with nothing seen."""
        self._last: dict[str, tuple[int, int, int]] = {}

    def take(self, step: StepView) -> None:
        """Look at the digests of a step."""
        for name, digest in first_inputs(step).items():
            before, same, row = self._last.get(name, (-2, 0, 0))
            row = row + 1 if (before + 1, same) == (step.step, digest) else 1
            self._last[name] = (step.step, digest, row)
            if row >= self.patience:
                self.found(step, name, {"in_a_row": row})
