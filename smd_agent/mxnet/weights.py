"""The weights of a saved step: as they stand when it opens, before its forward.

Those of a parameter whose shape the forward finds out are saved as it is initialized, and those of one that nothing
seemed to train once it gets a gradient.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from itertools import starmap
from typing import Any

from mxnet.gluon import Parameter
from mxnet.ndarray import NDArray

from smd_agent import guard
from smd_agent.core.collection_keys import CollectionKeys
from smd_agent.core.domains import WEIGHTS
from smd_agent.core.ports import StepWriter
from smd_agent.framework.captured_step import Installed
from smd_agent.framework.last_weights import LARGEST
from smd_agent.mxnet.gradients import Pair
from smd_agent.mxnet.ports import TrainedBlocks
from smd_agent.mxnet.structure import can_be_trained, is_sparse, name_of, values_of
from smd_agent.mxnet.trained import are_trained, with_role


class Weights:
    """What becomes of the weights of one saved step.

    Args:
        blocks: of which they are.
        installed: what is undone when the step closes.
        is_current: tells whether what is computed now belongs to this step.
    """

    def __init__(self, blocks: TrainedBlocks, installed: Installed, is_current: Callable[[], bool]) -> None:
        self._blocks = blocks
        self._writer: StepWriter = blocks.recorder
        self._installed = installed
        self._is_current = is_current
        # Parameters that get their values in the forward.
        self._deferred: dict[int, Pair] = {}
        self._doubtful: set[int] = set()

    def save(self, pairs: Iterable[Pair]) -> None:
        """Save the weights of blocks that have become known.

        Args:
            pairs: their parameters, with the names they are saved under.
        """
        names, arrays = [], []
        small: list[tuple[str, NDArray]] = []
        waiting = bool(self._deferred)
        self._settle_roles()
        for name, parameter in pairs:
            found = values_of(parameter)
            if found:
                names.append(name)
                arrays.append(found[0])
                if can_be_trained(parameter):
                    small.append((name, found[0]))
            elif not is_sparse(parameter):
                self._deferred[id(parameter)] = (name, parameter)
            elif self._writer.wants(name):
                # Reading one asks the Trainer's store for rows, which the program has not asked for.
                guard.say_once(("sparse weight", name), f"{name} is not saved: it is a sparse parameter")
        self._writer.save_tensors(names, arrays)
        WEIGHTS.run("keeping weights for the end", lambda: self._keep(small))
        if self._deferred and not waiting:
            why = "weights are saved as they are initialized"
            self._installed.patch(Parameter, "_finish_deferred_init", self._wrap_deferred_init, why=why)

    def _keep(self, pairs: Iterable[tuple[str, NDArray]]) -> None:
        if CollectionKeys.WEIGHTS in self._writer.collections_due():
            small = [(name, array) for name, array in pairs if math.prod(array.shape) <= LARGEST]
            self._blocks.last_weights.keep(self._writer.position.step, small)

    def _settle_roles(self) -> None:
        roles = self._blocks.roles
        for tracked in (*self._blocks.models, *self._blocks.owners):
            pairs = list(tracked.parameters())
            trained = are_trained(pairs)
            if tracked.model is not None and roles.have_changed(tracked, trained):
                roles.settle(name_of(tracked.model), starmap(with_role, zip(pairs, trained, strict=True)))
            if False in trained:
                # Should one get a gradient, it is trained all the same.
                self._doubtful.update(
                    id(parameter)
                    for (name, parameter), found in zip(pairs, trained, strict=True)
                    if found is False and can_be_trained(parameter) and not roles.is_trained(name)
                )

    def reached(self, pairs: Iterable[Pair]) -> None:
        """A backward pass has reached these; save those that turn out to be trained."""
        if self._doubtful:
            self._save_doubtful(pairs)

    @WEIGHTS.fence("saving weights that turned out to be trained")
    def _save_doubtful(self, pairs: Iterable[Pair]) -> None:
        for name, parameter in pairs:
            if id(parameter) in self._doubtful:
                self._doubtful.remove(id(parameter))
                self._blocks.roles.settle(name, [with_role((name, parameter), True)])
                self._writer.save_tensor_now(name, values_of(parameter)[0])

    def _wrap_deferred_init(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def finish(parameter: Parameter, *args: Any, **kwargs: Any) -> Any:
            result = original(parameter, *args, **kwargs)
            if id(parameter) in self._deferred and self._is_current():
                self._save_initialized(parameter)
            return result

        return finish

    @WEIGHTS.fence("saving a parameter that has just been initialized")
    def _save_initialized(self, parameter: Parameter) -> None:
        found = values_of(parameter)
        if found:
            name, _ = self._deferred.pop(id(parameter))
            self._writer.save_tensor_now(name, found[0])
