"""Names stored in a step: tensors, and reductions of them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from smd_agent.core.names import REDUCTION_PREFIX, Op, without_output_numbers
from smd_agent.core.reduction_config import HISTOGRAM, OPS

if TYPE_CHECKING:
    from collections.abc import Iterable

    from smd_agent.formats.index import Names, Payload

_REDUCTION = re.compile(rf"{REDUCTION_PREFIX}(abs_)?({'|'.join((*OPS, HISTOGRAM))})/(.+)", re.DOTALL)


@dataclass(frozen=True, eq=False)
class Contents:
    """The tensors of a step, and for those with reductions the stored name of each (op, on absolute values)."""

    names: frozenset[str]
    reductions: dict[str, dict[Op, str]]


class Catalogue:
    """Tells the contents of payloads; computed once for all that have the same tensors."""

    def __init__(self) -> None:
        self._known: dict[tuple[Names, int], tuple[Payload, Contents]] = {}

    def contents(self, payload: Payload) -> Contents:
        """Return what a payload holds."""
        key = (payload.tensors, id(payload.shapes))
        known = self._known.get(key)
        if known is None:
            # The payload is kept, so that its shapes' id stays its own.
            known = self._known[key] = (payload, _contents(payload))
        return known[1]


def parse_reduction(stored_name: str) -> tuple[str, Op] | None:
    """Split a reduction's stored name into the tensor's name and (op, on absolute values); None for a tensor."""
    match = _REDUCTION.fullmatch(stored_name)
    return (match[3], (match[2], match[1] is not None)) if match else None


def _contents(payload: Payload) -> Contents:
    names = set(payload.shapes)
    parsed = {}
    for name in payload.tensors.names:
        reduction = parse_reduction(name)
        if reduction is None:
            names.add(name)
        else:
            parsed[name] = reduction
    # Stored names of reductions have lost every ":<digits>": the tensor may stand beside them under its own name.
    own_names = {without_output_numbers(name): name for name in names}
    reductions: dict[str, dict[Op, str]] = {}
    for stored, (base, op) in parsed.items():
        reductions.setdefault(own_names.get(base, base), {})[op] = stored
    return Contents(frozenset(names | reductions.keys()), reductions)


def flat(regex: str | Iterable[Any]) -> list[str]:
    """The regular expressions of one, or of lists of them in lists."""
    return [regex] if isinstance(regex, str) else [pattern for part in regex for pattern in flat(part)]
