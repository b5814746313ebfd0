"""What is watched of one Keras: the functions its models make, and the functions that are traced while these run."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

from tensorflow.python.eager.polymorphic_function import transform

from smd_agent import guard, session
from smd_agent.core.modes import ModeKeys
from smd_agent.framework.keras_names import Names
from smd_agent.tensorflow.hook import TensorflowHook
from smd_agent.tensorflow.keras_compiled import CompiledFunction
from smd_agent.tensorflow.keras_flavour import Flavour, flavour_of
from smd_agent.tensorflow.keras_notes import Notes
from smd_agent.tensorflow.keras_step import StepFunction
from smd_agent.tensorflow.keras_windows import Windows, feeding, made_for_one_step, steps_per_execution, watch_epochs
from smd_agent.tensorflow.naming import plain_name
from smd_agent.tensorflow.taps import NoteBook

_FUNCTIONS = {"train": ModeKeys.TRAIN, "test": ModeKeys.EVAL, "predict": ModeKeys.PREDICT}
_ENTRIES = ("fit", "evaluate", "predict", "train_on_batch", "test_on_batch", "predict_on_batch")

PACKAGES = ("keras", "tf_keras")
"""Import names under which a Keras may be found."""

armed = False
"""Whether the agent watches every Keras as soon as it is imported."""

_NAMES = Names(plain_name)


class KerasWatch:
    """Sees the steps of all models of one Keras.

    Args:
        flavour: the Keras.
        make_hook: gives the hook to save with when the first model makes a function and there is none; None: there
            will be none.

    Attributes:
        current: the step function that is running now.
        book: what is noted of functions while they are traced.
        names: of layers and variables; those of all Keras in the process are distinct.
        changes: how often something has happened since which a model may have other variables.
    """

    def __init__(self, flavour: Flavour, make_hook: Callable[[], TensorflowHook | None] | None) -> None:
        self.flavour = flavour
        self.current: StepFunction | None = None
        self.book = NoteBook()
        self.names = _NAMES
        self.changes = 0
        self._make_hook = make_hook

    def install(self) -> None:
        """Begin to watch; called once."""
        trainer = self.flavour.trainer
        for kind in _FUNCTIONS:
            self._wrap_maker(trainer, kind)
        for method in _ENTRIES:
            wrap(trainer, method, self._entered)
        watch_epochs(trainer)
        Notes(self).install()
        transform.CONCRETE_FUNCTION_CALLBACKS.append(self._traced)

    def hook(self) -> TensorflowHook | None:
        """The hook to save with: the one of the process, or the one that is made now because there was none."""
        hook = session.current()
        if hook is None and self._make_hook is not None:
            make, self._make_hook = self._make_hook, None
            return make()
        return hook if isinstance(hook, TensorflowHook) else None

    # Functions.

    def _wrap_maker(self, owner: Any, kind: str) -> None:
        def around(original: Callable[..., Any]) -> Callable[..., Any]:
            def make(model: Any, *args: Any, **kwargs: Any) -> Any:
                made = original(model, *args, **kwargs)
                ours = self._replace(model, kind)
                return made if made is None or ours is None else ours

            return make

        wrap(owner, f"make_{kind}_function", around)

    @session.fence("watching a model")
    def _replace(self, model: Any, kind: str) -> StepFunction | None:
        slot = f"{kind}_function"
        function = getattr(model, slot, None)
        if function is None or isinstance(function, StepFunction):
            return function
        if getattr(model, "_cluster_coordinator", None) is not None:
            guard.say_once("parameter servers", "what workers of a ParameterServerStrategy compute is not saved")
            return None
        if self.hook() is None:
            return None
        tracings = getattr(function, "experimental_get_tracing_count", None)
        if tracings is not None and tracings():
            line = "a model was trained before the hook was made: its gradients, inputs and outputs are not saved"
            guard.say_once("traced before", line)
        single = functools.partial(self._single, model, kind, function)
        step = StepFunction(self, model, _FUNCTIONS[kind], function, self._steps(model), single)
        # The attribute is neither a layer nor a variable: nothing for the model to track.
        object.__setattr__(model, slot, step)
        return step

    def _steps(self, model: Any) -> int | Callable[[tuple[Any, ...]], int]:
        steps = steps_per_execution(model)
        if self.flavour.version >= 3:
            return steps if steps == 1 else Windows(steps)
        if steps == 1 and not getattr(model, "autotune_steps_per_execution", False):
            return 1
        # Keras 2 makes the last execution of an epoch shorter, by this very number.
        return lambda _: steps_per_execution(model)

    def _single(self, model: Any, kind: str, function: Callable[..., Any]) -> Callable[..., Any] | None:
        """A function that makes one step a call, out of the model's own for several.

        It must be traced for the iterator: for the batch at hand, with its size known, the step would round otherwise.
        And it must not be called when the data have ended: random numbers would be drawn before that shows.
        """
        if self.flavour.version >= 3:
            return feeding(function) if kind != "predict" else None
        make = getattr(self.flavour.trainer, f"make_{kind}_function").__wrapped__
        return made_for_one_step(model, kind, make)

    def _entered(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def entered(model: Any, *args: Any, **kwargs: Any) -> Any:
            self._look_for_overrides(type(model))
            self.changes += 1
            return original(model, *args, **kwargs)

        return entered

    @session.fence("looking at a model's class")
    def _look_for_overrides(self, cls: type) -> None:
        for base in cls.__mro__:
            if base is self.flavour.trainer:
                return
            for kind in _FUNCTIONS:
                own = vars(base).get(f"make_{kind}_function")
                if own is not None and not hasattr(own, "_smd_agent"):
                    self._wrap_maker(base, kind)

    @session.fence("looking at a compiled function")
    def _traced(self, concrete: Any) -> None:
        if self.current is None:
            return
        self.changes += 1
        name = concrete.name
        self.book.bind(concrete.graph, name.decode() if isinstance(name, bytes) else name)
        CompiledFunction(self, concrete)


def wrap(owner: Any, name: str, around: Callable[[Callable[..., Any]], Callable[..., Any]]) -> None:
    """Put a function of ours in the place of a class's method."""
    original = getattr(owner, name)
    wrapper: Any = functools.wraps(original)(around(original))
    # AutoGraph would else compile our wrapper, and with it what it calls.
    wrapper.autograph_info__ = None
    wrapper._smd_agent = True
    setattr(owner, name, wrapper)


