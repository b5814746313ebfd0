"""The user's program: the launcher resolves it, sees to it that the agent starts there, and is replaced by it.

A program is replaced, not called: what `exec` starts cannot be told from a plain run.
"""

from __future__ import annotations

import os
import site
import sys
from typing import NamedTuple

import smd_agent
from smd_agent.cli.errors import USAGE_ERROR, CommandError
from smd_agent.config import env
from smd_agent.config.suggestions import misspelt

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

HOOK_FILES = ("smd_agent.pth",) if sys.version_info < (3, 15) else ("smd_agent.pth", "smd_agent.start")
PYTHON_ENDINGS = (".py", ".pyc", ".pyz", ".zip")
CANNOT_EXECUTE = 126
NOT_FOUND = 127


def resolve(target: list[str], commands: Iterable[str] = ()) -> tuple[str, list[str]]:
    """Return the file to execute and its argv for a script, -m, -c or a command found on PATH.

    ``commands`` are the agent's own, one of which may have been meant where there is none.

    Raises:
        CommandError: there is no such command, or this interpreter cannot be started again.
    """
    word = target[0]
    if word in ("-m", "-c", "-") or word.endswith(PYTHON_ENDINGS) or _is_python_file(word):
        if not sys.executable:
            raise CommandError("this interpreter does not know its own path (sys.executable is empty)")
        return sys.executable, [sys.orig_argv[0], *interpreter_options(), *target]
    found = os.path.abspath(word) if os.sep in word and os.path.isfile(word) else _which(word)
    if found is None:
        raise CommandError(f"there is no script or command called {word}{_suggestion(word, commands)}", NOT_FOUND)
    return found, target


def interpreter_options(argv: list[str] | None = None, own: int | None = None) -> list[str]:
    """Return what stood between the interpreter and us: `-X dev`, or another tool such as `-m coverage run`.

    Args:
        argv: the interpreter's whole command line, `sys.orig_argv` by default.
        own: number of words at its end that are ours, taken from `sys.argv` by default.
    """
    words = list(sys.orig_argv if argv is None else argv)
    tail = len(sys.argv) - 1 if own is None else own
    head = words[1 : len(words) - tail]
    last = head.pop() if head else ""
    if last == "smd_agent" and head and head[-1].endswith("m"):
        last = head.pop() + last
    # The option may be glued to others and to its value: `-um smd_agent`, `-msmd_agent`.
    glued = last[: -len("msmd_agent")] if last.endswith("msmd_agent") else "-"
    return head if glued == "-" else [*head, glued]


def _is_python_file(word: str) -> bool:
    if not os.path.isfile(word):
        return os.path.isfile(os.path.join(word, "__main__.py"))
    if not os.access(word, os.X_OK):
        return True
    with open(word, "rb") as file:
        start = file.readline(200)
    return not start.startswith(b"\x7fELF") and not (start.startswith(b"#!") and b"python" not in start)


def _which(word: str) -> str | None:
    if os.sep in word:
        return None
    import shutil

    return shutil.which(word)


def _suggestion(word: str, commands: Iterable[str]) -> str:
    if os.path.isfile(word + ".py"):
        return f"; did you mean {word}.py?"
    if os.sep in word:
        return "; did you mean a file in another folder?"
    meant = misspelt(word, sorted(commands))
    return f"; did you mean {meant}?" if meant else ""


class WayIn(NamedTuple):
    """The way by which the agent gets into a program.

    folder: is to be put first on PYTHONPATH; empty where the agent starts without.
    through: the file that starts it.
    """

    folder: str
    through: str


def open_for(program: str) -> None:
    """Make sure the program's interpreter will start the agent: by PYTHONPATH, unless our site hook is there.

    Raises:
        CommandError: the interpreter was started with options that leave no way for the agent to start.
    """
    folder = way_into(program).folder
    if folder:
        prepend_pythonpath(folder)


