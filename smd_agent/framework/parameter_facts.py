"""Facts of each parameter of a model in a step of training: trained, frozen, forgotten, without a gradient."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Container, Iterable, Mapping
from types import MappingProxyType
from typing import Any, Protocol

from smd_agent.core.collection_keys import CollectionKeys
from smd_agent.core.failure_domains import PARAMETERS
from smd_agent.core.ports import StepWriter
from smd_agent.framework import training_facts as facts
from smd_agent.framework.step_events import BeforeOptimizer, NewParameters, Probe, StepEnd, on


class Parameters(Protocol):
    """Knows the parameters of a framework, and which optimizers have them."""

    def groups_of(self, optimizer: Any) -> Mapping[str, Iterable[Any]]:
        """The parameters that an optimizer was given, by the name of their group, such as ``SGD/group_0``."""

    def can_be_trained(self, parameter: Any) -> bool:
        """True if a parameter can be trained, and is not frozen."""

    def has_gradient(self, parameter: Any) -> bool:
        """True if there is a gradient for a parameter, when an optimizer is about to use it."""

    def was_given(self, parameter: Any) -> bool:
        """True if any optimizer was given a parameter."""


class ParameterFacts(Probe, domain=PARAMETERS, doing="looking at a model's parameters"):
    """The facts of one step that is saved.

    Args:
        writer: takes the text.
        told: the text that was saved last, by model; of the whole run.
        parameters: knows the parameters.
        unregistered: gives those that a model uses and does not know of, with names; of these only those are told of
            that have a gradient and no optimizer.
        marks: ids of those that have one of ``training_facts.MARKS``, by mark.
        is_idle: tells of a name and a parameter whether it is frozen, and makes an adapter add nothing.
    """

    def __init__(
        self,
        writer: StepWriter,
        told: dict[str, str],
        parameters: Parameters,
        unregistered: Callable[[Any], Iterable[tuple[str, Any]]] = lambda _: (),
        marks: Mapping[str, Container[int]] = MappingProxyType({}),
        is_idle: Callable[[str, Any], bool] = lambda *_: False,
    ) -> None:
        self._writer = writer
        self.wanted = CollectionKeys.PARAMETERS in writer.collections_due()
        self._told = told
        self._parameters = parameters
        self._unregistered_of = unregistered
        self._marks = marks
        self._is_idle = is_idle
        # Weakly: a step stays open until the next one begins, and a model that the program lets go must go.
        self._models: dict[str, list[tuple[str, int, weakref.ref[Any]]]] = {}
        self._unregistered: set[int] = set()
        # By the ids of the parameters.
        self._facts: dict[int, dict[str, object]] = {}
        self._optimizers: dict[int, str] = {}

    @on(NewParameters)
    def add_parameters(self, new: NewParameters) -> None:
        """Tell of these parameters too; they can be referred to weakly."""
        unregistered = [*self._unregistered_of(new.model)]
        every = (*new.pairs, *unregistered)
        self._models[new.title] = [(name, id(parameter), weakref.ref(parameter)) for name, parameter in every]
        self._unregistered.update(id(parameter) for _, parameter in unregistered)

    @on(BeforeOptimizer)
    def before_optimizer(self, use: BeforeOptimizer) -> None:
        """Take note of the parameters whose gradients an optimizer is about to use.

        What another optimizer has updated already in this step stays as it was then.
        """
        if not self._models:
            return
        own = {}
        for group, members in self._parameters.groups_of(use.optimizer).items():
            own.update(dict.fromkeys(map(id, members), group))
        for parameters in self._models.values():
            for name, key, reference in parameters:
                if key not in self._optimizers and (parameter := reference()) is not None:
                    self._look_at(name, parameter, own.get(key))
        self._optimizers = {**own, **self._optimizers}

    def _look_at(self, name: str, parameter: Any, group: str | None) -> None:
        """Look at a parameter before an update, by the optimizer that has it in this group, or by another one."""
        known = self._facts.get(id(parameter))
        if known is None or group is not None:
            self._facts[id(parameter)] = {
                "requires_grad": self._parameters.can_be_trained(parameter),
                "optimizer": group or (facts.NOT_NOW if self._parameters.was_given(parameter) else None),
                "gradient": self._parameters.has_gradient(parameter),
                **({"idle": True} if self._is_idle(name, parameter) else {}),
            }
        elif not known["gradient"]:
            known["gradient"] = self._parameters.has_gradient(parameter)

    def _tells(self, key: int) -> bool:
        self._facts[key].update((mark, True) for mark, keys in self._marks.items() if key in keys)
        if key not in self._unregistered:
            return True
        fact = self._facts[key]
        fact["registered"] = False
        return bool(fact["gradient"]) and fact["optimizer"] is None

    @on(StepEnd)
    def close(self, _: StepEnd) -> None:
        """Save what has changed since it was told last, if there has been an update."""
        models, self._models = self._models, {}
        if not self._optimizers:
            return
        for model, parameters in models.items():
            told = {name: self._facts[key] for name, key, _ in parameters if key in self._facts and self._tells(key)}
            text = facts.described(told)
            if self._told.get(model) != text:
                self._told[model] = text
                self._writer.save_tensors((facts.PARAMETERS + model,), (facts.as_text(text),))
