"""Where a PyTorch run is noticed.

``Optimizer.add_param_group`` is called for every parameter that is trained, and stays watched; the rest is looked at
only until the model is found (``smd_agent.pytorch.discovery``). ``torch.compile`` and ``Module.compile`` keep
references to what they find on a module, and ``DataParallel`` copies it, so they must not meet our wrappers.
"""

from __future__ import annotations

import functools
from contextlib import ExitStack
from types import ModuleType
from typing import TYPE_CHECKING, Any

from smd_agent import guard
from smd_agent.patches.hook_of_run import make_hook, tell_if_nothing, wanted_settings

if TYPE_CHECKING:
    from smd_agent.config.settings import HookSettings
    from smd_agent.pytorch.discovery import Discovery
    from smd_agent.pytorch.hook import Hook

OLDEST = "2.1"


def apply(torch: ModuleType) -> None:
    """Have the models that the program trains found and saved."""
    settings = wanted_settings()
    if settings is None:
        return
    if not hasattr(torch.nn.Module, "_compiled_call_impl"):
        guard.say(f"torch {torch.__version__} is not supported (oldest is {OLDEST}): nothing will be captured")
        return
    from smd_agent.pytorch.discovery import Discovery

    discovery = Discovery(lambda: _make_hook(settings))
    discovery.install()
    _step_aside_for_compile(torch, discovery)
    _keep_out_of_replicas(torch)
    _step_aside_for_script(torch)
    tell_if_nothing("a torch.nn.Module called in train mode", settings, discovery.should_have_found)


def _make_hook(settings: HookSettings) -> Hook | None:
    from smd_agent.pytorch.hook import Hook

    hook = make_hook(Hook, settings)
    if hook is not None:
        hook.follow_training_flag()
    return hook


def _step_aside_for_compile(torch: ModuleType, discovery: Discovery) -> None:
    from smd_agent.pytorch.staying import watch

    compile_function = torch.compile
    compile_method = torch.nn.Module.compile

    @functools.wraps(compile_function)
    def compile(*args: Any, **kwargs: Any) -> Any:
        watch.stay()
        with discovery.suspended():
            compiled = compile_function(*args, **kwargs)
        if isinstance(compiled, torch.nn.Module):
            discovery.wrapped(compiled)
        return compiled

    @functools.wraps(compile_method)
    def compile_in_place(module: Any, *args: Any, **kwargs: Any) -> Any:
        from smd_agent.pytorch.root import set_aside

        with discovery.suspended(), set_aside(module):
            return compile_method(module, *args, **kwargs)

    torch.compile = compile  # type: ignore[attr-defined]
    torch.nn.Module.compile = compile_in_place


def _keep_out_of_replicas(torch: ModuleType) -> None:
    replicate = getattr(torch.nn.Module, "_replicate_for_data_parallel", None)
    if replicate is None:
        return

    @functools.wraps(replicate)
    def without_counter(module: Any) -> Any:
        from smd_agent.pytorch.root import drop_counter

        replica = replicate(module)
        drop_counter(replica)
        return replica

    torch.nn.Module._replicate_for_data_parallel = without_counter


def _step_aside_for_script(torch: ModuleType) -> None:
    # TorchScript wants a type of everything that a module has.
    recursive = getattr(torch.jit, "_recursive", None)
    create = getattr(recursive, "create_script_module", None)
    if create is None:
        return

    @functools.wraps(create)
    def create_from_what_the_program_made(module: Any, *args: Any, **kwargs: Any) -> Any:
        from smd_agent.pytorch.root import set_aside

        with ExitStack() as stack:
            for part in module.modules():
                stack.enter_context(set_aside(part))
            return create(module, *args, **kwargs)

    recursive.create_script_module = create_from_what_the_program_made  # type: ignore[union-attr]
