"""Patches by which a PyTorch run is noticed.

``Optimizer.add_param_group`` is called for every parameter that is trained, and stays watched. The rest is looked at
only until the model is found (``smd_agent.pytorch.discovery``). ``torch.compile`` and ``Module.compile`` keep
references to what they find on a module, so they must not meet our wrappers.
"""

from __future__ import annotations

import functools
from types import ModuleType
from typing import TYPE_CHECKING, Any

from smd_agent import guard
from smd_agent.framework.hook_source import HookSource
from smd_agent.framework.replaced_functions import Function, Make, replace
from smd_agent.framework.whole_or_off import whole_or_off
from smd_agent.patches.declared import DECLARED
from smd_agent.patches.hook_from_settings import make_hook, wanted_settings
from smd_agent.patches.nothing_captured import warn_at_exit_if_nothing_captured

if TYPE_CHECKING:
    from smd_agent.config.settings import HookSettings
    from smd_agent.pytorch.discovery.model_finder import ModuleFinder

_applied: list[tuple[HookSettings, ModuleFinder]] = []


@whole_or_off("pytorch")
def apply(torch: ModuleType) -> None:
    """Have the models that the program trains found and saved."""
    settings = wanted_settings()
    if settings is None:
        return
    if not hasattr(torch.nn.Module, "_compiled_call_impl"):
        oldest = DECLARED["torch"].supported.oldest
        guard.say(f"torch {torch.__version__} is not supported (oldest is {oldest}): nothing will be captured")
        return
    from smd_agent.pytorch.device.graph_captures import graph_captures
    from smd_agent.pytorch.discovery.model_finder import ModuleFinder
    from smd_agent.pytorch.hook import Hook
    from smd_agent.pytorch.series.roots import passes

    graph_captures.watch()
    if settings.series_megabytes:
        # First: what stands over it for a while can be taken away.
        passes.watch()
    discovery = ModuleFinder(HookSource(Hook, lambda: make_hook(Hook, settings, follow_calls=True)).hook)
    discovery.install(bool(settings.series_megabytes or settings.tap or settings.live_rules))
    _applied[:] = [(settings, discovery)]
    _step_aside_for_compile(torch, discovery)
    _step_aside_for_script(torch)
    _look_at_loads(torch)
    _look_at_schedules(torch)
    sign = "a torch.nn.Module called in train mode"
    warn_at_exit_if_nothing_captured("pytorch", sign, settings, discovery.should_have_found, reason=discovery.reason)


@whole_or_off("pytorch")
def watch_keras(keras: ModuleType) -> None:
    """Watch a Keras on PyTorch that has just been imported."""
    for settings, discovery in _applied:
        from smd_agent.pytorch.keras_fit import backend as keras_backend
        from smd_agent.pytorch.keras_fit.hook import KerasHook

        source = HookSource(KerasHook, functools.partial(make_hook, KerasHook, settings))
        keras_backend.watch_keras(keras, source, discovery)


def _step_aside_for_compile(torch: ModuleType, discovery: ModuleFinder) -> None:
    from smd_agent.pytorch.capture.persistent_hooks import watch
    from smd_agent.pytorch.model.kept_out_of_modules import may_compile
    from smd_agent.pytorch.model.step_counter import set_aside

    def around_function(original: Function) -> Function:
        def compile(*args: Any, **kwargs: Any) -> Any:
            watch.stay()
            may_compile()
            with discovery.suspended():
                result = original(*args, **kwargs)
            if isinstance(result, torch.nn.Module):
                discovery.wrapped(result)
            return result

        return compile

    def around_method(original: Function) -> Function:
        def compile_in_place(module: Any, *args: Any, **kwargs: Any) -> Any:
            with discovery.suspended(), set_aside(module):
                result = original(module, *args, **kwargs)
            return result  # noqa: RET504 - see error_boundary

        return compile_in_place

    why = "what is compiled must not hold functions of the agent"
    replace(torch, "compile", around_function, why=why)
    replace(torch.nn.Module, "compile", around_method, why=why)


def _step_aside_for_script(torch: ModuleType) -> None:
    def around(original: Function) -> Function:
        from smd_agent.pytorch.model.step_counter import set_aside
        from smd_agent.pytorch.plain_access import parts

        def create_from_what_the_program_made(module: Any, *args: Any, **kwargs: Any) -> Any:
            with set_aside(*parts(module)):
                result = original(module, *args, **kwargs)
            return result  # noqa: RET504 - see error_boundary

        return create_from_what_the_program_made

    recursive = getattr(torch.jit, "_recursive", None)
    if hasattr(recursive, "create_script_module"):
        replace(recursive, "create_script_module", around, why="TorchScript wants a type of all that a module has")


def _look_at_loads(torch: ModuleType) -> None:
    from smd_agent.pytorch.model.kept_states import kept_states
    from smd_agent.pytorch.model.partial_loads import partial_loads

    def telling(told: Function) -> Make:
        def around(original: Function) -> Function:
            def called(module: Any, *args: Any, **kwargs: Any) -> Any:
                result = original(module, *args, **kwargs)
                told(module, args, kwargs, result)
                return result

            return called

        return around

    why = "it is told of a state that is loaded, and has changed since it was taken"
    replace(torch.nn.Module, "state_dict", telling(kept_states.taken), why=why)
    why = "a load that matches no name, and raises nothing, is told of"
    replace(torch.nn.Module, "load_state_dict", telling(partial_loads.after_load), why=why)


def _look_at_schedules(torch: ModuleType) -> None:
    from smd_agent.pytorch.model.schedules import schedules

    def around(original: Function) -> Function:
        def __init__(scheduler: Any, *args: Any, **kwargs: Any) -> None:
            original(scheduler, *args, **kwargs)
            schedules.add(scheduler)

        return __init__

    schedulers = torch.optim.lr_scheduler
    # The latter calls nothing of the former.
    for kind in (schedulers.LRScheduler, schedulers.SequentialLR):
        replace(kind, "__init__", around, why="it is told how far the schedule of an optimizer has come")
    schedules.are_told = True
