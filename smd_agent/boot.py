"""Start of the agent in an interpreter: waits for a framework to be imported, and does nothing else until then.

Where no library called smdebug is installed, an import of that name gets ours (`smd_agent.alias`).

All ways in (`smd_agent.pth`, `smd_agent.start`, `sitecustomize.py`) end in `start()`. It runs before the user's
program in every interpreter of the process tree, so it imports nothing that an interpreter has not loaded
anyway: no wrapt, no numpy, no logging, no typing. It starts no thread, opens no file, prints nothing to
stdout and installs no signal handler.
"""

from __future__ import annotations

import os
import sys

from smd_agent import guard
from smd_agent.config import env
from smd_agent.patches import FRAMEWORKS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType

MARK = "_smd_agent_started"
OLD_NAME = "smdebug"
LEFT = "_smd_agent_left"
# No frameworks: two are imported by the interpreter itself, while it looks for the folders that packages are in.
NO_FRAMEWORKS = ("sitecustomize", "usercustomize", OLD_NAME)
# They start the program by another interpreter, whose PYTHONPATH they make of their own sys.path.
STARTERS = ("sagemaker_training", "sagemaker_containers")


def start() -> None:
    """Arm this interpreter if the environment asks for it; a second call does nothing.

    No exception leaves this function, not even SystemExit: raised from a `.pth` file or a `sitecustomize`
    that one would end the interpreter before the user's program begins.
    """
    if MARK in vars(sys):
        return
    error = _tried() and _tried()
    if error is not None:
        guard.say(f"start failed ({guard.describe(error)}); nothing will be captured")


def _tried() -> BaseException | None:
    finders = [*sys.meta_path]
    try:
        has_source = _has_source()
        if has_source or env.get(env.USE):
            # On `sys`, because a second copy of this package (another folder on the path) must see it too.
            vars(sys)[MARK] = True
            if has_source and env.use_smdebug():
                _arm()
            else:
                sys.meta_path.insert(0, _OldNameFinder())
    except BaseException as error:
        sys.meta_path[:] = finders
        return error
    return None


def _has_source() -> bool:
    return bool(env.hook_json() or env.config_path() or os.path.isfile(env.DEFAULT_CONFIG_PATH))


def _arm() -> None:
    sys.meta_path.insert(0, _finder)
    package = os.path.dirname(os.path.abspath(__file__))
    if os.path.dirname(package) not in sys.path:
        from smd_agent import own_libraries

        own_libraries.find_beside(package)
    if _is_half_made(sys.modules.get("site")):
        _finder.catch_up_all()
    else:
        # Started late: what the program needs may have been imported.
        _finder.complete()
    if env.launch_pid() == os.getpid():
        import atexit

        atexit.register(_tell_if_no_framework, os.getpid())


@guard.fence("looking for a framework at the end")
def _tell_if_no_framework(pid: int) -> None:
    _finder.complete()
    if os.getpid() != pid or any(sys.modules.get(name) is not None for name in FRAMEWORKS):
        return
    names = ", ".join(sorted(FRAMEWORKS))
    folder = _out_dir()
    if folder and ("://" in folder or _holds_something(folder)):
        guard.say(
            f"this process captured nothing: it imported no supported framework ({names});"
            f" anything its child processes captured is in {folder}"
        )
    else:
        guard.say(f"nothing was captured: the program imported no supported framework ({names})")


@guard.fence("looking for frameworks of other packages")
def _read_outside() -> None:
    from smd_agent.patches import other_packages

    other_packages.known()


@guard.fence("looking into the run's folder")
def _holds_something(folder: str) -> bool:
    from smd_agent.stalled_disk import in_time

    return in_time(lambda: os.path.isdir(folder) and bool(os.listdir(folder)))


@guard.fence("looking for the run's folder")
def _out_dir() -> str | None:
    import json

    from smd_agent.regular_file import read_text
    from smd_agent.stalled_disk import in_time

    text = env.hook_json()
    if text is None:
        path = env.config_path() or env.DEFAULT_CONFIG_PATH
        text = in_time(lambda: read_text(path, encoding="utf-8-sig"))
    folder = json.loads(text).get("LocalPath")
    if not isinstance(folder, str):
        return None
    # Nothing that makes named tuples or data classes when it is imported: they are made by executing text, after which
    # the interpreter has forgotten that an interrupt is what it ends by.
    from smd_agent.config.placeholders import fill_in

    folder = fill_in(folder)
    return folder if "://" in folder else os.path.abspath(os.path.expanduser(folder))


def _is_half_made(module: ModuleType | None) -> bool:
    return bool(getattr(getattr(module, "__spec__", None), "_initializing", False))


