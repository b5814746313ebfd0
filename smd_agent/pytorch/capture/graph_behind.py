"""Nodes of the graph of autograd behind a loss, and what they have saved."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from typing import Any


def nodes_behind(starts: Iterable[Any], most: int) -> Iterator[Any]:
    """Yield nodes, the nearest first.

    Args:
        starts: the nodes that the walk begins with; None among them are left out.
        most: how many are seen at most.
    """
    todo = deque(dict.fromkeys(node for node in starts if node is not None))
    seen = {*todo}
    while todo:
        node = todo.popleft()
        yield node
        for source, _ in node.next_functions:
            if source is not None and source not in seen and len(seen) < most:
                seen.add(source)
                todo.append(source)


def saved_by(node: Any, name: str) -> Any:
    """The value of this name that a node has saved; None where there is none, or it is packed.

    ``_saved_result`` and the like would unpack it, by functions of the program's or by computing it again.
    """
    raw: Any = getattr(node, f"_raw_saved_{name}", None)
    is_plain = raw is not None and getattr(raw, "unpack_hook", raw) is None
    return raw.data if is_plain else None
