"""Starts the agent in interpreters that have this folder on PYTHONPATH, then runs the next `sitecustomize`.

Any Python may meet this file, 2.7 too, so its syntax is old: types stand in comments. It imports nothing of ours before
the environment asks for it.
"""

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from importlib.machinery import ModuleSpec  # noqa: F401
    from typing import List, Optional  # noqa: F401, UP035

HERE = os.path.dirname(os.path.abspath(__file__))
CHAINED = "_smd_agent_chained"
LEFT = "_smd_agent_left"
PACKAGE = "smd_agent"
OLDEST = (3, 10)


def wanted():
    # type: () -> bool
    """Tell whether the environment asks for capturing, or for none of it, which scripts with a hook have to survive."""
    return bool(
        os.environ.get("SMD_AGENT_HOOK")
        or os.environ.get("SMDEBUG_CONFIG_FILE_PATH")
        or (sys.version_info >= OLDEST and os.environ.get("USE_SMDEBUG"))
        or os.path.isfile("/opt/ml/input/config/debughookconfig.json")
    )


def later_folders():
    # type: () -> List[str]
    """Return the part of sys.path behind this folder; those before it have had their turn."""
    if HERE in sys.path:
        return sys.path[sys.path.index(HERE) + 1 :]
    return list(sys.path)


def leave_path():
    # type: () -> None
    """Take our entry out of sys.path if PYTHONPATH put it there; children inherit it all the same."""
    if sys.flags.ignore_environment or HERE not in sys.path:
        return
    entries = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    if any(entry and os.path.abspath(entry) == HERE for entry in entries):
        sys.path.remove(HERE)
        vars(sys)[LEFT] = HERE


def find(name, folders):
    # type: (str, List[str]) -> Optional[ModuleSpec]
    """Look for a module in the given folders only."""
    from _frozen_importlib_external import PathFinder

    return PathFinder.find_spec(name, folders)


def load(spec):
    # type: (ModuleSpec) -> None
    """Import a module that was found, under its name."""
    from _frozen_importlib import module_from_spec

    module = module_from_spec(spec)
    sys.modules[spec.name] = module
    try:
        spec.loader.exec_module(module)  # type: ignore[union-attr]
    except BaseException:
        sys.modules.pop(spec.name, None)
        raise


def load_as_then(folders):
    # type: (List[str]) -> None
    """Run the next `sitecustomize` by what an interpreter had before there were specs."""
    import imp

    try:
        found = imp.find_module("sitecustomize", folders)
    except ImportError:
        return
    imp.load_module("sitecustomize", *found)  # type: ignore[arg-type]


def start_agent():
    # type: () -> None
    """Start the agent of the package beside this file; no failure leaves this function."""
    try:
        if sys.version_info < OLDEST:
            complain("Python %d.%d is too old, 3.10 is needed" % sys.version_info[:2])  # noqa: UP031
            return
        if PACKAGE not in sys.modules:
            # In the source tree the package lies beside this file, installed this file lies inside it.
            inside = os.path.basename(HERE) == "_site"
            spec = find(PACKAGE, [os.path.dirname(os.path.dirname(HERE)) if inside else HERE])
            if spec is not None and spec.loader is not None:
                load(spec)
        from smd_agent.boot import start

        start()
    except BaseException as error:
        complain("%s: %s" % (type(error).__name__, error))  # noqa: UP031


def start_observer(order):
    # type: (str) -> None
    """Have `verify` see what the program trains, with the agent or without it; no failure leaves this function."""
    from _frozen_importlib import module_from_spec
    from _frozen_importlib_external import spec_from_file_location

    try:
        inside = os.path.basename(HERE) == "_site"
        package = os.path.dirname(HERE) if inside else os.path.join(HERE, PACKAGE)
        # Under no name of the package's: what looks for the agent must not find it where there is none.
        spec = spec_from_file_location("smd_observer", os.path.join(package, "framework", "observer.py"))
        module = module_from_spec(spec)  # type: ignore[arg-type]
        spec.loader.exec_module(module)  # type: ignore[union-attr]
        module.start(order, os.environ.get("RANK"))
    except BaseException as error:
        complain("%s: %s" % (type(error).__name__, error), "nothing will be verified")  # noqa: UP031


def complain(reason, outcome="nothing will be captured"):
    # type: (str, str) -> None
    """Write one line to stderr, if there is one."""
    try:
        if sys.stderr is not None:
            sys.stderr.write("smd_agent: start failed (" + reason + "); " + outcome + "\n")
    except Exception:
        return


def main():
    # type: () -> None
    """Start the agent, then do what an interpreter does without us: run the next `sitecustomize`."""
    chained = vars(sys).setdefault(CHAINED, set())
    folders = [folder for folder in later_folders() if folder not in chained]
    order = os.environ.get("SMD_AGENT_OBSERVER")
    if order and sys.version_info >= OLDEST:
        start_observer(order)
    if wanted():
        leave_path()
        start_agent()
    elif os.path.basename(HERE) == "_site":
        # This folder is of no other use; the source tree may be on the path to be imported from.
        leave_path()
    if sys.version_info < (3, 5):  # noqa: UP036
        load_as_then(folders)
        return
    spec = find("sitecustomize", folders)
    if spec is not None and spec.loader is not None:
        # Another injector's chain may lead back to us; it must then go on behind that injector, not to it.
        chained.add(os.path.dirname(spec.origin or ""))
        load(spec)


main()
