"""Gluon's training for the observer of `verify`, which loads this file; it imports nothing of the package."""

from __future__ import annotations

import gc
import weakref
from typing import TYPE_CHECKING, Any

import mxnet
from mxnet import autograd
from mxnet.gluon import Block, Trainer
from mxnet.ndarray import NDArray

if TYPE_CHECKING:
    from collections.abc import Iterable

    from smd_agent.framework.observer import Observer, Weights


def watch(module: Any, observer: Observer) -> None:
    """Have losses of backward passes and updates of Trainers noted."""

    def before_backward(heads: Any, *args: Any, **kwargs: Any) -> None:
        for head in heads if isinstance(heads, (list, tuple)) else [heads]:
            observer.loss("loss", observer.array(head.asnumpy()))

    def after_update(result: object, trainer: Any, *args: Any, **kwargs: Any) -> None:
        observer.updated(trainer, weights, beside)

    def weights(trainer: Any) -> Weights:
        return _values(trainer._params, observer)

    def beside(trainer: Any) -> Weights:
        return _values(others.of(trainer), observer)

    def at_end(_: object) -> Weights:
        # Its generator can be asked for nothing but numbers, which nobody needs any more.
        yield "next random numbers", observer.array(mxnet.nd.random.uniform(shape=(4,)).asnumpy())

    others = _Others()
    observer.around(autograd, "backward", before_backward)
    observer.around(NDArray, "backward", before_backward)
    # Trainer.step and Trainer.update both come by here.
    observer.around(Trainer, "_update", after=after_update)
    observer.at_end(at_end)


def _values(parameters: Iterable[Any], observer: Observer) -> Weights:
    for parameter in parameters:
        if parameter._data is not None:
            yield parameter.name, observer.array(parameter.list_data()[0].asnumpy())


class _Others:
    """The parameters that Trainers have not been given, of blocks that have one that they were given."""

    def __init__(self) -> None:
        self._blocks: dict[int, list[weakref.ref[Any]]] = {}

    def of(self, trainer: Any) -> Iterable[Any]:
        """Those beside one Trainer's."""
        trained = {id(parameter) for parameter in trainer._params}
        if id(trainer) not in self._blocks:
            # Never isinstance: it would ask proxies, which may raise.
            found = [block for block in gc.get_objects() if issubclass(type(block), Block)]
            having = [block for block in found if not trained.isdisjoint(map(id, block.collect_params().values()))]
            self._blocks[id(trainer)] = [weakref.ref(block) for block in having]
        blocks = [block for known in self._blocks[id(trainer)] if (block := known()) is not None]
        parameters = (parameter for block in blocks for parameter in block.collect_params().values())
        return {id(one): one for one in parameters if id(one) not in trained}.values()
