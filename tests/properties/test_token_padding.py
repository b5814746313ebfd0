"""Padding at the ends of rows of tokens, against a count by hand."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from smd_agent.framework.token_padding import padding

ROWS = st.lists(st.lists(st.integers(0, 3), min_size=5, max_size=5), min_size=1, max_size=6)


@given(ROWS)
def test_padding_is_counted_as_by_hand(tokens):
    numbers = padding(np.array(tokens))
    lengths = []
    for row in tokens:
        ends = next(number for number in range(1, 6) if number == 5 or row[-number - 1] != row[-1])
        if 1 < ends < 5 and row[-1] not in row[1 : 5 - ends]:
            lengths.append((ends, row[-1]))
    by_one = len({token for _, token in lengths}) == 1
    assert numbers["rows"] == len(tokens)
    assert numbers["padded_rows"] == (len(lengths) if by_one else 0)
    assert numbers["padding"] == pytest.approx(np.mean([ends for ends, _ in lengths]) if lengths else 0)


@given(ROWS)
def test_tensors_of_pytorch_have_the_same(tokens):
    torch = pytest.importorskip("torch")
    from smd_agent.pytorch.capture import token_padding

    of_tensors = token_padding.padding(torch.tensor(tokens))
    assert {name: float(one) for name, one in of_tensors.items()} == pytest.approx(padding(np.array(tokens)))
