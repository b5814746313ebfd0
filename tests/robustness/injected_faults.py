"""Has one function of the agent fail, or counts the calls of all: a call is put at the beginning of their bodies.

``ROBUSTNESS_FAULT`` is JSON: ``counts``, a file for the number of calls of each function; or ``function`` and ``call``,
the how-manieth call of it fails, and ``fired``, a file that is made then. ``site_hook`` is what starts the agent.
"""

import ast
import atexit
import json
import os
import sys
from importlib.machinery import PathFinder, SourceFileLoader

JOB = json.loads(os.environ.get("ROBUSTNESS_FAULT", "{}"))
WANTED = JOB.get("function")
CALLS = {}
ENTRIES = set()
PID = os.getpid()


def start():
    """Start the agent, in a fork that a script is run in."""
    sys.meta_path.insert(0, _Finder)
    if WANTED is None:
        # Registered first, called last.
        atexit.register(_note)
    with open(JOB["site_hook"], encoding="utf-8") as file:
        exec(file.read())


def reached(name):
    """A function of the agent's has been called."""
    CALLS[name] = CALLS.get(name, 0) + 1
    if WANTED is None:
        caller = sys._getframe(1).f_back
        if caller is not None and f"{os.sep}smd_agent{os.sep}" not in caller.f_code.co_filename:
            ENTRIES.add(name)
    elif CALLS[name] == JOB["call"]:
        with open(JOB["fired"], "w"):
            raise RuntimeError("injected")


def _note():
    if os.getpid() == PID:
        with open(JOB["counts"], "w") as file:
            json.dump({"calls": CALLS, "entries": sorted(ENTRIES)}, file)


def _instrumented(source, path):
    short = path.rpartition("smd_agent" + os.sep)[2]
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            name = f"{short}:{node.lineno}:{node.name}"
            if WANTED in (None, name):
                call = ast.parse(f"__import__({__name__!r}, fromlist=['reached']).reached({name!r})").body[0]
                node.body.insert(ast.get_docstring(node, clean=False) is not None, call)
    return ast.fix_missing_locations(tree)


class _Loader(SourceFileLoader):
    def get_code(self, fullname):
        return compile(_instrumented(self.get_data(self.path), self.path), self.path, "exec")


class _Finder:
    @staticmethod
    def find_spec(name, path=None, target=None):
        if name.partition(".")[0] != "smd_agent":
            return None
        spec = PathFinder.find_spec(name, path, target)
        # Of files in which nothing is to fail there is bytecode.
        if WANTED is None or spec.origin.endswith(f"smd_agent{os.sep}{WANTED.partition(':')[0]}"):
            spec.loader = _Loader(spec.loader.name, spec.loader.path)
        return spec
