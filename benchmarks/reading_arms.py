"""One opening of a run in a process of its own: ``python reading_arms.py ours|old RUN``; prints times as JSON.

Run by the interpreter that has smdebug, too, so it imports nothing else.
"""

from __future__ import annotations

import json
import sys
import time
from importlib import import_module

SCALAR = "CrossEntropyLoss_output_0"


def main() -> None:
    """Open the run, list its tensors and read one number of all steps; times in seconds, memory in MB."""
    create_trial = import_module("smd_agent" if sys.argv[1] == "ours" else "smdebug.trials").create_trial
    started = time.perf_counter()
    trial = create_trial(sys.argv[2])
    opened = time.perf_counter()
    names, steps = trial.tensor_names(), trial.steps()
    listed = time.perf_counter()
    values = trial.tensor(SCALAR).values()
    read = time.perf_counter()
    assert len(values) == len(steps), (len(values), len(steps))
    found = {"open": opened - started, "list": listed - opened, "scalar": read - listed, "tensors": len(names)}
    print(json.dumps({**found, "memory": _most_memory()}))


def _most_memory() -> float:
    # Not from getrusage, which counts what the parent had when it started this process.
    with open("/proc/self/status") as file:
        return next(float(line.split()[1]) for line in file if line.startswith("VmHWM")) / 1000


if __name__ == "__main__":
    main()