def watch_keras(keras: ModuleType, make_hook: Callable[[], TensorflowHook | None] | None) -> None:
    """Watch an imported Keras, whose backend is TensorFlow, unless it is watched already; one line if it cannot be."""
    try:
        flavour = flavour_of(keras)
    except (LookupError, AttributeError) as error:
        name, version = keras.__name__, getattr(keras, "__version__", "")
        guard.say_once(name, f"{name} {version}: fit, evaluate and predict are not captured ({guard.describe(error)})")
        return
    if not hasattr(vars(flavour.trainer)["make_train_function"], "_smd_agent"):
        KerasWatch(flavour, make_hook).install()


def watch_imported(make_hook: Callable[[], TensorflowHook | None] | None) -> bool:
    """Watch every Keras that is imported, TensorFlow being its backend; returns whether there is one."""
    found = False
    for name in PACKAGES:
        module = sys.modules.get(name)
        if module is not None and is_imported(name) and backend_of(module) == "tensorflow":
            found = True
            watch_keras(module, make_hook)
    return found


def is_imported(name: str) -> bool:
    """Whether a module's import is over."""
    module = sys.modules.get(name)
    return module is not None and not getattr(getattr(module, "__spec__", None), "_initializing", False)


def backend_of(keras: ModuleType) -> str:
    """What an imported Keras computes with."""
    if str(getattr(keras, "__version__", "2")).startswith("2"):
        return "tensorflow"
    return str(keras.backend.backend())
