"""Prints, as JSON, what child processes of every kind see of themselves, and whether the agent is there."""

import json
import multiprocessing
import os
import subprocess
import sys


def facts():
    main = sys.modules["__main__"]
    armed = any(type(finder).__name__ == "_FrameworkFinder" for finder in sys.meta_path)
    name = multiprocessing.current_process().name
    file = getattr(main, "__file__", None)
    return armed, [sys.argv, sys.path, repr(sys.flags), main.__name__, file, os.getcwd(), name]


def child(pipe):
    pipe.send(facts())


if __name__ == "__main__":
    found = {}
    for method in ("spawn", "forkserver", "fork"):
        context = multiprocessing.get_context(method)
        here, there = context.Pipe()
        process = context.Process(target=child, args=(there,), name=method)
        process.start()
        found[method] = here.recv()
        process.join()
    code = "import sys; print(sys.path, sys.argv, sys.meta_path[0])"
    run = subprocess.run([sys.executable, "-c", code, "a"], capture_output=True, text=True)
    found["subprocess"] = (None, run.stdout)
    print(json.dumps(found))
