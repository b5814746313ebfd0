"""TreeDepth: trees that are deep."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from smd_agent.rules.built_in import BuiltInRule, Severity, StepView
from smd_agent.rules.parameters import Parameter, number

_COLUMNS = ("Tree", "Node", "ID", "Yes", "No")
_PREFIX = "trees/"


class TreeDepth(BuiltInRule):
    """Trees that are deep.

    The depth is the base-2 logarithm of the largest number of a node, as is documented of smdebug. XGBoost gives no
    numbers to nodes that are not there, so a tree with long thin branches is deeper; the evidence has both.
    """

    meaning = "a tree of the round is deeper than the limit"
    depth = Parameter(number, 4.0, "largest depth")
    brings = {"trees": {}}
    only_by_name = True
    severity = Severity.NOTE
    evidence = {
        "depth": "the base-2 logarithm of the largest number of a node",
        "node": "that number",
        "splits": "how many splits the longest way from a root to a leaf has",
    }
    cause = "max_depth allows it, and splits still gain something: deep trees learn single rows by heart"
    advice = "Lower max_depth, or raise min_child_weight or gamma, if the validation loss is above the training loss"

    def take(self, step: StepView) -> None:
        """Look at the trees of a round."""
        columns = {column: step.value(_PREFIX + column) for column in _COLUMNS}
        nodes = columns["Node"]
        if nodes is None or not nodes.size:
            return
        largest = int(nodes.max())
        depth = math.log2(largest) if largest else 0.0
        if depth > self.depth:
            self.found(step, None, {"depth": depth, "node": largest, **_longest_way(columns)})


def _longest_way(columns: dict[str, npt.NDArray[Any] | None]) -> dict[str, int]:
    """Return the number of splits above the deepest leaf; nothing where a column is missing."""
    nodes, ids, yes, no = (columns[name] for name in ("Node", "ID", "Yes", "No"))
    if nodes is None or ids is None or yes is None or no is None:
        return {}
    above: dict[str, int] = {}
    # A node has a smaller number than those below it.
    for at in np.argsort(nodes, kind="stable").tolist():
        own = above.setdefault(str(ids[at]), 0)
        above[str(yes[at])] = above[str(no[at])] = own + 1
    # What stands for no node was written by leaves.
    return {"splits": max(above[str(name)] for name in ids)}
