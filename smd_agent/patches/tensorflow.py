"""Where a TensorFlow run is noticed: tapes, functions that hold one, optimizers, monitored sessions, estimators."""

from __future__ import annotations

from types import ModuleType
from typing import TYPE_CHECKING

from smd_agent import guard, session
from smd_agent.framework.hook_source import HookSource
from smd_agent.patches.hook_of_run import make_hook, wanted_settings, warn_at_exit_if_nothing_captured
from smd_agent.patches.importer import when_imported

if TYPE_CHECKING:
    from smd_agent.config.settings import HookSettings
    from smd_agent.tensorflow.hook import TensorflowHook
    from smd_agent.tensorflow.tape import TapeWatch

OLDEST = "2.13"


# Where the optimizers that scale losses live, by the release of Keras.
_SCALING = {
    "keras.src.optimizers.base_optimizer": ("BaseOptimizer",),
    "keras.src.optimizers.loss_scale_optimizer": ("LossScaleOptimizer",),
    "keras.src.mixed_precision.loss_scale_optimizer": ("LossScaleOptimizer", "LossScaleOptimizerV3"),
    "tf_keras.src.mixed_precision.loss_scale_optimizer": ("LossScaleOptimizer", "LossScaleOptimizerV3"),
}


def apply(tensorflow: ModuleType) -> None:
    """Have what the program trains saved."""
    settings = wanted_settings()
    if settings is None:
        return
    from smd_agent.tensorflow import graph_notes, session_hook

    finder = Finder(settings)
    _finders.append(finder)
    session_hook.watch_sessions(finder.hook)
    when_imported(graph_notes.ESTIMATOR, lambda m: graph_notes.note_modes(m.Estimator))
    _watch_tapes(tensorflow, finder)
    watch_keras()
    warn_at_exit_if_nothing_captured(
        "a GradientTape, model.fit or a monitored session that trains", settings, graph_notes.saw_any_optimizer
    )


def _watch_tapes(tensorflow: ModuleType, finder: Finder) -> None:
    try:
        from smd_agent.tensorflow.tape import the_watch
    except ImportError as error:
        # It needs parts of TensorFlow that are not public.
        guard.say(f"tensorflow {tensorflow.__version__}: GradientTape is not captured ({guard.describe(error)})")
        return
    watch = the_watch(finder.hook)
    watch.install()
    for module, classes in _SCALING.items():
        _watch_scaling(module, classes, watch)


def watch_keras(keras: ModuleType | None = None) -> None:
    """Watch a Keras on TensorFlow that has just been imported, or all that are by now; nothing before TensorFlow is.

    Either of them may import the other: what is still being imported is left to the second call.
    """
    for finder in _finders:
        try:
            from smd_agent.tensorflow import keras_watch
        except ImportError as error:
            guard.say_once("no keras", f"fit, evaluate and predict are not captured ({guard.describe(error)})")
            return
        from smd_agent.tensorflow.hook import TensorflowHook
        from smd_agent.tensorflow.keras_hook import KerasHook

        KerasHook.watch_keras = None
        source = HookSource(TensorflowHook, finder.hook)
        if keras is None:
            keras_watch.watch_imported(source)
        else:
            keras_watch.watch_keras(keras, source)


def _watch_scaling(module: str, classes: tuple[str, ...], watch: TapeWatch) -> None:
    def watch_all(found: ModuleType) -> None:
        from smd_agent.tensorflow.scaling import watch_scaling

        for name in classes:
            if hasattr(found, name):
                watch_scaling(getattr(found, name), watch.scaled)

    when_imported(module, watch_all)


class Finder:
    """Gives every part of the patch the one hook of the process, made when the first of them needs it."""

    def __init__(self, settings: HookSettings) -> None:
        self._settings = settings
        self._tried = False

    def hook(self) -> TensorflowHook | None:
        """The script's hook if it has made one, else ours; None if there cannot be one."""
        from smd_agent.tensorflow.hook import TensorflowHook
        from smd_agent.tensorflow.keras_hook import KerasHook

        existing = session.current()
        if isinstance(existing, TensorflowHook):
            return existing
        if self._tried:
            return None
        self._tried = True
        hook = make_hook(KerasHook, self._settings)
        if hook is not None:
            hook.follow_calls()
        return hook


_finders: list[Finder] = []
