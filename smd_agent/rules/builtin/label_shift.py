"""LabelShift: a language model whose labels are shifted twice, or not at all."""

from __future__ import annotations

from smd_agent.framework.training_facts import USAGE
from smd_agent.rules.built_in import Severity, StepView
from smd_agent.rules.parameters import Parameter, whole
from smd_agent.rules.usage import Numbers, UsageInARow, numbers_of

_AXES = (0, 1)
_TWICE = (
    "Each target is the token after the next one of the model's input: labels are shifted twice, by what makes the"
    " batch and by what computes the loss"
)
_SHIFT_ONCE = (
    "Shift them once: give models of transformers, which shift labels themselves, the input_ids as labels; in a loop of"
    " your own compare logits[:, :-1] with tokens[:, 1:]"
)
_NOT = (
    "Each target is the token that the model is given at the same place, which it has but to copy, unless it shifts its"
    " input itself"
)
_SHIFT = "Compare logits[:, :-1] with tokens[:, 1:], so that each token is predicted from those before it"
_COPIES = (
    "Each target is the token that the model is given at the same place. So it is with an autoencoder, and where the"
    " model shifts its input itself; another language model has but to copy it"
)


class LabelShift(UsageInARow):
    """A language model whose labels are shifted twice, or not at all.

    The targets of the loss are compared with the tokens that the model is given: those of the same place, the next
    ones and the ones after these. Labels that are not shifted are a warning where attention has a mask, and else a
    note: an autoencoder is meant to copy. Where another loss of the step has the next tokens, as with several heads,
    nothing is said.
    """

    meaning = "targets are the tokens after the next ones of the model's input, or those of the same places"
    tokens = Parameter(whole, 8, "targets that are compared at a step at least")
    kind = "target"
    facts = ("second_0", "second_1")
    evidence = {
        "compared": "how many targets were compared, all of which are the same as the tokens that are named",
        "offset": "how many places these tokens lie behind those of the targets: 2 if shifted twice, 0 if not at all",
    }
    cause = _TWICE
    advice = _SHIFT_ONCE
    short = "labels shifted twice: {}"

    def take(self, step: StepView) -> None:
        """Look at the targets of a step, and at its attention."""
        targets = numbers_of(step, self.kind).values()
        self._has_next = any(numbers.get(f"next_{axis}") == 1 for numbers in targets for axis in _AXES)
        attention = [numbers for numbers in numbers_of(step, "layer").values() if "masked" in numbers]
        self._is_causal = bool(attention) and all(numbers["masked"] for numbers in attention)
        super().take(step)

    def look_at(self, step: StepView, of: str, numbers: Numbers) -> None:
        """Look at the targets of one loss."""
        for fact, offset in (("second", 2), ("same", 0)):
            fitting = [axis for axis in _AXES if self._fits(numbers, f"{fact}_{axis}", f"distinct_{axis}")]
            if self.row(f"{of} {fact}", bool(fitting)) < self.patience:
                continue
            # Targets of the same places are so along both axes.
            axis = fitting[-1]
            evidence = {"compared": numbers[f"distinct_{axis}"], "offset": offset}
            self._report(step, f"{USAGE}{of}/{fact}_{axis}", evidence)

    def _fits(self, numbers: Numbers, share: str, count: str) -> bool:
        """Tell whether all targets are such tokens, by the names of their share and of how many were compared."""
        return not self._has_next and numbers.get(share) == 1 and numbers.get(count, 0.0) >= self.tokens

    def _report(self, step: StepView, tensor: str, evidence: Numbers) -> None:
        if evidence["offset"]:
            self.found(step, tensor, evidence)
            return
        cause, severity = (_NOT, Severity.WARNING) if self._is_causal else (_COPIES, Severity.NOTE)
        self.found(
            step, tensor, evidence, severity=severity, cause=cause, advice=_SHIFT, short="labels not shifted: {}"
        )
