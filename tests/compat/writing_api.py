"""Prints, as JSON, what smdebug's package for a framework has for saving a run: names, methods, arguments, defaults.

Run by an interpreter that has the real smdebug and the framework: ``writing_api.py FRAMEWORK``.
``old_writing_api.json`` holds its outputs.
"""

import importlib
import inspect
import json
import sys

from old_signatures import parameters

HOOKS = {"Hook", "KerasHook", "SessionHook", "EstimatorHook"}
CONFIGS = {"Collection", "SaveConfig", "SaveConfigMode", "ReductionConfig", "CollectionManager"}


def face(framework):
    package = importlib.import_module(f"smdebug.{framework}")
    found = {name: getattr(package, name) for name in vars(package) if not name.startswith("_")}
    functions = {name: parameters(one) for name, one in found.items() if inspect.isfunction(one)}
    classes = {name: one for name, one in found.items() if name in HOOKS | CONFIGS}
    return {"functions": functions, "classes": {name: methods(one) for name, one in classes.items()}}


def methods(cls):
    """Those that smdebug defines, in whatever base."""
    found = {"__init__": parameters(cls.__init__)}
    for base in cls.__mro__:
        if not base.__module__.startswith("smdebug."):
            continue
        for name, one in vars(base).items():
            if name.startswith("_") or name in found:
                continue
            if isinstance(one, property):
                found[name] = "(property)"
            elif callable(one) or isinstance(one, (classmethod, staticmethod)):
                found[name] = parameters(getattr(cls, name)).replace("cls ", "")
    return found


if __name__ == "__main__":
    print(json.dumps(face(sys.argv[1]), indent=1, sort_keys=True))
