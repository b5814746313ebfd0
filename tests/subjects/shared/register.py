"""Notes all that the agent ever replaces in this process, from the start to the end: what a training registers.

``start(file)`` is called once the agent has started; the file gets a list of [path, why, until].
"""

import atexit
import json


def start(file):
    from smd_agent.framework import replaced_functions

    seen = replaced_functions.replaced()

    class Noting(dict):
        def __setitem__(self, key, entry):
            super().__setitem__(key, entry)
            seen.extend(entry[1])

    replaced_functions._entries = Noting(replaced_functions._entries)

    def write():
        found = sorted({(entry.path, entry.why, entry.until.name) for entry in seen})
        with open(file, "w") as out:
            json.dump(found, out)

    atexit.register(write)
