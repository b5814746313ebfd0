"""A process beside the program: nothing tells the program of it, and it has nothing of the program's."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from smd_agent.storage import side_process
from smd_agent.storage.side_process import CannotStart, start_beside

pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or not side_process.LIBRARY.exists(), reason="it takes the compiled part, and Linux"
)

WHO = """
import json, os, sys
given = sys.stdin.read()
files = sorted(int(name) for name in os.listdir("/proc/self/fd"))
own = os.getpid(), os.getppid(), os.getsid(0), os.nice(0)
print(json.dumps([given, *own, files[:3], len(files), [*os.environ]]), flush=True)
print("bad", file=sys.stderr)
"""

PROGRAM = """
import json, os, signal, sys, threading, time
from smd_agent.storage.side_process import start_beside
signals = []
signal.signal(signal.SIGCHLD, lambda number, frame: signals.append(number))
signal.signal(signal.SIGUSR1, lambda number, frame: None)
own = open(os.devnull), os.dup(1)
os.set_inheritable(own[1], True)
threading.Thread(target=time.sleep, args=(30,), daemon=True).start()
output = start_beside([sys.executable, "-I", "-c", sys.argv[1]], {"SEEN": "1"}, b"hello")
try:
    print("child", os.wait())
except ChildProcessError:
    print("no child")
text = b""
while more := os.read(output, 4096):
    text += more
time.sleep(0.2)
first, second = text.decode().splitlines()
given, pid, parent, session, nice, files, count, names = json.loads(first)
print(given, pid != os.getpid(), parent != os.getpid(), session not in (os.getpid(), os.getsid(0)), nice, files, count)
print(sorted({*names} - {"LC_CTYPE"}), second, signals)
"""


def run(code, *words, cwd):
    # The source tree has no compiled part.
    command = [sys.executable, "-c", code, *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, cwd=cwd)


def test_the_program_is_told_nothing_and_nothing_is_inherited(tmp_path):
    done = run(PROGRAM, WHO, cwd=tmp_path)
    # The fourth file is the folder that it lists.
    assert done.stdout.splitlines() == ["no child", "hello True True True 10 [0, 1, 2] 4", "['SEEN'] bad []"], done


def test_a_child_of_the_program_is_still_its_own(tmp_path):
    code = (
        "import os, subprocess, sys; from smd_agent.storage.side_process import start_beside\n"
        "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(.3); raise SystemExit(3)'])\n"
        "start_beside([sys.executable, '-c', ''], {}, b'')\n"
        "pid, status = os.wait(); print(pid == child.pid, os.waitstatus_to_exitcode(status))"
    )
    done = run(code, cwd=tmp_path)
    assert done.stdout == "True 3\n", done


def test_what_cannot_be_started_is_said():
    with pytest.raises(CannotStart, match="No such file"):
        start_beside(["/nowhere/python"], {}, b"")
    with pytest.raises(CannotStart, match="too long"):
        start_beside([sys.executable], {}, b"x" * 100_000)


def test_no_file_stays_open():
    before = os.listdir("/proc/self/fd")
    for _ in range(3):
        with pytest.raises(CannotStart):
            start_beside(["/nowhere/python"], {}, b"x")
    assert os.listdir("/proc/self/fd") == before


def test_nothing_is_started_where_the_program_would_become_its_parent(tmp_path):
    code = (
        "import ctypes, sys; from smd_agent.storage.side_process import CannotStart, start_beside\n"
        "ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)\n"
        "try: start_beside([sys.executable], {}, b'')\n"
        "except CannotStart as why: print(why)"
    )
    done = run(code, cwd=tmp_path)
    assert done.stdout.startswith("this process becomes the parent of others"), done


def test_without_the_compiled_part_it_says_so(monkeypatch, tmp_path):
    monkeypatch.setattr(side_process, "LIBRARY", tmp_path / "spawn.so")
    with pytest.raises(CannotStart, match="without its compiled parts"):
        start_beside([sys.executable], {}, b"")
