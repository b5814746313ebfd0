"""NLPSequenceRatio: sequences that are mostly one token, such as padding."""

from __future__ import annotations

import numpy as np

from smd_agent.errors import SMDebugValueError
from smd_agent.rules.built_in import BuiltInRule, Need, Severity, Split, StepView
from smd_agent.rules.parameters import Parameter, names


class NLPSequenceRatio(BuiltInRule):
    """Sequences that are mostly one token, such as padding.

    Of inputs that are not saved whole only the share of token 0 is known, from `zero_share`.
    """

    meaning = "a token makes up more of the input than its percentage"
    tensor_regex: Parameter[tuple[str, ...] | None] = Parameter(
        names,
        ("(?i)embed.*input",),
        "regular expressions: inputs in whose names one is found",
        documented=(".*embedding0_input_0",),
    )
    token_values = Parameter(names, ("0",), "numbers of the tokens")
    token_thresholds_percent = Parameter(names, ("50",), "for each its percentage")
    brings = {"input_sequence": {"include_regex": ".*embedding0_input_0", "save_interval": 500}}
    chosen_by = ("tensor_regex",)
    split = Split.TENSOR
    only_by_name = True
    severity = Severity.NOTE
    evidence = {
        "token": "the token",
        "percent": "how much of the input it makes up, at the first step",
    }
    cause = "Sequences of different lengths are padded in one batch, or many words are not in the vocabulary"
    advice = "Put sequences of like lengths into a batch; if it is the unknown token, choose another vocabulary"

    def start(self) -> None:
        """Read the tokens and their percentages.

        Raises:
            SMDebugValueError: they are no numbers, or not as many of one as of the other.
        """
        saved_by = "inputs to --save, with --raw"
        try:
            tokens = [int(token) for token in self.token_values]
            limits = [float(limit) for limit in self.token_thresholds_percent]
            self._limits = dict(zip(tokens, limits, strict=True))
        except ValueError:
            message = "token_values and token_thresholds_percent must be as many whole numbers as percentages"
            raise SMDebugValueError(message) from None
        statistics = ("", "zero_share") if 0 in self._limits else ("",)
        self.needs = (Need((), statistics, self.tensor_regex or (), saved_by),)

    def take(self, step: StepView) -> None:
        """Look at the inputs of a step."""
        for name in self.needs[0].names(step):
            value = step.value(name)
            for token, limit in self._limits.items():
                if value is not None and value.size:
                    percent = 100 * float(np.mean(value == token))
                else:
                    share = step.column("zero_share", (name,)).get(name) if token == 0 else None
                    percent = 0.0 if share is None else 100 * share
                if percent > limit:
                    self.found(step, name, {"token": token, "percent": percent})
