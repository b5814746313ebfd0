"""The trees of one boosting round as columns, one entry for each node: what ``Booster.trees_to_dataframe`` shows.

Made from the model's JSON dump, so pandas is not needed, and of the one round only.
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import numpy.typing as npt
import xgboost

COLUMNS = ("Tree", "Node", "ID", "Feature", "Split", "Yes", "No", "Missing", "Gain", "Cover", "Category")

# What stands in a text column where a node has no such thing.
_NONE = "nan"


def tree_columns(one_round: xgboost.Booster, trees: int) -> dict[str, npt.NDArray[Any]]:
    """The columns of a booster's trees, sorted by tree and node.

    Args:
        one_round: booster of the round, with all of its trees (one for each class and each parallel tree).
        trees: how many trees the whole model has; those of the round are its last.

    Returns:
        By column name, 1-D arrays of equal length: Tree and Node int64; Split, Gain and Cover float64; the others text.
        A leaf has the Feature ``Leaf`` and its value as Gain. A split by categories names those that go to Yes.
    """
    rows: list[tuple[Any, ...]] = []
    dump = one_round.get_dump(with_stats=True, dump_format="json")
    for number, text in enumerate(dump, trees - len(dump)):
        # As a float, "-0" keeps its sign.
        nodes = _nodes(json.loads(text, parse_int=float))
        rows.extend(_row(number, node) for node in sorted(nodes, key=lambda node: int(node["nodeid"])))
    return {name: np.array([row[i] for row in rows]) for i, name in enumerate(COLUMNS)}


def _nodes(root: dict[str, Any]) -> list[dict[str, Any]]:
    found = []
    waiting = [root]
    while waiting:
        node = waiting.pop()
        found.append(node)
        waiting.extend(node.get("children", ()))
    return found


def _row(tree: int, node: dict[str, Any]) -> tuple[Any, ...]:
    number = int(node["nodeid"])
    start = (tree, number, f"{tree}-{number}")
    cover = float(node.get("cover", "nan"))
    if "leaf" in node:
        return (*start, "Leaf", float("nan"), _NONE, _NONE, _NONE, float(node["leaf"]), cover, _NONE)
    condition = node.get("split_condition", "nan")
    by_category = isinstance(condition, list)
    return (
        *start,
        str(node["split"]),
        float("nan") if by_category else float(condition),
        *(f"{tree}-{int(node[way])}" if way in node else _NONE for way in ("yes", "no", "missing")),
        float(node.get("gain", "nan")),
        cover,
        ",".join(str(int(category)) for category in condition) if by_category else _NONE,
    )
