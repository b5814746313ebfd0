"""A case: a training script, and which rules describe rightly what is wrong with it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

TESTS = Path(__file__).resolve().parent.parent
FRAMEWORKS = ("PyTorch", "Keras", "Gluon", "XGBoost")


@dataclass(frozen=True)
class Case:
    """A training script with its arguments.

    Args:
        kind: ``clean``, or who has planted the fault: ``planted`` by someone who knows the rules, ``reported`` by
            someone who has not seen them, ``held_out`` the same, and no rule was made with them in mind.
        name: what it is called on the page, once over all kinds.
        framework: of `FRAMEWORKS`.
        script: its file, from the folder of the tests.
        words: what is trained, or what is wrong.
        args: of the script.
        rules: the names of those that describe the fault; a clean one has none.
    """

    kind: str
    name: str
    framework: str
    script: str
    words: str
    args: tuple[str, ...] = ()
    rules: tuple[str, ...] = ()

    @property
    def path(self) -> Path:
        """The script."""
        return TESTS / self.script
