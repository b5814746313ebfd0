"""Weights of a saved step, as they stand when it opens, before its forward.

Those of a parameter whose shape the forward finds out are saved as it is initialized, and those of one that nothing
seemed to train once it gets a gradient.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from itertools import starmap

from mxnet.gluon import Parameter

from smd_agent import guard
from smd_agent.core.collection_keys import CollectionKeys
from smd_agent.core.failure_domains import WEIGHTS
from smd_agent.framework.last_weights import LARGEST
from smd_agent.framework.step_events import AfterBackward, Initialized, NewModel, NewParameters, Probe, on
from smd_agent.mxnet.plain_access import can_be_trained, is_sparse, name_of, values_of
from smd_agent.mxnet.ports import TrainedBlocks
from smd_agent.mxnet.reached_parameters import Pair
from smd_agent.mxnet.trained_parameters import are_trained, with_role


class Weights(Probe, domain=WEIGHTS, doing="saving weights"):
    """The weights of one step.

    Args:
        blocks: those that are trained.
    """

    def __init__(self, blocks: TrainedBlocks) -> None:
        self.wanted = blocks.may_want_tensors()
        self._blocks = blocks
        self._writer = blocks.recorder
        # Parameters that get their values in the forward.
        self._deferred: dict[int, Pair] = {}
        self._doubtful: set[int] = set()

    @on(NewModel, doing="telling weights from biases")
    def settle_roles(self, new: NewModel) -> None:
        """Put the parameters of a model into weights and biases."""
        tracked, roles = new.model, self._blocks.roles
        pairs = list(tracked.parameters())
        trained = are_trained(pairs)
        if tracked.model is not None and roles.have_changed(tracked, trained):
            roles.settle(name_of(tracked.model), starmap(with_role, zip(pairs, trained, strict=True)))
        # Should one get a gradient, it is trained all the same.
        self._doubtful.update(
            id(parameter)
            for (name, parameter), found in zip(pairs, trained, strict=True)
            if found is False and can_be_trained(parameter) and not roles.is_trained(name)
        )

    @on(NewParameters)
    def save(self, new: NewParameters) -> None:
        """Save the parameters of a model."""
        known = []
        for name, parameter in new.pairs:
            if values_of(parameter):
                known.append((name, parameter))
            elif not is_sparse(parameter):
                self._deferred[id(parameter)] = (name, parameter)
            elif self._writer.wants(name):
                # Reading one asks the Trainer's store for rows, which the program has not asked for.
                guard.say_once(("sparse weight", name), f"{name} is not saved: it is a sparse parameter")
        self._write(known)
        self._keep(pair for pair in known if can_be_trained(pair[1]))

    @on(Initialized, doing="saving a parameter that has just been initialized")
    def save_initialized(self, one: Initialized) -> None:
        """Save a parameter that has got its values in a forward."""
        if id(one.parameter) in self._deferred and values_of(one.parameter):
            self._write([self._deferred.pop(id(one.parameter))])

    @on(AfterBackward, doing="saving weights that turned out to be trained")
    def save_doubtful(self, backward: AfterBackward) -> None:
        """Save those that a backward pass has reached, and nothing seemed to train."""
        for name, parameter in backward.reached if self._doubtful else ():
            if id(parameter) in self._doubtful:
                self._doubtful.remove(id(parameter))
                self._blocks.roles.settle(name, [with_role((name, parameter), True)])
                self._write([(name, parameter)])

    def _write(self, pairs: Iterable[tuple[str, Parameter]]) -> None:
        found = [*pairs]
        self._writer.save_tensors([name for name, _ in found], [values_of(parameter)[0] for _, parameter in found])

    def _keep(self, pairs: Iterable[Pair]) -> None:
        """Keep small weights, which are looked at when the program ends."""
        if CollectionKeys.WEIGHTS in self._writer.collections_due():
            arrays = [(name, values_of(parameter)[0]) for name, parameter in pairs]
            small = [(name, array) for name, array in arrays if math.prod(array.shape) <= LARGEST]
            self._blocks.last_weights.keep(self._writer.position.step, small)
