"""Parameters of optimizers that belong to no module, as the weights of a layer that was replaced.

``usage/optimizer/<title>/unowned``        how many of its parameters belong to no model of the program, can be trained
                                           and have never been: no gradient, and the values that they had at first.
``usage/optimizer/<title>/with_gradient``  the share of its parameters that have a gradient when it updates.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any, Protocol

from smd_agent.core.failure_domains import PARAMETERS
from smd_agent.framework.step_events import BeforeOptimizer, on
from smd_agent.framework.usage import Usage, UsageProbe
from smd_agent.framework.weak_references import WeakIdentityMap


class Parameters(Protocol):
    """Knows the parameters of a framework's optimizers and models."""

    def title_of(self, optimizer: Any) -> str:
        """The name of an optimizer."""

    def trained_by(self, optimizer: Any) -> Sequence[Any]:
        """The parameters of an optimizer that can be trained."""

    def has_gradient(self, parameter: Any) -> bool:
        """True if there is a gradient for a parameter, when an optimizer is about to use it."""

    def version_of(self, parameter: Any) -> Hashable:
        """The version of a parameter, which is another one when its values have changed."""

    def living(self) -> set[int]:
        """The ids of the parameters of all models that are alive; they are looked for among all objects."""


class _WithoutGradient:
    """Parameters of an optimizer that had no gradient, by id.

    first: their versions when they were seen first.
    asked: those for which models were looked through last.
    unowned: how many of these belonged to no model.
    """

    def __init__(self) -> None:
        self.first: dict[int, Hashable] = {}
        self.asked: set[int] = set()
        self.unowned = 0


_known: WeakIdentityMap[Any, _WithoutGradient] = WeakIdentityMap()


class UnownedParameters(UsageProbe, domain=PARAMETERS, doing="looking at parameters without a model"):
    """Their numbers in one step that is saved.

    Args:
        usage: takes the numbers.
        parameters: knows the parameters.
        owned: gives the ids of the parameters of all models that are known.
    """

    def __init__(self, usage: Usage, parameters: Parameters, owned: Callable[[], set[int]]) -> None:
        super().__init__(usage)
        self._parameters = parameters
        self._owned = owned
        self._told: set[str] = set()

    @on(BeforeOptimizer)
    def before_optimizer(self, use: BeforeOptimizer) -> None:
        """Save what is to be said of an optimizer that is about to use gradients, once a step."""
        optimizer = use.optimizer
        title = self._parameters.title_of(optimizer)
        if title in self._told:
            return
        self._told.add(title)
        parameters = self._parameters.trained_by(optimizer)
        if parameters:
            without = [parameter for parameter in parameters if not self._parameters.has_gradient(parameter)]
            share = 1 - len(without) / len(parameters)
            numbers = {"unowned": self._unowned(optimizer, without), "with_gradient": share}
            self._usage.save(f"optimizer/{title}", numbers, here=True)

    def _unowned(self, optimizer: Any, without_gradient: Sequence[Any]) -> int:
        known = _known.get(optimizer) or _known.set(optimizer, _WithoutGradient())
        versions = {id(parameter): self._parameters.version_of(parameter) for parameter in without_gradient}
        still = {key for key, version in versions.items() if known.first.setdefault(key, version) == version}
        still -= self._owned() if still else set()
        if not still:
            return 0
        if known.asked != still:
            # A walk through all objects, made only where something is wrong or has changed.
            known.asked, known.unowned = still, len(still - self._parameters.living())
        return known.unowned
