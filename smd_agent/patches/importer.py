"""Calls us back after a module has been imported; a failure of ours never fails the import.

Of wrapt only `register_post_import_hook` is used: it behaves alike from wrapt 1.11 to 2.x.
"""

from __future__ import annotations

import importlib
import sys
import zlib
from typing import TYPE_CHECKING

from smd_agent import guard
from smd_agent.config import env
from smd_agent.own_libraries import own_library
from smd_agent.patches import FRAMEWORKS

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType

BAD_CONFIG_EXIT = 2


def watch(framework: str) -> None:
    """Have the patch of a framework applied to it, at once when it is imported already.

    The patch module itself is imported only then. Without wrapt one line says that nothing will be captured.
    """

    def patch(module: ModuleType) -> None:
        patching = importlib.import_module(FRAMEWORKS[framework])
        if not patching.__name__.startswith("smd_agent."):
            from smd_agent.framework.error_boundary import take_for_ours

            take_for_ours(patching, framework)
        patching.apply(module)

    when_imported(framework, patch)


def when_imported(name: str, action: Callable[[ModuleType], object]) -> None:
    """Call `action(module)` after the module has been imported, at once when it is imported already.

    The action gets the module that `sys.modules` holds, not always the one that was executed: lazy packages
    replace themselves. Do not register for a module whose import is still under way: wrapt would call back at
    once, with the module half made.
    """
    register_post_import_hook = _registrar()
    if register_post_import_hook is None:
        return

    def deliver(module: ModuleType) -> None:
        def act() -> None:
            action(sys.modules.get(name, module))

        failure = guard.attempt(act)
        if failure is not None and not guard.strict:
            # It undoes what it has begun.
            failure = guard.attempt(act)
        if failure is None:
            return
        line = f"preparing {name} failed ({guard.describe(failure)}): what the program trains with it is not saved"
        guard.say_once(("preparing", name), line)
        if guard.strict:
            raise failure

    register_post_import_hook(deliver, name)


def _registrar() -> Callable[..., object] | None:
    """The function that wrapt registers hooks with; None, after one line, where there is no wrapt that has it."""
    try:
        library = own_library("wrapt")
    except ImportError as error:
        fault = guard.describe(error)
    else:
        found: Callable[..., object] | None = getattr(library, "register_post_import_hook", None)
        if found is not None:
            return found
        fault = "it has no register_post_import_hook"
    guard.say_once("wrapt", f"nothing will be captured: this environment has no usable wrapt ({fault})")
    return None


def report_bad_config(error: BaseException) -> None:
    """Say once for the whole process tree what is wrong with the configuration.

    Child processes inherit a mark through the environment; a child with another complaint still makes it.
    Under SMD_AGENT_STRICT it is said in any case and the program ends.

    Raises:
        SystemExit: with code 2, only under SMD_AGENT_STRICT.
    """
    sentence = str(error)
    mark = str(zlib.crc32(sentence.encode("utf-8", "replace")))
    if env.strict():
        guard.say(sentence)
        raise SystemExit(BAD_CONFIG_EXIT)
    if env.get(env.REPORTED) != mark:
        env.put(env.REPORTED, mark)
        guard.say(f"{sentence}; the program runs without capture")
