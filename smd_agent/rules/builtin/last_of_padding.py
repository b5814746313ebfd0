"""LastOfPadding: a recurrent layer whose last step alone is used, which comes after the padding of its rows."""

from __future__ import annotations

from smd_agent.rules.built_in import Severity
from smd_agent.rules.parameters import Parameter, number
from smd_agent.rules.usage import Fault, Numbers, UsageInARow

_UNUSED = (
    "Of the packed rows only the longest have a last step where the last one is taken: of the shorter ones the model"
    " gets zeros, and nothing of them is learned"
)
_USE_STATES = (
    "Use h_n, which is of each row's last real step, or take that of the outputs:"
    " out[torch.arange(len(out)), lengths - 1]"
)

# A recording that is a bit longer than others forgets little.
_LEAST_OF_STEPS = 0.1


class LastOfPadding(UsageInARow):
    """A recurrent layer whose last step alone is used, which comes after the padding of its rows.

    Rows of tokens, or of numbers, end in padding, and are given to the layer without being packed. Of the gradient of
    what the layer returns only the last step is not 0, or only the final state has one, which has gone on through the
    padding.

    Of packed rows it is found that only the last step of the longest ones has a gradient, and no final state has: they
    were padded again, and the last place taken, where the shorter ones have zeros. That is exact, and a problem.

    Padding of numbers is a step such as of zeros that the rows end in, some more often than others, and that is nowhere
    else in them. A tenth of the steps has to be such.

    Layers are ``RNN``, ``LSTM`` and ``GRU`` of ``torch.nn``. Of a layer of both directions, the final state of one is
    right, so that it is judged by its outputs alone.

    In Keras it is told by how a ``Sequential`` or functional model is put together: a ``SimpleRNN``, ``LSTM`` or
    ``GRU`` that returns its last step alone, after an ``Embedding`` without ``mask_zero``, or after an input of numbers
    without a ``Masking``.
    """

    meaning = "rows end in padding, and of a recurrent layer only the last step is used, which comes after it"
    share = Parameter(number, 0.25, "part of the rows that are padded, or shorter than the longest, at least")
    padding = Parameter(number, 4.0, "elements of padding that a padded row ends in on average, at least")
    kind = "layer"
    facts = ("last_only",)
    severity = Severity.WARNING
    evidence = {
        "rows": "how many rows were looked at",
        "padded_rows": "how many of them end in padding",
        "padding": "how many elements of padding they end in, on average",
        "steps": "how many steps the rows have, of numbers that are no tokens",
        "shorter_rows": "how many packed rows are shorter than the longest one",
    }
    cause = "The layer goes on through the padding at the end of the rows, and only what it has then is used"
    advice = (
        "Take each row's last real step, out[torch.arange(len(out)), lengths - 1], or give the layer"
        " pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False) and use h_n; in Keras, give the"
        " Embedding mask_zero=True, or put a Masking before the layer"
    )
    short = "last step is padding: {}"

    def fault(self, of: str, numbers: Numbers) -> Fault | None:
        """Return what is wrong with one layer."""
        least = self.share * numbers.get("rows", 0.0)
        if numbers["last_only"] != 1:
            return None
        if "shorter_rows" in numbers:
            is_short = numbers["shorter_rows"] >= max(least, 1)
            return Fault(_UNUSED, Severity.PROBLEM, _USE_STATES) if is_short else None
        padding = max(self.padding, _LEAST_OF_STEPS * numbers.get("steps", 0.0))
        is_padded = numbers["padded_rows"] >= max(least, 2) and numbers["padding"] >= padding
        return Fault() if is_padded else None
