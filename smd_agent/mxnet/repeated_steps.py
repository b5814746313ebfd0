"""Steps of Gluon in a training that is done again for ``replay``: those in which operations are watched.

In them hybridized blocks run as they are written, so that what is inside of them is seen. The program ends before the
update of the step that went wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Protocol

import numpy as np
from mxnet import autograd
from mxnet.gluon import Block, HybridBlock, Parameter
from mxnet.ndarray import NDArray

from smd_agent.core.failure_domains import CULPRITS
from smd_agent.core.recorder import Recorder
from smd_agent.framework.plain_access import is_a, own_dict
from smd_agent.framework.repeated_training import RepeatedTraining
from smd_agent.framework.replaced_functions import Until
from smd_agent.framework.series_rows import At
from smd_agent.framework.training_step import TrainingSteps
from smd_agent.framework.value_makers import Value, kind_of
from smd_agent.interpreter.hidden_frames import unseen
from smd_agent.mxnet import backward_calls, block_calls
from smd_agent.mxnet.arrays import arrays_in, is_symbolic, plain, raise_pending_error
from smd_agent.mxnet.hybridized import is_active
from smd_agent.mxnet.plain_access import can_be_trained, gradients_of, is_sparse, name_of, values_of
from smd_agent.mxnet.step_counter import TrackedBlock
from smd_agent.mxnet.trainer_watch import updates
from smd_agent.mxnet.watched_operations import WatchedOperations
from smd_agent.printable import some_of

_NAMED = 3


class Trained(Protocol):
    """Knows the blocks that are trained; a hook."""

    models: list[TrackedBlock]
    recorder: Recorder
    steps: TrainingSteps

    def parameters(self) -> list[tuple[str, Parameter]]:
        """All parameters, each once, with the names they are saved under."""


class RepeatedSteps:
    """Those of a process.

    Args:
        text: of the order.
        trained: the hook.
    """

    def __init__(self, text: str, trained: Trained) -> None:
        self._training = RepeatedTraining(text)
        self._trained = trained
        self._operations = WatchedOperations(self._training.makers)
        # That is watched; -1 before the first.
        self._step = -1
        # The weights were finite as it began, and so are its gradients.
        self._is_well = False
        # Names of gradients that were not finite as it began.
        self._stale: set[str] = set()
        block_calls.watch(self._call, Until.PROCESS_ENDS)
        backward_calls.watch(self._around_backward)

    def step_begins(self) -> None:
        """A step may have begun; after the last one that is watched, the program ends.

        Raises:
            TrainingStopped: it does.
        """
        now = At.current(self._trained.recorder.interrupted or self._trained.recorder.position)
        if not _trains() or now.mode_step == self._step or not self._training.watches(now.mode_step):
            return
        if self._step >= 0:
            self._training.step_ends()
        self._step = now.mode_step
        self._begin()

    @CULPRITS.fence("looking at a step that begins")
    def _begin(self) -> None:
        self._operations.forget()
        self._training.step_begins(self._step)
        self._operations.begin()
        updates.end = self._before_update
        for tracked in self._trained.models:
            for block in tracked.parts():
                _run_as_written(block)
        bad = [(name, value) for name, parameter in self._trained.parameters() for value in self._bad_in(parameter)]
        for name, value in bad:
            if self._is_well:
                words = f"the update before step {self._step} made {{}} of finite weights and gradients: {name}"
            else:
                words = f"the weights had {{}} before: {name}"
            self._training.makers.comes(_whole(value), words, of_weights=not self._is_well)
        self._is_well = not bad
        self._stale = {name for name, _ in self._bad_gradients()}

    def _bad_gradients(self) -> list[tuple[str, Value]]:
        trained = [pair for pair in self._trained.parameters() if can_be_trained(pair[1])]
        return [(name, value) for name, one in trained for value in self._not_finite(gradients_of(one))]

    def _bad_in(self, parameter: Parameter) -> list[Value]:
        """The values of a parameter that are not finite."""
        return self._not_finite(() if is_sparse(parameter) else values_of(parameter))

    def _not_finite(self, arrays: Iterable[NDArray]) -> list[Value]:
        found = ((array, self._operations.value_of(array)) for array in arrays)
        return [value._replace(tensor=array) for array, value in found if value is not None and kind_of(value.array)]

    # Blocks.

    @unseen
    def _call(self, original: Callable[..., Any], block: Block, *args: Any, **kwargs: Any) -> Any:
        if not is_symbolic(args):
            self.step_begins()
            if self._step >= 0 and _trains():
                self._before_block(block, args, kwargs)
                raise_pending_error()
        return original(block, *args, **kwargs)

    @CULPRITS.fence("looking at what a block is given")
    def _before_block(self, block: Block, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        _run_as_written(block)
        tracked = next((one for one in self._trained.models if one.model is block), None)
        if tracked is not None:
            given = arrays_in((args, kwargs))
            makers = self._training.makers
            makers.rows = makers.rows or next((one.shape[0] for one in given if one.ndim), 0)
            for one in given:
                where = f" on {plain(one).context}" if tracked.parallel else ""
                self._operations.comes(one, f"the batch that {name_of(block)} was given{where} has {{}}")

    # Backward passes and updates.

    @unseen
    def _around_backward(self, heads: Any, run: Callable[[], Any]) -> Any:
        if self._step < 0:
            return run()
        self._pass_begins(heads)
        raise_pending_error()
        result = run()
        self._pass_ended(heads)
        raise_pending_error()
        if self._trained.steps.pass_ends_step:
            self._before_update()
        return result

    @CULPRITS.fence("looking at a loss")
    def _pass_begins(self, heads: Any) -> None:
        for array in arrays_in(heads):
            value = self._operations.value_of(array)
            if value is not None and value.array.size:
                self._training.loss_is(array, float(value.array.mean(dtype="float64")))

    @CULPRITS.fence("looking at gradients")
    def _pass_ended(self, heads: Any) -> None:
        if self._training.is_over:
            return
        bad = self._bad_gradients()
        maker = self._operations.look_at_gradients(heads) if bad else None
        if maker is None:
            # Those of a step before stay where this pass has not come to.
            bad = [(name, value) for name, value in bad if name not in self._stale]
        self._is_well = self._is_well and not bad
        names = some_of([name for name, _ in bad], _NAMED)
        hidden = self._operations.hidden
        before = f"; before, {hidden}, which has not reached the loss" if hidden else ""
        for _, value in bad:
            if maker is None:
                self._training.makers.comes(_whole(value), f"the backward pass made {{}} ({names}){before}")
            else:
                self._training.makers.goes(maker, value.tensor)
        self._training.gradients_are((name, value.tensor) for name, value in bad)

    def _before_update(self) -> None:
        updates.end = self._before_update
        if self._training.is_over:
            self._training.step_ends()


def _whole(value: Value) -> Value:
    """The same tensor as one number that it has and that is not finite: its rows are none of a batch's."""
    return value._replace(array=value.array[~np.isfinite(value.array)][0].reshape(()))


def _trains() -> bool:
    return bool(autograd.is_recording() and autograd.is_training())


def _run_as_written(block: Block) -> None:
    """Have a hybridized block call what is inside of it from now on."""
    if is_a(block, HybridBlock) and is_active(block):
        own_dict(block)["_active"] = False
