"""Keras 3 on PyTorch, as the watcher of Keras sees it: steps that run eagerly or under ``torch.compile``.

On a step that is saved, layers, the loss and the optimizer are watched while it runs, and only then.
"""

from __future__ import annotations

from typing import Protocol

from smd_agent import guard
from smd_agent.framework.hook_source import HookSource
from smd_agent.framework.keras.backend import Backend, RunningStep
from smd_agent.framework.keras.fit_watch import KerasWatch
from smd_agent.framework.keras.names import Names, definer
from smd_agent.framework.keras.types import KerasModule
from smd_agent.pytorch.keras_fit.hook import KerasHook
from smd_agent.pytorch.keras_fit.step_capture import TorchCapture


class Pausable(Protocol):
    """Looks for models that the program trains by itself, unless it rests."""

    paused: bool


class TorchBackend(Backend[KerasHook, TorchCapture]):
    """A Keras whose backend is PyTorch.

    Args:
        keras: imported.
        discovery: of other models of the program; it rests while Keras runs one of its own.

    Raises:
        LookupError: this Keras is not built as those known here.
    """

    def __init__(self, keras: KerasModule, discovery: Pausable) -> None:
        trainer = definer(keras.Model, "make_train_function")
        super().__init__(trainer, keras.callbacks.History, Names(lambda variable: str(variable.path)))
        self._keras = keras
        self.callbacks = keras.callbacks.CallbackList

        def pause_others(paused: bool) -> None:
            discovery.paused = paused

        self.pause_others = pause_others

    def capture(self, hook: KerasHook, step: RunningStep[TorchCapture]) -> TorchCapture:
        """The capture of a step that has been opened."""
        return TorchCapture(hook, step.model, step.mode, step.variables, self._keras, self.names)


def watch_keras(keras: KerasModule, source: HookSource[KerasHook], discovery: Pausable) -> None:
    """Watch an imported Keras whose backend is PyTorch; one line if it cannot be."""
    try:
        backend = TorchBackend(keras, discovery)
    except (LookupError, AttributeError) as error:
        version = getattr(keras, "__version__", "")
        guard.say(f"keras {version}: fit, evaluate and predict are not captured ({guard.describe(error)})")
        return
    KerasWatch(backend, source).install()
