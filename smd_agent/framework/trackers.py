"""The trackers that a script logs to, W&B and MLflow, as they are told what rules find while training goes on.

A library is asked for only where the script has imported it and has a run: none is imported, and no run begun.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from functools import partial
from queue import SimpleQueue
from typing import Any

from smd_agent import guard
from smd_agent.address_secrets import without_secrets
from smd_agent.printable import shortened
from smd_agent.storage.writer_thread import start_thread

_LEVELS = {"problem": "ERROR", "warning": "WARN"}
# W&B takes titles of fewer than 64 characters.
_LONGEST_TITLE = 63
# An answer of a server may be a page.
_LONGEST_REASON = 200


class Trackers:
    """Findings on their way to the trackers, told one by one, on a thread of its own: a server may not answer."""

    def __init__(self) -> None:
        self._waiting: SimpleQueue[Mapping[str, Any]] = SimpleQueue()
        self._has_thread = False

    def tell(self, finding: Mapping[str, Any]) -> None:
        """Have them told of a finding.

        Args:
            finding: its ``rule``, ``severity``, ``mode``, ``words`` and ``run``.

        Raises:
            RuntimeError: there can be no thread.
        """
        if sys.modules.keys().isdisjoint(_TRACKERS):
            return
        if not self._has_thread:
            start_thread("smd_agent-trackers", self._work, "telling trackers of findings")
            self._has_thread = True
        self._waiting.put(finding)

    def _work(self) -> None:
        while True:
            finding = self._waiting.get()
            for name, tell in _TRACKERS.items():
                library = sys.modules.get(name)
                failure = None if library is None else guard.attempt(partial(tell, library, finding))
                if failure is not None:
                    # In this order: what is left of a secret would not be known for one.
                    why = shortened(without_secrets(guard.describe(failure)), _LONGEST_REASON)
                    guard.say_once(("tracker", name), f"{name} is not told what rules find while training ({why})")


def _alert(wandb: Any, finding: Mapping[str, Any]) -> None:
    """Make it an alert of the run that is open."""
    if wandb.run is None:
        return
    severity = finding["severity"]
    # Within a minute, W&B drops a second one with the same title.
    title = f"{severity}: {finding['rule']} ({finding['mode']})"[:_LONGEST_TITLE]
    text = f"{finding['words']}; more: python -m smd_agent check {finding['run']}"
    wandb.run.alert(title=title, text=text, level=_LEVELS.get(severity, "INFO"))


def _tag(mlflow: Any, finding: Mapping[str, Any]) -> None:
    """Make it a tag of the run that is active."""
    # The public function knows the runs of its own thread alone; in old versions, which lack this one, those of all.
    fluent = sys.modules.get("mlflow.tracking.fluent")
    active = getattr(fluent, "_get_latest_active_run", mlflow.active_run)()
    if active is not None:
        words = f"{finding['severity']}: {finding['words']}"
        mlflow.MlflowClient().set_tag(active.info.run_id, f"smd_agent.{finding['rule']}", words)


_TRACKERS: Mapping[str, Callable[[Any, Mapping[str, Any]], None]] = {"wandb": _alert, "mlflow": _tag}
