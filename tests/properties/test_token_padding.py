"""Padding at the ends of rows of tokens and of steps, against a count by hand."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from smd_agent.framework.token_padding import of_steps, padding

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


def by_hand(rows):
    """How many steps the padded rows end in: the longest row's last step, as long as it is nowhere else."""
    ends = [next(number for number in range(1, 6) if number == 5 or row[-number - 1] != row[-1]) for row in rows]
    pad = rows[max(range(len(rows)), key=lambda number: ends[number] if ends[number] < 5 else 0)][-1]
    counts = [end if row[-1] == pad else 0 for row, end in zip(rows, ends, strict=True)]
    if any(pad in row[1 : 5 - count] for row, count in zip(rows, counts, strict=True)):
        return []
    known = [count for count in counts if count < 5]
    return [count for count in known if count > 1] if len(set(known)) > 1 else []


@given(ROWS)
def test_steps_of_padding_are_counted_as_by_hand(rows):
    numbers = of_steps(np.array(rows)[..., None])
    lengths = by_hand(rows)
    assert (numbers["rows"], numbers["steps"], numbers["padded_rows"]) == (len(rows), 5, len(lengths))
    assert numbers["padding"] == pytest.approx(np.mean(lengths) if lengths else 0)


@given(ROWS)
def test_steps_of_pytorch_have_the_same(rows):
    torch = pytest.importorskip("torch")
    from smd_agent.pytorch.capture import token_padding

    steps = np.stack([rows, np.ones_like(rows)], -1)
    of_tensors = token_padding.of_steps(torch.tensor(steps))
    assert {name: float(one) for name, one in of_tensors.items()} == pytest.approx(of_steps(steps))