def way_into(program: str) -> WayIn:
    """Return how the agent gets into a program that this process is replaced by.

    Raises:
        CommandError: the interpreter was started with options that leave no way for the agent to start.
    """
    flags = sys.flags
    same = program == sys.executable
    if same and flags.no_site:
        raise CommandError("the agent cannot start under python -S, which skips all start-up files", USAGE_ERROR)
    if same and flags.ignore_environment:
        hooks = site_hooks()
        if not hooks:
            raise CommandError(
                "the agent cannot start under python -I or -E unless it is installed (pip install smd-agent)",
                USAGE_ERROR,
            )
        return WayIn("", hooks[0])
    ours = same or os.path.dirname(program) == os.path.dirname(sys.executable)
    root = os.path.dirname(os.path.dirname(os.path.abspath(smd_agent.__file__)))
    if ours and _has_hook(root) and os.path.realpath(root) in map(os.path.realpath, _site_folders()):
        return WayIn("", _hook_in(root))
    folder = door()
    return WayIn("" if ours and _starts_from(folder) else folder, os.path.join(folder, "sitecustomize.py"))


def door() -> str:
    """Return the folder of our sitecustomize.py: inside of the package once that is installed, else beside it."""
    package = os.path.dirname(os.path.abspath(smd_agent.__file__))
    inner = os.path.join(package, "_site")
    return inner if os.path.isfile(os.path.join(inner, "sitecustomize.py")) else os.path.dirname(package)


def _starts_from(folder: str) -> bool:
    """Tell whether this interpreter has found our sitecustomize by itself, as after an editable installation."""
    found = getattr(sys.modules.get("sitecustomize"), "__file__", None)
    return found == os.path.join(folder, "sitecustomize.py")


def _site_folders() -> list[str]:
    folders = site.getsitepackages()
    if site.ENABLE_USER_SITE:
        folders.append(site.getusersitepackages())
    return folders


def site_hooks() -> list[str]:
    """The files that start the agent in each interpreter that begins as this one has."""
    return [_hook_in(folder) for folder in _site_folders() if _has_hook(folder)]


def _has_hook(folder: str) -> bool:
    return any(os.path.isfile(os.path.join(folder, name)) for name in HOOK_FILES)


def _hook_in(folder: str) -> str:
    found = (os.path.join(folder, name) for name in reversed(HOOK_FILES))
    return next(path for path in found if os.path.isfile(path))


def prepend_pythonpath(folder: str) -> None:
    """Put the folder of a sitecustomize.py first on the PYTHONPATH of this process and its children.

    Raises:
        CommandError: there is no sitecustomize.py in it.
    """
    if not os.path.isfile(os.path.join(folder, "sitecustomize.py")):
        raise CommandError(f"this copy of the agent is incomplete: no sitecustomize.py in {folder}")
    old = env.get("PYTHONPATH")
    if old is None or old.split(os.pathsep)[0] != folder:
        # An empty part stands for the current folder, so an old value is kept to the letter.
        env.put("PYTHONPATH", folder + os.pathsep + old if old else folder)


def become(program: str, argv: list[str]) -> int:
    """Replace this process; on Windows, where that loses the process tree, return the exit code of a child.

    Raises:
        CommandError: the operating system cannot execute the program.
    """
    if sys.stdout is not None:
        # It is closed otherwise.
        sys.stdout.flush()
    if os.name == "nt":
        import subprocess

        return subprocess.call([program, *argv[1:]])
    if program != sys.executable:
        _reset_signals()
    try:
        os.execv(program, argv)
    except OSError as error:
        raise CommandError(f"cannot execute {program}: {error.strerror}", CANNOT_EXECUTE) from error


def _reset_signals() -> None:
    """Undo what an interpreter does to itself; another program must not inherit an ignored SIGPIPE."""
    import signal

    for name in ("SIGPIPE", "SIGXFSZ"):
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), signal.SIG_DFL)
