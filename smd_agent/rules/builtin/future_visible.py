"""FutureVisible: a language model whose attention sees the tokens that it has to predict."""

from __future__ import annotations

from smd_agent.framework.training_facts import USAGE
from smd_agent.rules.built_in import StepView
from smd_agent.rules.parameters import Parameter, whole
from smd_agent.rules.usage import Numbers, UsageInARow, numbers_of

_LAYER, _WRITTEN = "layer", "attention"
_OF_NUMBERS = (
    "The mask of the attention is of floats near 0 or above, as 0 and 1, which are added to the scores and hide"
    " nothing: each position sees the next token, which is its target"
)
_HIDE = (
    "Make the mask of True where nothing is to be seen, or of -inf: torch.triu(torch.ones(n, n), 1).bool(), or"
    " nn.Transformer.generate_square_subsequent_mask(n)"
)


class FutureVisible(UsageInARow):
    """A language model whose attention sees the tokens that it has to predict.

    The targets of the loss are the next tokens of the model's input, and each attention to the whole sequence is called
    with neither a mask nor ``is_causal``. Attention is that of ``torch.nn.MultiheadAttention``, which the layers of
    ``torch.nn.Transformer`` are made of, and else calls of ``scaled_dot_product_attention``, or of a softmax over a
    square of scores, where what is above the diagonal has to be 0. A mask of floats that are all near 0 or above it is
    none: they are added to the scores. Of a model that is given several sequences only
    ``torch.nn.TransformerDecoderLayer`` is judged.
    """

    meaning = "targets are the next tokens of the model's input, and attention is given neither a mask nor is_causal"
    tokens = Parameter(whole, 8, "tokens that are compared at a step at least")
    kind = "target"
    facts = ("next_0", "next_1")
    evidence = {
        "length": "how many tokens a sequence has",
        "compared": "how many targets were compared with the next token, all of which are the same",
        "layers": "how many layers of attention see all tokens",
        "mask_min": "the smallest number of a mask that is added to the scores and hides nothing",
        "mask_max": "the largest one",
    }
    cause = "Attention has no causal mask, so that each position sees the next token, which is its target"
    advice = "Give the attention a causal mask, such as nn.Transformer.generate_square_subsequent_mask(length)"

    def take(self, step: StepView) -> None:
        """Look at the targets of a step, and at all its attention."""
        layers = numbers_of(step, _LAYER)
        of_layers = [numbers for numbers in layers.values() if "masked" in numbers]
        self._attention = of_layers or [one for one in numbers_of(step, _WRITTEN).values() if "masked" in one]
        super().take(step)

    def look_at(self, step: StepView, of: str, numbers: Numbers) -> None:
        """Look at the targets of one loss."""
        for axis in (0, 1):
            length, compared = numbers.get(f"length_{axis}", 0.0), numbers.get(f"compared_{axis}", 0.0)
            judged = [one for one in self._attention if "decodes" in one or "sequences" not in numbers]
            seeing = [one for one in judged if one.get("length") in (length, length - 1)]
            are_next = numbers.get(f"next_{axis}") == 1 and compared >= self.tokens
            is_open = bool(seeing) and not any(one["masked"] for one in seeing)
            if self.row(f"{of} {axis}", are_next and is_open) >= self.patience:
                evidence = {"length": length, "compared": compared, "layers": len(seeing)}
                useless = next((one for one in seeing if "mask_min" in one), {})
                evidence |= {name: useless[name] for name in ("mask_min", "mask_max") if name in useless}
                told = (_OF_NUMBERS, _HIDE) if useless else ("", "")
                self.found(step, f"{USAGE}{of}/next_{axis}", evidence, cause=told[0], advice=told[1])
