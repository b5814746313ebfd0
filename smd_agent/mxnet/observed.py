"""Where MXNet Gluon trains, for the observer of `verify`, which loads this file; it imports nothing of the package."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import mxnet
from mxnet import autograd
from mxnet.gluon import Trainer
from mxnet.ndarray import NDArray

if TYPE_CHECKING:
    from smd_agent.framework.observer import Observer, Weights


def watch(module: Any, observer: Observer) -> None:
    """Have losses of backward passes and updates of Trainers noted."""

    def before_backward(heads: Any, *args: Any, **kwargs: Any) -> None:
        for head in heads if isinstance(heads, (list, tuple)) else [heads]:
            observer.loss("loss", observer.array(head.asnumpy()))

    def after_update(result: object, trainer: Any, *args: Any, **kwargs: Any) -> None:
        observer.updated(trainer, weights)

    def weights(trainer: Any) -> Weights:
        for parameter in trainer._params:
            if parameter._data is not None:
                yield parameter.name, observer.array(parameter.list_data()[0].asnumpy())

    def at_end(_: object) -> Weights:
        # Its generator can be asked for nothing but numbers, which nobody needs any more.
        yield "next random numbers", observer.array(mxnet.nd.random.uniform(shape=(4,)).asnumpy())

    observer.around(autograd, "backward", before_backward)
    observer.around(NDArray, "backward", before_backward)
    # Trainer.step and Trainer.update both come by here.
    observer.around(Trainer, "_update", after=after_update)
    observer.at_end(at_end)
