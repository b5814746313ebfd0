"""Trained parameters of the models of one saved step, and their roles."""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch.nn.parameter import UninitializedParameter

from smd_agent.core.failure_domains import WEIGHTS
from smd_agent.framework.plain_access import is_a
from smd_agent.framework.step_events import NewParameters, Probe, StepEnd, on
from smd_agent.framework.weights_or_biases import Parameter, ParameterRoles
from smd_agent.pytorch.model.given_to_optimizer import are_trained, was_given

Pair = tuple[str, torch.nn.Parameter]


class TrainedRoles(Probe, domain=WEIGHTS, doing="telling weights from biases"):
    """The parameters of one step that is saved, and those of which it is to be seen whether they are trained.

    It is asked in every step, as later ones go by what it finds.

    Args:
        roles: are told.
    """

    def __init__(self, roles: ParameterRoles) -> None:
        self._roles = roles
        self._doubtful: dict[int, tuple[str, str, torch.nn.Parameter]] = {}
        self._settled: set[str] = set()

    @on(NewParameters)
    def settle(self, new: NewParameters) -> None:
        """Tell of a model's parameters, given with the names they are saved under."""
        roles, (title, tracked, pairs) = self._roles, new
        trained = are_trained([parameter for _, parameter in pairs])
        if False in trained:
            # Of a layer that is trained all is saved, what is frozen in it too.
            layers = {name.rpartition(".")[0] for (name, _), found in zip(pairs, trained, strict=True) if found}
            trained = [
                None if found is False and name.rpartition(".")[0] in layers else found
                for (name, _), found in zip(pairs, trained, strict=True)
            ]
        if roles.have_changed(tracked, len(pairs), trained):
            parameters = [_with_role(title, *pair, found) for pair, found in zip(pairs, trained, strict=True)]
            # The step shows whether all of them are left out.
            roles.settle(title, parameters, tell=False)
            self._settled.add(title)
        if False in trained:
            # Should one get a gradient, it is trained all the same. Where two parts of a model take turns, the one
            # whose turn it is not may be frozen.
            for (name, parameter), found in zip(pairs, trained, strict=True):
                may_be = parameter.requires_grad or was_given(parameter)
                if found is False and may_be and not roles.is_trained(name):
                    self._doubtful[id(parameter)] = (title, name, parameter)

    def turned_out_trained(self, differentiated: Iterable[int]) -> list[Pair]:
        """Tell of those that have got a gradient after all, of which these are the ids, and return them."""
        found = []
        for key in self._doubtful.keys() & differentiated:
            title, name, parameter = self._doubtful.pop(key)
            self._roles.settle(title, [_with_role(title, name, parameter, True)], tell=False)
            found.append((name, parameter))
        return found

    @on(StepEnd, doing="saving weights that nothing trains")
    def close(self, _: StepEnd) -> None:
        """Let go of everything, and tell of what is left out."""
        self._doubtful.clear()
        for title in self._settled:
            self._roles.tell_of(title)
        self._settled.clear()


def has_values(parameter: torch.Tensor) -> bool:
    """True if a parameter has values, as one of a lazy layer has not before its first forward."""
    return not is_a(parameter, UninitializedParameter)


def _with_role(title: str, name: str, parameter: torch.nn.Parameter, trained: bool | None) -> Parameter:
    own_name = name.rpartition(".")[2].removeprefix(f"{title}_")
    return Parameter(name, own_name, parameter.dim() if has_values(parameter) else None, trained)
