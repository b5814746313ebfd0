"""Keras's training for the observer of `verify`, which loads this file; it imports nothing of the package.

An optimizer counts its updates. It is asked after each call of a compiled function, after each update that is not
compiled, and, in `fit`, when a batch is over.
"""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from smd_agent.framework.observer import Observer, Value

# Of what a compiled function returns, as losses and metrics are; predictions are not.
_MOST = 4096


def watch(keras: Any, observer: Observer) -> None:
    """Have updates of optimizers noted, and what steps return."""
    updates = _Updates(observer, keras.layers.Layer)
    optimizer = keras.optimizers.Optimizer
    if str(getattr(keras, "__version__", "2")).startswith("2"):
        observer.around(_definer(optimizer, "build"), "build", updates.before_build)
        applies = "apply_gradients"
    else:
        applies = "apply"
        observer.generator("Keras", lambda: _state(keras))
    applied = observer.around(_definer(optimizer, applies), applies, after=updates.after_apply)
    # Else AutoGraph would compile it, and with it what it calls.
    applied.autograph_info__ = None
    callbacks = keras.callbacks.CallbackList
    observer.around(callbacks, "on_train_batch_begin", updates.before_batch)
    observer.around(callbacks, "on_train_batch_end", updates.before_batch_end)
    observer.listeners.append(updates.after_call)


class _Updates:
    """The updates of a Keras's optimizers; ``layer`` is its class of layers."""

    def __init__(self, observer: Observer, layer: type) -> None:
        self._observer = observer
        self._layer = layer
        self._others: dict[int, list[weakref.ref[Any]]] = {}
        self._optimizers: list[weakref.ref[Any]] = []
        self._variables: dict[int, list[weakref.ref[Any]]] = {}
        self._counts: dict[int, int] = {}
        self._in_batch = False

    def before_build(self, optimizer: Any, variables: Any, *args: Any, **kwargs: Any) -> None:
        """An optimizer of Keras 2 is told what it trains."""
        self._variables[id(optimizer)] = [weakref.ref(variable) for variable in variables]

    def after_apply(self, result: object, optimizer: Any, *args: Any, **kwargs: Any) -> None:
        """An optimizer has updated, or an update of it has been compiled."""
        if not any(known() is optimizer for known in self._optimizers):
            self._optimizers.append(weakref.ref(optimizer))
            self._counts[id(optimizer)] = 0
        if hasattr(optimizer, "_trainable_variables"):
            self._variables[id(optimizer)] = [weakref.ref(variable) for variable in optimizer._trainable_variables]
        if self._observer.is_eager():
            self.after_call(None)

    def before_batch(self, *args: Any, **kwargs: Any) -> None:
        """A batch of `fit` begins."""
        self._in_batch = True

    def before_batch_end(self, callbacks: object, batch: Any = None, logs: Any = None) -> None:
        """A batch of `fit` is over."""
        self._in_batch = False
        self.after_call(logs)

    def after_call(self, result: Any) -> None:
        """Something has run that may have updated, and returned this."""
        if self._in_batch:
            return
        for optimizer in [optimizer for known in self._optimizers if (optimizer := known()) is not None]:
            count = int(optimizer.iterations.numpy())
            if count != self._counts[id(optimizer)]:
                self._counts[id(optimizer)] = count
                for name, value in self._numbers(result):
                    self._observer.loss(name, value)
                self._observer.updated(optimizer, self._of, self._beside)
                result = None

    def _of(self, optimizer: Any) -> Iterator[tuple[str, Value]]:
        return self._values(self._variables.get(id(optimizer), ()))

    def _beside(self, optimizer: Any) -> Iterator[tuple[str, Value]]:
        """The variables that are not trained, of all layers in which one of the optimizer's is."""
        if id(optimizer) not in self._others:
            trained = {id(known()) for known in self._variables.get(id(optimizer), ())} - {id(None)}
            self._others[id(optimizer)] = [weakref.ref(variable) for variable in self._not_trained(trained)]
        return self._values(self._others[id(optimizer)])

    def _not_trained(self, trained: set[int]) -> Iterable[Any]:
        # Never isinstance: it would ask proxies, which may raise.
        layers = [found for found in gc.get_objects() if issubclass(type(found), self._layer)]
        of_layers = (layer for layer in layers if not trained.isdisjoint(map(id, layer.trainable_variables)))
        others = (variable for layer in of_layers for variable in layer.non_trainable_variables)
        return {id(variable): variable for variable in others if id(variable) not in trained}.values()

    def _values(self, variables: Iterable[weakref.ref[Any]]) -> Iterator[tuple[str, Value]]:
        for known in variables:
            variable = known()
            if variable is not None:
                name = getattr(variable, "path", None) or variable.name
                array = variable.numpy()
                # The bytes of texts would be their places in memory.
                if array.dtype.kind != "O":
                    yield str(name), self._observer.array(array)

    def _numbers(self, result: Any, name: str = "returned") -> Iterator[tuple[str, Value]]:
        if isinstance(result, Mapping):
            for key, value in result.items():
                yield from self._numbers(value, str(key))
        elif isinstance(result, (list, tuple)):
            for value in result:
                yield from self._numbers(value, name)
        elif isinstance(result, (int, float)):
            yield name, self._observer.text(repr(result))
        elif hasattr(result, "numpy"):
            array = result.numpy()
            if array.dtype.kind in "biufc" and array.size <= _MOST:
                yield name, self._observer.array(array)


def _definer(cls: type, name: str) -> type:
    return next(base for base in cls.__mro__ if name in vars(base))


def _state(keras: Any) -> bytes | None:
    # Asked for by its own function, it would be made.
    source = getattr(getattr(keras, "src", None), "backend", None)
    known = getattr(getattr(source, "common", None), "global_state", None)
    generator = None if known is None else known.get_global_attribute("global_seed_generator")
    return None if generator is None else bytes(generator.state.numpy().tobytes())
