"""Parameters of optimizers that belong to no module, as the weights of a layer that was replaced.

``usage/optimizer/<title>/unowned``        how many of its parameters belong to no module of the program, can be trained
                                           and have never been: no gradient, and the values that they had at first.
``usage/optimizer/<title>/with_gradient``  the share of its parameters that have a gradient when it updates.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from smd_agent.core.domains import PARAMETERS
from smd_agent.framework.identity import WeakIdentityMap
from smd_agent.framework.optimizer_settings import title_of
from smd_agent.framework.step_events import BeforeOptimizer, on
from smd_agent.framework.usage import Usage, UsageProbe
from smd_agent.pytorch.model.live_modules import living_modules
from smd_agent.pytorch.structure import optimized, own_parameters


class _WithoutGradient:
    """Parameters of an optimizer that had no gradient, by id.

    first: their versions when they were seen first.
    asked: those for which modules were looked through last.
    unowned: how many of these belonged to no module.
    """

    def __init__(self) -> None:
        self.first: dict[int, int] = {}
        self.asked: set[int] = set()
        self.unowned = 0


_known: WeakIdentityMap[Any, _WithoutGradient] = WeakIdentityMap()


class UnownedParameters(UsageProbe, domain=PARAMETERS, doing="looking at parameters without a model"):
    """Their numbers in one step that is saved.

    Args:
        usage: takes the numbers.
        owned: gives the ids of the parameters of all models that are known.
    """

    def __init__(self, usage: Usage, owned: Callable[[], set[int]]) -> None:
        super().__init__(usage)
        self._owned = owned
        self._told: set[str] = set()

    @on(BeforeOptimizer)
    def before_optimizer(self, use: BeforeOptimizer) -> None:
        """Save what is to be said of an optimizer that is about to use gradients, once a step."""
        optimizer = use.optimizer
        title = title_of(optimizer)
        if title in self._told:
            return
        self._told.add(title)
        parameters = [parameter for parameter in optimized(optimizer) if parameter.requires_grad]
        if parameters:
            without = [parameter for parameter in parameters if parameter.grad is None]
            share = 1 - len(without) / len(parameters)
            numbers = {"unowned": self._unowned(optimizer, without), "with_gradient": share}
            self._usage.save(f"optimizer/{title}", numbers)

    def _unowned(self, optimizer: Any, without_gradient: list[torch.Tensor]) -> int:
        known = _known.get(optimizer) or _known.set(optimizer, _WithoutGradient())
        versions = {id(parameter): parameter._version for parameter in without_gradient}
        still = {key for key, version in versions.items() if known.first.setdefault(key, version) == version}
        still -= self._owned() if still else set()
        if not still:
            return 0
        if known.asked != still:
            # A walk through all objects, made only where something is wrong or has changed.
            in_modules = {id(one) for module in living_modules() for _, one in own_parameters(module)}
            known.asked, known.unowned = still, len(still - in_modules)
        return known.unowned
