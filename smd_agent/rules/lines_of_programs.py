"""Lines of the program that findings are about, as they were saved where it computes a loss or updates."""

from __future__ import annotations

import json
import os

from smd_agent.core.collection import Collection
from smd_agent.formats.series import PREFIX
from smd_agent.framework.training_facts import INPUT_DIGEST, LINE, OPTIMIZER, USAGE, USED_INPUT
from smd_agent.rules.step_view import StepView

_LOSS = f"{PREFIX}loss"
_LOSSES = ("loss/", "target/")


class ProgramLines:
    """The lines of one run."""

    def __init__(self) -> None:
        self._found: dict[str, str] = {}

    def take(self, step: StepView) -> None:
        """Look at the lines that a step tells of."""
        for name in step.names(patterns=(f"^{LINE}",)):
            if line := in_words(str(step.single(name))):
                self._found.setdefault(name.removeprefix(LINE), line)

    def of(self, tensor: str | None, losses: Collection | None) -> str:
        """The line that a finding is about, with its source; empty if it is not known.

        Args:
            tensor: that of the finding.
            losses: the collection of the losses; None if there is none.
        """
        if tensor is None:
            return ""
        if tensor.startswith(OPTIMIZER):
            return self._found.get("/".join(tensor.split("/")[:2]), "")
        if tensor.startswith(INPUT_DIGEST):
            return self._found.get(f"{USED_INPUT}/{tensor.removeprefix(INPUT_DIGEST)}", "")
        if not tensor.startswith(USAGE):
            is_loss = tensor == _LOSS or (losses is not None and losses.matches(tensor))
            return self._of_the_loss() if is_loss else ""
        what = tensor.removeprefix(USAGE).rpartition("/")[0]
        name = what.partition("/")[2]
        asked = (f"{kind}{name}" for kind in _LOSSES) if what.startswith(_LOSSES) else (what,)
        return next((self._found[one] for one in asked if one in self._found), "")

    def _of_the_loss(self) -> str:
        """The line that computes the loss, where there is one alone."""
        lines = {line for what, line in self._found.items() if what.startswith(_LOSSES)}
        return lines.pop() if len(lines) == 1 else ""


def in_words(text: str) -> str:
    """A line as people read it, such as ``train.py:41: loss = criterion(out, y)``; empty if it is no such text."""
    try:
        file, number, source = json.loads(text)
        where = f"{os.path.basename(file)}:{int(number)}"
        return f"{where}: {source}" if source else where
    except (TypeError, ValueError):
        return ""
