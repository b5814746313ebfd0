"""The process behind `benchmarks.family`: forks the variants, each of which then runs windows on command.

Whatever a variant imports is imported before the fork, for all of them: where code and objects lie in memory shifts a
step's time by 1 to 2 %, whichever modules they belong to.
It also runs under the interpreter that has the old smdebug, so it needs nothing but torch.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import sys
from pathlib import Path
from typing import Any

import torch

from benchmarks.arms import ARMS
from benchmarks.workloads import WORKLOADS


def main() -> None:
    """Fork one child for each variant and wait until they end."""
    spec = json.loads(sys.argv[1])
    torch.set_num_threads(1)
    for variant, _ in spec["variants"]:
        ARMS[variant].load()
    if spec["options"].get("pin"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    sockets = [(variant, socket.socket(fileno=fd)) for variant, fd in spec["variants"]]
    for number, (variant, connection) in enumerate(sockets):
        if os.fork() == 0:
            for _, other in sockets:
                if other is not connection:
                    other.close()
            folder = Path(spec["folder"]) / f"{os.getpid()}_{number}_{variant}"
            serve(spec["workload"], variant, folder, spec["options"], connection)
            os._exit(0)
    for _, connection in sockets:
        connection.close()
    for _ in sockets:
        os.wait()


def start_torch_threads() -> None:
    """Let torch start a thread of its own, as it does by itself on more than one core, then compute on one thread.

    A process that has a second thread pays about 1 % for locks in malloc. Real runs do have threads, so plain runs
    without one would charge the first thread of the process to whoever starts it.
    """
    torch.set_num_threads(2)
    torch.ones(10**6).sum()
    torch.set_num_threads(1)


def serve(workload: str, variant: str, folder: Path, options: dict[str, Any], connection: socket.socket) -> None:
    """Answer commands until the other side hangs up; then remove what was written."""
    folder.mkdir(parents=True)
    arm = ARMS[variant]
    if not arm.alone:
        start_torch_threads()
    arm.before(folder, options)
    subject = WORKLOADS[workload](folder)
    arm.after(folder, options, subject)
    subject.warm_up()
    stream = connection.makefile("rw")
    for command in stream:
        operation, count = json.loads(command)
        sample = getattr(subject, operation)(count)
        print(json.dumps(sample), file=stream, flush=True)
    shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
