"""Limit of the calls of a model whose inputs and outputs are saved in one step.

Of a model that is called more often, the further calls would add nothing but volume.
"""

from __future__ import annotations

from collections.abc import Hashable

from smd_agent import guard

CALLS = 16


class CallLimit:
    """The calls of models in one step."""

    def __init__(self) -> None:
        self._calls: dict[Hashable, int] = {}

    def takes(self, model: Hashable, name: str, times: int = 1) -> bool:
        """True if the call of a model that begins is saved; a line says so if not.

        Args:
            model: what stands for it.
            name: of it, for the line.
            times: how often the limit, as for a model that is called for each of several devices.
        """
        self._calls[model] = calls = self._calls.get(model, 0) + 1
        if calls > CALLS * times:
            line = f"inputs and outputs are saved of the first {CALLS} calls of {name} in a step"
            guard.say_once(("calls", name), line)
        return calls <= CALLS * times
