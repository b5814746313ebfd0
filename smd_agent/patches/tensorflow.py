"""Patches of TensorFlow: tapes, functions that hold one, optimizers, monitored sessions, estimators."""

from __future__ import annotations

from types import ModuleType
from typing import TYPE_CHECKING

from smd_agent import guard
from smd_agent.config import env
from smd_agent.framework.hook_source import HookSource
from smd_agent.framework.whole_or_off import whole_or_off
from smd_agent.patches.hook_from_settings import make_hook, wanted_settings
from smd_agent.patches.importer import when_imported
from smd_agent.patches.nothing_captured import warn_at_exit_if_nothing_captured

if TYPE_CHECKING:
    from smd_agent.tensorflow.hook import TensorflowHook
    from smd_agent.tensorflow.tape.tape_loops import TapeWatch

_whole_or_off = whole_or_off("tensorflow")

# Where the optimizers that scale losses live, by the release of Keras.
_SCALING = {
    "keras.src.optimizers.base_optimizer": ("BaseOptimizer",),
    "keras.src.optimizers.loss_scale_optimizer": ("LossScaleOptimizer",),
    "keras.src.mixed_precision.loss_scale_optimizer": ("LossScaleOptimizer", "LossScaleOptimizerV3"),
    "tf_keras.src.mixed_precision.loss_scale_optimizer": ("LossScaleOptimizer", "LossScaleOptimizerV3"),
}


@_whole_or_off
def apply(tensorflow: ModuleType) -> None:
    """Have what the program trains saved."""
    settings = wanted_settings()
    if settings is None:
        return
    from smd_agent.tensorflow.hook import TensorflowHook
    from smd_agent.tensorflow.keras_fit.hook import KerasHook
    from smd_agent.tensorflow.sessions import graph_notes
    from smd_agent.tensorflow.sessions import hook as session_hook

    # One for all parts of the patch: the first of them that needs the hook has it made.
    source: HookSource[TensorflowHook] = HookSource(TensorflowHook, lambda: make_hook(KerasHook, settings))
    _sources[:] = [source]
    session_hook.watch_sessions(source)
    when_imported(graph_notes.ESTIMATOR, _whole_or_off(lambda m: graph_notes.note_modes(m.Estimator)))
    watch = _watch_tapes(tensorflow, source)
    order = env.get(env.REPLAY)
    if order:
        _repeat(tensorflow, order)
    watch_keras()
    warn_at_exit_if_nothing_captured(
        "tensorflow",
        "a GradientTape, model.fit or a monitored session that trains",
        settings,
        graph_notes.saw_any_optimizer,
        reason=lambda: None if watch is None else watch.reason(),
    )


def _repeat(tensorflow: ModuleType, order: str) -> None:
    # In no other training.
    from smd_agent.formats.replays import order_of
    from smd_agent.tensorflow.hook import TensorflowHook

    if order_of(order).bundle:
        # It is for PyTorch.
        return
    try:
        from smd_agent.tensorflow.repeated_steps import RepeatedSteps
    except ImportError as error:
        # It needs parts of TensorFlow that are not public.
        guard.say(f"tensorflow {tensorflow.__version__}: operations cannot be watched ({guard.describe(error)})")
        return
    TensorflowHook.repeated = RepeatedSteps(order)
    TensorflowHook.repeated.install()


def _watch_tapes(tensorflow: ModuleType, source: HookSource[TensorflowHook]) -> TapeWatch | None:
    try:
        from smd_agent.tensorflow.tape.tape_loops import the_watch
    except ImportError as error:
        # It needs parts of TensorFlow that are not public.
        guard.say(f"tensorflow {tensorflow.__version__}: GradientTape is not captured ({guard.describe(error)})")
        return None
    watch = the_watch(source)
    watch.install()
    for module, classes in _SCALING.items():
        _watch_scaling(module, classes, watch)
    return watch


@_whole_or_off
def watch_keras(keras: ModuleType | None = None) -> None:
    """Watch a Keras on TensorFlow that has just been imported, or all that are by now; nothing before TensorFlow is.

    Either of them may import the other: what is still being imported is left to the second call.
    """
    for source in _sources:
        try:
            from smd_agent.tensorflow.keras_fit import packages
        except ImportError as error:
            guard.say_once("no keras", f"fit, evaluate and predict are not captured ({guard.describe(error)})")
            return
        from smd_agent.tensorflow.keras_fit.hook import KerasHook

        KerasHook.watch_keras = None
        if keras is None:
            packages.watch_imported(source)
        else:
            packages.watch_keras(keras, source)


def _watch_scaling(module: str, classes: tuple[str, ...], watch: TapeWatch) -> None:
    @_whole_or_off
    def watch_all(found: ModuleType) -> None:
        from smd_agent.tensorflow.loss_scaling import watch_scaling

        for name in classes:
            if hasattr(found, name):
                watch_scaling(getattr(found, name), watch.scaled)

    when_imported(module, watch_all)


_sources: list[HookSource[TensorflowHook]] = []
