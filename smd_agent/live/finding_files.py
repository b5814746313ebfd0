"""Findings of a training that goes on: each is told once, and all of them stand in a file of the run."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from smd_agent.core.json_fields import object_in
from smd_agent.printable import shortened_within
from smd_agent.regular_file import read_text
from smd_agent.rules.finding import Finding, Severity, about, alike
from smd_agent.storage.atomic_file import replace_file

FINDINGS_FILE = "findings.json"
_VERSION = 1
_LONGEST_NAME = 40


@dataclass
class Told:
    """A finding as it was told.

    Attributes:
        finding: the first of those that are alike.
        tensors: the names of their tensors.
        words: what was found, in a few words.
        time: when it was found, in seconds since the epoch.
        run: the run's folder or address.
    """

    finding: Finding
    tensors: tuple[str, ...]
    words: str
    time: float
    run: str

    @property
    def key(self) -> tuple[str, str]:
        """Rule and mode, by which it is told once."""
        return self.finding.rule, self.finding.mode.name

    def to_json(self) -> dict[str, Any]:
        """Return an object for JSON."""
        one = self.finding
        return {
            "rule": one.rule,
            "severity": one.severity.value,
            "step": one.first_step,
            "global_step": one.global_step,
            "mode": one.mode.name,
            "worker": one.worker,
            "tensors": [*self.tensors],
            "words": self.words,
            "evidence": one.to_json()["evidence"],
            "cause": one.cause,
            "advice": one.advice,
            "time": self.time,
            "run": self.run,
        }


class FindingFile:
    """The findings of a run, and their file.

    Args:
        root: the run's folder.
        shown: its address, where that is another one.
        goes_on: whether those in the file are of this run, from an earlier start.
    """

    def __init__(self, root: Path, shown: str, goes_on: bool) -> None:
        self._root = root
        self._shown = shown
        self._told: dict[tuple[str, str], Severity] = {}
        self._content: list[dict[str, Any]] = []
        if goes_on:
            self._take_over()

    def news(self, findings: Iterable[Finding]) -> list[Told]:
        """Return the findings that have not been told, or that have become worse; notes are left out."""
        found = []
        for group in alike(one for one in findings if one.severity is not Severity.NOTE):
            told = _told(group, self._shown)
            known = self._told.get(told.key)
            if known is None or (known is not told.finding.severity and told.finding.severity.is_as_bad_as(known)):
                self._told[told.key] = told.finding.severity
                self._content.append(told.to_json())
                found.append(told)
        return found

    def write(self, steps: int, losses: int, ended: bool) -> None:
        """Put the file in place.

        Args:
            steps: how many saved steps have been looked at.
            losses: of how many training steps the loss has.
            ended: whether nobody looks on any more.

        Raises:
            OSError: it cannot be written.
        """
        content = {
            "version": _VERSION,
            "findings": self._content,
            "saved_steps": steps,
            "losses": losses,
            "time": time.time(),
            "ended": ended,
        }
        replace_file(self._root, FINDINGS_FILE, (json.dumps(content, indent=1) + "\n").encode())

    def _take_over(self) -> None:
        try:
            before = object_in(read_text(self._root / FINDINGS_FILE)) or {}
        except OSError:
            return
        for one in before.get("findings") or ():
            if isinstance(one, dict) and one.get("severity") in {severity.value for severity in Severity}:
                self._content.append(one)
                self._told[str(one.get("rule")), str(one.get("mode"))] = Severity(one["severity"])


def _told(group: Sequence[Finding], run: str) -> Told:
    names = tuple(dict.fromkeys(one.tensor for one in group if one.tensor is not None))
    first = group[0]
    return Told(first, names, first.in_short(_listed([*dict.fromkeys(map(about, names))])), time.time(), run)


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - 1} more" if len(names) > 1 else ""
    return shortened_within(names[0], _LONGEST_NAME) + more if names else ""
