"""Lines of the program that findings are about, as they were saved where it computes a loss or updates."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping

from smd_agent.core.collection import Collection
from smd_agent.formats.series import PREFIX
from smd_agent.framework.training_facts import INPUT_DIGEST, LINE, OPTIMIZER, USAGE, USED_INPUT
from smd_agent.rules.finding import Finding
from smd_agent.rules.step_view import StepView

_LOSS = f"{PREFIX}loss"
_LOSSES = ("loss/", "target/")


class ProgramLines:
    """The lines of one run."""

    def __init__(self) -> None:
        # By what they are of: steps, counted over all modes, and the line from each on.
        self._found: dict[str, list[tuple[int, str]]] = {}

    def take(self, step: StepView) -> None:
        """Look at the lines that a step tells of."""
        for name in step.names(patterns=(f"^{LINE}",)):
            if line := in_words(str(step.single(name))):
                self._found.setdefault(name.removeprefix(LINE), []).append((step.place.global_step, line))

    def of(self, finding: Finding, losses: Collection | None) -> str:
        """The line that a finding is about, with its source; empty if it is not known.

        Args:
            finding: of steps of the training.
            losses: the collection of the losses; None if there is none.
        """
        if finding.tensor is None:
            return ""
        known = {
            what: line
            for what, lines in self._found.items()
            if (line := next((line for step, line in reversed(lines) if step <= finding.global_step), ""))
        }
        return _line_of(finding.tensor, known, losses)


def _line_of(tensor: str, known: Mapping[str, str], losses: Collection | None) -> str:
    if tensor.startswith(OPTIMIZER):
        return known.get("/".join(tensor.split("/")[:2]), "")
    if tensor.startswith(INPUT_DIGEST):
        return known.get(f"{USED_INPUT}/{tensor.removeprefix(INPUT_DIGEST)}", "")
    if not tensor.startswith(USAGE):
        is_loss = tensor == _LOSS or (losses is not None and losses.matches(tensor))
        lines = {line for what, line in known.items() if is_loss and what.startswith(_LOSSES)}
        # Which of several losses is meant is not known.
        return lines.pop() if len(lines) == 1 else ""
    what = tensor.removeprefix(USAGE).rpartition("/")[0]
    name = what.partition("/")[2]
    asked = (f"{kind}{name}" for kind in _LOSSES) if what.startswith(_LOSSES) else (what,)
    return next((known[one] for one in asked if one in known), "")


def in_words(text: str) -> str:
    """A line as people read it, such as ``train.py:41: loss = criterion(out, y)``; empty if it is no such text."""
    try:
        file, number, source = json.loads(text)
        where = f"{os.path.basename(file)}:{int(number)}"
        return f"{where}: {source}" if source else where
    except (TypeError, ValueError):
        return ""
