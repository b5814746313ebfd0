"""PaddingAttended: attention that is given rows of tokens which end in padding, and no mask that hides it."""

from __future__ import annotations

from smd_agent.rules.built_in import Severity
from smd_agent.rules.parameters import Parameter, number
from smd_agent.rules.usage import Fault, Numbers, UsageInARow

_FEWEST = 2
_ALONE = (
    "The mask is upside down: it hides the tokens from attention and shows the padding, so that no token sees another"
)
_TURNED = (
    "Turn the mask: True hides a place in key_padding_mask and src_key_padding_mask of torch.nn, so (tokens == pad) or"
    " ~mask; in attention_mask of transformers 1 shows it"
)


class PaddingAttended(UsageInARow):
    """Attention that is given rows of tokens which end in padding, and no mask that hides it.

    Rows of tokens of different lengths end in padding, each token sees all others, and the loss depends on the padding:
    a gradient comes to it. So what the model says of a row changes with how much padding it has.

    Layers are ``MultiheadAttention`` of ``torch.nn``, as in a ``TransformerEncoder``, and encoders of transformers such
    as BERT. With a causal mask no token sees the padding after it, and nothing is said.
    """

    meaning = "rows of tokens end in padding, no mask hides that from attention, and the loss depends on it"
    share = Parameter(number, 0.25, "part of the rows that are padded, at least")
    padding = Parameter(number, 4.0, "elements of padding that a padded row ends in on average, at least")
    kind = "layer"
    facts = ("padding_read", "padding_alone")
    severity = Severity.WARNING
    evidence = {
        "rows": "how many rows were looked at",
        "padded_rows": "how many of them end in padding",
        "padding": "how many elements of padding they end in, on average",
        "span": "by how many elements the longest row is longer than the shortest one",
    }
    cause = "The model is given no mask of the padding, and attends to it as to real tokens"
    advice = (
        "Pass the mask: attention_mask=batch['attention_mask'] to a model of transformers; to nn.TransformerEncoder"
        " src_key_padding_mask=(tokens == pad), to nn.MultiheadAttention key_padding_mask"
    )
    short = "attends to padding: {}"

    def fault(self, of: str, numbers: Numbers) -> Fault | None:
        """Return what is wrong with one layer."""
        if numbers.get("padding_alone") == 1 and numbers["padded_rows"] >= _FEWEST:
            return Fault(cause=_ALONE, advice=_TURNED)
        least = max(self.share * numbers["rows"], _FEWEST)
        is_padded = numbers["padded_rows"] >= least and numbers["padding"] >= self.padding
        return Fault() if numbers.get("padding_read") == 1 and is_padded and numbers["span"] > 1 else None
