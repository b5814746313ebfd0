"""The process behind `benchmarks.family`: forks the variants, each of which then runs windows on command.

Whatever a variant imports is imported before the fork, for all of them: where code and objects lie in memory shifts a
step's time by 1 to 2 %, whichever modules they belong to.
It also runs under interpreters that have the old smdebug or an old framework, so it needs nothing but the framework.
"""

from __future__ import annotations

import importlib
import json
import os
import shutil
import socket
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.arms import Arm

# By framework: the module with its workloads, and the one with their variants.
MODULES = {
    "pytorch": ("benchmarks.workloads", "benchmarks.arms"),
    "accelerator": ("benchmarks.accelerator_workloads", "benchmarks.arms"),
    "xgboost": ("benchmarks.boosting", "benchmarks.boosting_arms"),
    "keras": ("benchmarks.keras_workloads", "benchmarks.tensorflow_arms"),
    "tensorflow": ("benchmarks.tensorflow_workloads", "benchmarks.tensorflow_arms"),
    "mxnet": ("benchmarks.gluon", "benchmarks.gluon_arms"),
}


def main() -> None:
    """Fork one child for each variant and wait until they end."""
    spec = json.loads(sys.argv[1])
    workloads, arms = map(importlib.import_module, MODULES[spec["framework"]])
    workloads.prepare()
    for variant, _ in spec["variants"]:
        arms.ARMS[variant].load()
    if spec["options"].get("pin"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    sockets = [(variant, socket.socket(fileno=fd)) for variant, fd in spec["variants"]]
    for number, (variant, connection) in enumerate(sockets):
        if os.fork() == 0:
            for _, other in sockets:
                if other is not connection:
                    other.close()
            folder = Path(spec["folder"]) / f"{os.getpid()}_{number}_{variant}"
            if not arms.ARMS[variant].alone:
                workloads.start_threads()
            serve(workloads.WORKLOADS[spec["workload"]], arms.ARMS[variant], folder, spec["options"], connection)
            os._exit(0)
    for _, connection in sockets:
        connection.close()
    for _ in sockets:
        os.wait()


def serve(
    make: Callable[[Path], Any], arm: Arm, folder: Path, options: dict[str, Any], connection: socket.socket
) -> None:
    """Answer commands until the other side hangs up; then remove what was written."""
    folder.mkdir(parents=True)
    arm.before(folder, options)
    subject = make(folder)
    arm.after(folder, options, subject)
    stream = connection.makefile("rw")
    commands = (tuple(json.loads(line)) for line in stream)
    subject.serve(commands, lambda sample: print(json.dumps(sample), file=stream, flush=True))
    shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