@guard.fence("standing in for smdebug")
def _old_name(beside: Sequence[str]) -> ModuleSpec:
    from smd_agent.alias import root_spec

    return root_spec(beside)


class _OldNameFinder:
    """Finds smdebug where no library of that name is installed; whatever finds one comes first, wherever it stands."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return what our modules of that name are made by, None for all other names."""
        if fullname != OLD_NAME:
            return None
        spec = self._real_spec(fullname, path, target)
        if spec is not None and (spec.origin or spec.submodule_search_locations is None):
            return spec
        # A mere folder of that name, such as one with runs, is no library.
        return _old_name((spec and spec.submodule_search_locations) or ()) or spec

    def _real_spec(self, fullname: str, path: Sequence[str] | None, target: ModuleType | None) -> ModuleSpec | None:
        for finder in tuple(sys.meta_path):
            find_spec = None if finder is self else getattr(finder, "find_spec", None)
            spec: ModuleSpec | None = find_spec(fullname, path, target) if find_spec else None
            if spec is not None:
                return spec
        return None


class _FrameworkFinder(_OldNameFinder):
    """Sees a framework being looked for, and lets the other finders find it.

    A mere probe (`importlib.util.find_spec("torch")`) gets a spec as from the real finder, whose loader calls
    us only when the module is executed; until then not even wrapt is imported. The finder stays in
    `sys.meta_path` for good: another thread may be walking that list, and would skip a finder if ours were
    taken out under its feet.
    """

    def __init__(self) -> None:
        self.is_complete = False
        self.done: set[str] = set()
        self.half_made: set[str] = set()

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return the real spec with our loader around the real one; None for all but a framework."""
        if self.half_made:
            for name in tuple(self.half_made):
                self.catch_up(name)
        if fullname in STARTERS:
            _come_back()
        if not (self.is_complete or path or fullname in NO_FRAMEWORKS or fullname in sys.stdlib_module_names):
            self.complete()
        if fullname not in FRAMEWORKS or fullname in self.done:
            return super().find_spec(fullname, path, target)
        spec = self._real_spec(fullname, path, target)
        if spec is not None and hasattr(spec.loader, "exec_module"):
            spec.loader = _WatchedLoader(spec.loader, self)  # type: ignore[assignment]
        return spec

    def complete(self) -> None:
        """Add the frameworks of other packages, once."""
        if self.is_complete:
            return
        _read_outside()
        self.is_complete = True
        try:
            self.catch_up_all()
        except BaseException:
            # A start that fails is tried once more.
            self.is_complete = False
            raise

    def catch_up_all(self) -> None:
        """Patch the frameworks that have been imported."""
        for name in tuple(FRAMEWORKS):
            if name in sys.modules:
                self.catch_up(name)

    def catch_up(self, name: str) -> None:
        """Patch a framework that was imported before we started, once its own import has finished."""
        if _is_half_made(sys.modules.get(name)):
            self.half_made.add(name)
        else:
            self.half_made.discard(name)
            self.finished(name)

    def finished(self, name: str) -> None:
        """Hand a framework that has just been executed to wrapt, which calls the patch."""
        if name in self.done or name not in sys.modules:
            return
        self.done.add(name)
        _watch(name)


# One for the process: a start that is tried twice hands a framework over once.
_finder = _FrameworkFinder()


class _WatchedLoader:
    """The real loader in every respect, except that it reports when the module has been executed."""

    def __init__(self, real: object, finder: _FrameworkFinder) -> None:
        self._real = real
        self._finder = finder

    def __getattr__(self, name: str) -> object:
        if name == "_real":  # a copy under construction has none yet
            raise AttributeError(name)
        return getattr(self._real, name)

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        """Let the real loader make the module."""
        module: ModuleType | None = self._real.create_module(spec)  # type: ignore[attr-defined]
        return module

    def exec_module(self, module: ModuleType) -> None:
        """Put the real loader back where the module shows it, execute the module, report it."""
        name = module.__name__
        for owner, attribute in ((module, "__loader__"), (module.__spec__, "loader")):
            if getattr(owner, attribute, None) is self:
                setattr(owner, attribute, self._real)
        self._real.exec_module(module)  # type: ignore[attr-defined]
        self._finder.finished(name)


@guard.fence("coming back to sys.path")
def _come_back() -> None:
    """Put the folder that PYTHONPATH had named back, which `sitecustomize` has taken out of sys.path."""
    folder = vars(sys).pop(LEFT, None)
    if folder is not None:
        # Behind the program's own folder, and before all that may have a sitecustomize of its own.
        sys.path.insert(1, folder)


@guard.fence("watching the import of a framework", again=True)
def _watch(name: str) -> None:
    from smd_agent.patches import importer

    importer.watch(name)
