"""The settings of the optimizers, as their updates used them in a step that is saved."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from smd_agent.core.collection_keys import CollectionKeys
from smd_agent.core.failure_domains import SETTINGS
from smd_agent.core.ports import StepWriter
from smd_agent.framework import training_facts as facts
from smd_agent.framework.step_events import AfterUpdate, BeforeUpdate, Probe, on
from smd_agent.framework.tracked_model import free_name
from smd_agent.framework.weak_references import WeakIdentityMap
from smd_agent.framework.weights_or_biases import ParameterRoles

_titles: WeakIdentityMap[Any, str] = WeakIdentityMap()


def title_of(optimizer: Any, name: str | None = None, is_over: Callable[[Any], object] = lambda _: False) -> str:
    """The name of an optimizer's class, with a number behind it if another one has it already.

    Args:
        optimizer: what updates parameters; it can be referred to weakly.
        name: where that is not what the optimizer is called: its name when this is asked first.
        is_over: tells of another one whether its training is over, so that its name is free.
    """
    title = _titles.get(optimizer)
    if title is None:
        taken = {title for other, title in _titles.pairs() if not is_over(other)}
        title = _titles.set(optimizer, free_name(name or type(optimizer).__name__, taken.__contains__))
    return title


class OptimizerSettings(Probe, domain=SETTINGS, doing="looking at the settings of an optimizer"):
    """The settings of one step that is saved; of each optimizer those of its first update.

    Args:
        writer: takes the values.
        roles: keep them out of the weights.
        settings: gives the settings of an optimizer by name, such as those of ``training_facts.settings``.
        title: gives the title of an optimizer.
    """

    def __init__(
        self,
        writer: StepWriter,
        roles: ParameterRoles,
        settings: Callable[[Any], Mapping[str, Any]],
        title: Callable[[Any], str] = title_of,
    ) -> None:
        self.wanted = CollectionKeys.OPTIMIZER in writer.collections_due()
        self._writer = writer
        self._roles = roles
        self._settings = settings
        self._title = title
        self._told: set[str] = set()

    @on(AfterUpdate)
    def save(self, update: BeforeUpdate | AfterUpdate) -> None:
        """Save the settings of an optimizer, unless that has been done in this step."""
        title = self._title(update.optimizer)
        if title not in self._told:
            self._told.add(title)
            found = self._settings(update.optimizer)
            names = [f"{facts.OPTIMIZER}{title}/{setting}" for setting in found]
            self._roles.keep_out(names)
            self._writer.save_tensors(names, list(found.values()))
