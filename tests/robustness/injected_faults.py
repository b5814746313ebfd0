"""Has one function of the agent fail, or counts the calls of all: a call is put at the beginning of their bodies.

``ROBUSTNESS_FAULT`` is JSON: ``counts``, a file for the calls of each function by what is of the agent's too, as a list
of their numbers among all its calls; or ``function`` and ``call``, the how-manieth call of it fails, each one where it
is null, and ``fired``, a file that is made then. ``site_hook`` is what starts the agent. A function is called by its
file and its qualified name.
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
BY_OURS = {}
PID = os.getpid()


def start():
    """Start the agent, in a fork that a script is run in."""
    sys.meta_path.insert(0, _Finder)
    if WANTED is None:
        # Registered first, called last.
        atexit.register(_note)
    with open(JOB["site_hook"], encoding="utf-8") as file:
        exec(file.read())


def reached(name, begun=False):
    """A function of the agent's has been called; whether this call is to fail.

    ``begun``: the first that it does is to catch what fails.
    """
    number = CALLS[name] = CALLS.get(name, 0) + 1
    if WANTED is None:
        numbers = BY_OURS.setdefault(name, [])
        caller = sys._getframe(1).f_back
        if begun or (caller is not None and f"{os.sep}smd_agent{os.sep}" in caller.f_code.co_filename):
            numbers.append(number)
    elif JOB["call"] is None:
        return True
    elif number == JOB["call"]:
        with open(JOB["fired"], "w"):
            return True
    return False


def _note():
    if os.getpid() == PID:
        # A thread of the agent's may call further ones.
        text = json.dumps({name: [*numbers] for name, numbers in [*BY_OURS.items()]})
        with open(JOB["counts"], "w") as file:
            file.write(text)


def functions_in(tree, before=""):
    """Return the functions in a tree of syntax, with their qualified names."""
    found = []
    for node in ast.iter_child_nodes(tree):
        inner = before
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            inner = f"{before}{node.name}."
        if isinstance(node, ast.FunctionDef):
            found.append((f"{before}{node.name}", node))
        found += functions_in(node, inner)
    return found


def _instrumented(source, path):
    short = path.rpartition("smd_agent" + os.sep)[2]
    tree = ast.parse(source)
    for own_name, node in functions_in(tree):
        name = f"{short}:{own_name}"
        if WANTED in (None, name):
            # Raised by what the function does itself; a ``raise`` may be meant for the program.
            at = ast.get_docstring(node, clean=False) is not None
            begun = len(node.body) > at and isinstance(node.body[at], ast.Try)
            fails = f"__import__({__name__!r}, fromlist=['reached']).reached({name!r}, {begun})"
            raising = ast.parse(f"if {fails}:\n    [].injected").body[0]
            if begun:
                node.body[at].body.insert(0, raising)
            else:
                node.body.insert(at, raising)
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
