"""Keras 3 on PyTorch: the functions that its models make for a step, which run eagerly or under ``torch.compile``.

Keras calls such a function once for every step, from ``fit`` as from ``train_on_batch``. What stands in its place
counts the step; on one that is saved, layers, the loss and the optimizer are watched while it runs, and only then.
"""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable
from typing import Any

from smd_agent import session
from smd_agent.core.modes import ModeKeys
from smd_agent.framework.keras_names import Names, definer
from smd_agent.pytorch.discovery import Discovery
from smd_agent.pytorch.keras_capture import Capture
from smd_agent.pytorch.keras_hook import KerasHook

_FUNCTIONS = {"train": ModeKeys.TRAIN, "test": ModeKeys.EVAL, "predict": ModeKeys.PREDICT}
_ENTRIES = ("fit", "evaluate", "predict", "train_on_batch", "test_on_batch", "predict_on_batch")


class KerasWatch:
    """Sees the steps of all models.

    Args:
        keras: imported, with PyTorch for its backend.
        make_hook: gives the hook to save with when the first model makes a function.
        discovery: of other models of the program; it rests while Keras runs.

    Attributes:
        keras: the package.
        current: the step function that is running now.
        names: of layers and variables.

    Raises:
        LookupError: this Keras is not built as those known here.
    """

    def __init__(self, keras: Any, make_hook: Callable[[], KerasHook | None], discovery: Discovery) -> None:
        self.keras = keras
        self.current: StepFunction | None = None
        self.names = Names(lambda variable: str(variable.path))
        self._make_hook: Callable[[], KerasHook | None] | None = make_hook
        self._discovery = discovery
        self._trainer = definer(keras.Model, "make_train_function")

    def install(self) -> None:
        """Begin to watch; called once."""
        for kind in _FUNCTIONS:
            self._wrap_maker(self._trainer, kind)
        for method in _ENTRIES:
            _wrap(self._trainer, method, self._entered)
        _wrap(self.keras.callbacks.History, "on_epoch_end", self._around_epoch_end)

    def hook(self) -> KerasHook | None:
        """The hook to save with: the one of the process, or the one that is made now because there was none."""
        hook = session.current()
        if hook is None and self._make_hook is not None:
            make, self._make_hook = self._make_hook, None
            return make()
        return hook if isinstance(hook, KerasHook) else None

    def rest(self, resting: bool) -> None:
        """Have the models that a step calls not taken for ones that the program trains by itself, or end that."""
        self._discovery.paused = resting

    # Functions that models make.

    def _wrap_maker(self, owner: type, kind: str) -> None:
        def around(original: Callable[..., Any]) -> Callable[..., Any]:
            def make(model: Any, *args: Any, **kwargs: Any) -> Any:
                made = original(model, *args, **kwargs)
                ours = self._replace(model, kind)
                return made if made is None or ours is None else ours

            return make

        _wrap(owner, f"make_{kind}_function", around)

    @session.fence("watching a model")
    def _replace(self, model: Any, kind: str) -> Any:
        slot = f"{kind}_function"
        function = getattr(model, slot, None)
        if function is None or isinstance(function, StepFunction) or self.hook() is None:
            return function
        step = StepFunction(self, model, _FUNCTIONS[kind], function)
        # The attribute is neither a layer nor a variable: nothing for the model to track.
        object.__setattr__(model, slot, step)
        return step

    def _entered(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def entered(model: Any, *args: Any, **kwargs: Any) -> Any:
            self._look_for_overrides(type(model))
            return original(model, *args, **kwargs)

        return entered

    @session.fence("looking at a model's class")
    def _look_for_overrides(self, cls: type) -> None:
        for base in cls.__mro__:
            if base is self._trainer:
                return
            for kind in _FUNCTIONS:
                own = vars(base).get(f"make_{kind}_function")
                if own is not None and not hasattr(own, "_smd_agent"):
                    self._wrap_maker(base, kind)

    def _around_epoch_end(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def on_epoch_end(callback: Any, epoch: int, logs: Any = None) -> Any:
            self._saw_epoch(logs)
            return original(callback, epoch, logs)

        return on_epoch_end

    @session.fence("saving the logs of an epoch")
    def _saw_epoch(self, logs: Any) -> None:
        hook = self.hook()
        if logs and hook is not None:
            hook.save_epoch({name: value for name, value in logs.items() if name.startswith("val_")})


class StepFunction:
    """Calls a model's own function and counts its steps.

    Attributes:
        mode: of its steps.
    """

    def __init__(self, watch: KerasWatch, model: Any, mode: ModeKeys, function: Callable[..., Any]) -> None:
        self.mode = mode
        # The model holds this: a cycle would keep both until the garbage collector runs.
        self._model = weakref.ref(model)
        self._watch = watch
        self._function = function

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the model's own function."""
        watch = self._watch
        hook = None if watch.current is not None else watch.hook()
        if hook is None:
            return self._function(*args, **kwargs)
        watch.current = self
        watch.rest(True)
        capture = self._begin(hook)
        try:
            if capture is not None:
                capture.open()
            outputs = self._function(*args, **kwargs)
        finally:
            if capture is not None:
                capture.close()
            watch.rest(False)
            watch.current = None
        if capture is not None:
            capture.finish(outputs)
        return outputs

    def __getattr__(self, name: str) -> Any:
        # Programs may look at what the function is.
        if name == "_function":
            raise AttributeError(name)
        return getattr(self._function, name)

    def __reduce__(self) -> Any:
        # Functions are not part of a saved or copied model.
        return (type(None), ())

    @property
    def model(self) -> Any:
        """The model whose function this is."""
        return self._model()

    @session.fence("opening a step")
    def _begin(self, hook: KerasHook) -> Capture | None:
        """Count the step, and open it if it is saved."""
        pulse = hook.pulse
        if pulse.open:
            hook.end_step()
        clock = hook.clock_for(self.mode)
        pulse.step += 1
        pulse.clock = clock
        clock.step += 1
        if clock.step < clock.due or not hook.open_step():
            return None
        return Capture(hook, self._watch.keras, self._watch.names, self.model, self.mode)


def _wrap(owner: Any, name: str, around: Callable[[Callable[..., Any]], Callable[..., Any]]) -> None:
    original = getattr(owner, name)
    wrapper: Any = functools.wraps(original)(around(original))
    wrapper._smd_agent = True
    setattr(owner, name, wrapper)
