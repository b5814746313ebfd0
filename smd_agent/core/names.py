"""How stored tensors are named beside their own names; lists of names."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

REDUCTION_PREFIX = "smdebug/reductions/"
SCALAR_PREFIX = "scalar/"

_OUTPUT_NUMBER = re.compile(r":\d+")


def reduction_name(op: str, absolute: bool, tensor_name: str) -> str:
    """Name under which a reduction of a tensor is stored; every ``:<digits>`` of the tensor's name is dropped."""
    prefix = "abs_" if absolute else ""
    return f"{REDUCTION_PREFIX}{prefix}{op}/{_OUTPUT_NUMBER.sub('', tensor_name)}"


def flattened(names: Iterable[Any]) -> Iterable[str]:
    """The strings in nested lists, in order."""
    for name in names:
        if isinstance(name, str):
            yield name
        else:
            yield from flattened(name)
