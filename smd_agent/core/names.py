"""Names under which reductions and a user's scalars are stored."""

from __future__ import annotations

import re

Op = tuple[str, bool]
"""A reduction: its name, and whether it is of the absolute values."""

Ops = tuple[Op, ...]

REDUCTION_PREFIX = "smdebug/reductions/"
SCALAR_PREFIX = "scalar/"

_OUTPUT_NUMBER = re.compile(r":\d+")


def reduction_name(op: str, absolute: bool, tensor_name: str) -> str:
    """Name under which a reduction of a tensor is stored; every ``:<digits>`` of the tensor's name is dropped."""
    prefix = "abs_" if absolute else ""
    return f"{REDUCTION_PREFIX}{prefix}{op}/{without_output_numbers(tensor_name)}"


def without_output_numbers(tensor_name: str) -> str:
    """A tensor's name without every ``:<digits>`` in it, as it stands in the names of its reductions."""
    return _OUTPUT_NUMBER.sub("", tensor_name)
