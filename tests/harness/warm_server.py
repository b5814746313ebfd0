"""A process that has imported a framework and runs each script in a fork of itself, as an interpreter of its own would.

usage: warm_server.py [module ...]

It reads a line of JSON for each script from stdin, and answers on stdout with the number of the fork and, when that has
ended, its wait status. Nothing of a framework is run before a fork, so there is no thread to lose in it.

The fork starts the agent by the line of the installed ``smd_agent.pth``, as ``site`` does in an interpreter; the agent
then finds frameworks that are imported already.
"""

from __future__ import annotations

import atexit
import ctypes
import gc
import importlib
import json
import os
import sys
import threading
import types
from typing import Any


def serve(modules: list[str]) -> dict[str, Any]:
    """Import modules, then fork for each line of stdin; return in the forks, with what they are to run."""
    commands, replies = os.fdopen(os.dup(0)), os.fdopen(os.dup(1), "w")
    # Standard streams belong to the modules and scripts.
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(2, 1)
    for name in modules:
        importlib.import_module(name)
    gc.collect()
    gc.freeze()
    for line in commands:
        assert threading.active_count() == 1, threading.enumerate()
        pid = os.fork()
        if not pid:
            os.close(commands.fileno())
            os.close(replies.fileno())
            job: dict[str, Any] = json.loads(line)
            return job
        print(pid, file=replies, flush=True)
        print(os.waitpid(pid, 0)[1], file=replies, flush=True)
    raise SystemExit


def prepare(job: dict[str, Any]) -> None:
    """Take on the script's environment, folder, streams and arguments, and start the agent."""
    os.environ.clear()
    os.environ.update(job["environment"])
    os.chdir(job["folder"])
    for number, path in ((1, job["stdout"]), (2, job["stderr"])):
        file = os.open(path, os.O_WRONLY | os.O_APPEND)
        os.dup2(file, number)
        os.close(file)
    sys.argv[:] = job["words"]
    sys.orig_argv[:] = [sys.executable, *job["words"]]
    sys.path[0] = os.path.dirname(os.path.abspath(sys.argv[0]))
    if job["site_hook"]:
        with open(job["site_hook"], encoding="utf-8") as file:
            exec(file.read())


def main_module(path: str) -> types.ModuleType:
    """Return a new ``__main__``, in the place of this one."""
    module = types.ModuleType("__main__")
    vars(module).update(__file__=path, __cached__=None, __builtins__=__builtins__)
    sys.modules["__main__"] = module
    return module


def status_of(code: Any) -> int:
    """Return the exit status that ``sys.exit`` with this argument means."""
    if code is None or isinstance(code, int):
        return code or 0
    print(code, file=sys.stderr)
    return 1


def end(status: int) -> None:
    """End as an interpreter does, but leave the modules of libraries: taking them down costs more than many scripts."""
    threading._shutdown()
    atexit._run_exitfuncs()
    # What the script has made goes, while functions of its own can still use its variables.
    del sys.modules["__main__"], globals()["script"]
    gc.collect()
    for stream in (sys.stdout, sys.stderr):
        if stream is not None and not stream.closed:
            stream.flush()
    ctypes.CDLL(None).fflush(None)
    os._exit(status & 0xFF)


job = serve(sys.argv[1:])
prepare(job)
this = sys.modules["__main__"]
script = main_module(sys.argv[0])
try:
    with open(sys.argv[0], "rb") as source:
        code = compile(source.read(), sys.argv[0], "exec")
    exec(code, vars(script))
    status = 0
except SystemExit as error:
    status = status_of(error.code)
except BaseException as error:
    # Without the frame of this file.
    error.__traceback__ = error.__traceback__ and error.__traceback__.tb_next
    sys.excepthook(type(error), error, error.__traceback__)
    status = 1
if job["taken_down"]:
    raise SystemExit(status)
end(status)
