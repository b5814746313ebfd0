"""The page with the table of scenarios, as markdown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from benchmarks.scenarios.captured import Captured
from benchmarks.table import milliseconds

Result = tuple[str, Captured, "Cost | None"]


@dataclass(frozen=True)
class Cost:
    """What an iteration costs.

    Args:
        plain: CPU seconds of the training thread for one iteration.
        unsaved: ratio to it with the agent saving nothing.
        saved: ratio of the whole process's CPU time with the agent saving everything.
        again: ratio of a second plain run, which is the noise of the other two.
    """

    plain: float
    unsaved: float
    saved: float
    again: float


HEADINGS = ("scenario", "same bits", "steps", "weights", "gradients", "losses", "layer outputs", "said")
COST_HEADINGS = ("plain", "unsaved", "saved")

INTRODUCTION = """\
# PyTorch scenarios

Made by `make scenarios`; a test compares all but the costs with what it finds. {versions}.

Every scenario is a small program that knows nothing of the agent, run without it, with the agent saving nothing, and
with the agent saving everything of every step as it is.

* **same bits**: weights, buffers and random states are the same with and without the agent.
* **steps**: of one iteration of the scenario.
* **weights** … **layer outputs**: of so many that there are in an iteration, how many were saved under their names
  with exactly the values that the program without the agent computes, in two iterations.
* **said**: the lines below the table.
"""

ON_COSTS = """\
* **plain**: what an iteration takes, in CPU time. The nets are tiny: what is added is the same for large ones as long
  as nothing is saved.
* **unsaved**: with the agent and nothing saved, as a ratio. Two plain runs differ by {low:.3f} to {high:.3f} here.
* **saved**: with every value saved in every step, in CPU time of all threads: what is added, and the ratio.
"""


def page(results: Sequence[Result], versions: str) -> str:
    """Return the page; without costs if there are none."""
    costs = [cost for _, _, cost in results if cost is not None]
    parts = [INTRODUCTION.format(versions=versions)]
    if costs:
        parts[0] += ON_COSTS.format(low=min(c.again for c in costs), high=max(c.again for c in costs))
    said = list(dict.fromkeys(line for _, captured, _ in results for line in captured.said))
    headings = [*HEADINGS, *(COST_HEADINGS if costs else ())]
    lines = [_line(headings), _line(["---"] * len(headings)), *(_row(*result, said) for result in results)]
    parts.append("\n".join(lines) + "\n")
    if said:
        parts.append("\n".join(f"{number}. {line}" for number, line in enumerate(said, 1)) + "\n")
    return "\n".join(parts)


def _row(words: str, captured: Captured, cost: Cost | None, said: list[str]) -> str:
    cells = [
        words,
        "yes" if captured.identical else "NO",
        captured.steps,
        captured.weights,
        captured.gradients,
        captured.losses,
        captured.outputs,
        ", ".join(str(said.index(line) + 1) for line in captured.said),
    ]
    if cost is not None:
        added = milliseconds(cost.plain * (cost.saved - 1))
        cells += [milliseconds(cost.plain), f"{cost.unsaved:.3f}", f"+ {added} ({cost.saved:.3g})"]
    return _line(cells)


def _line(cells: Iterable[str]) -> str:
    return "| " + " | ".join(cells) + " |"
