"""The way to what a notebook shows of a trial or a tensor."""

from __future__ import annotations

from importlib import import_module
from typing import Any

# On a floor above this one, because it says what rules find; loaded only where a notebook asks for it.
_HOME = "smd_agent.report.notebook"


def html_of(kind: str, thing: Any) -> str:
    """Return the HTML text of a ``trial`` or a ``tensor``."""
    text: str = getattr(import_module(_HOME), f"html_of_{kind}")(thing)
    return text
