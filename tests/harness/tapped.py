"""A training that runs beside the test, which asks it for something by ``tap``."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

from harness.runner import Runner

WITHIN = 120


class TappedRun:
    """A script in a process of its own, and what it has said."""

    def __init__(self, folder: Path, script: str, *, config=None, launcher=(), **variables):
        self.folder = folder
        runner = Runner(folder)
        self.run = folder / "run"
        file = runner.hook_file("run", {"HookParameters": {"save_interval": 1000}, **(config or {})})
        env = runner.environment(SMDEBUG_CONFIG_FILE_PATH=file, **variables)
        self._out, self._err = folder / "stdout.txt", folder / "stderr.txt"
        with self._out.open("w") as out, self._err.open("w") as err:
            words = [sys.executable, *launcher, str(runner.write(script))]
            self.process = subprocess.Popen(words, cwd=folder, env=env, stdout=out, stderr=err)

    def __enter__(self):
        self.wait_for(lambda: list(self.run.glob("index/*/*.json")), "the first saved step")
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()

    @property
    def said(self):
        return self._err.read_text()

    @property
    def printed(self):
        return self._out.read_text()

    def wait_for(self, found, what):
        until = time.monotonic() + WITHIN
        while not (result := found()):
            assert self.process.poll() is None, (what, self.said, self.printed)
            assert time.monotonic() < until, (what, self.said, self.printed)
            time.sleep(0.05)
        return result

    def tap(self, *words):
        """Return exit code and stdout of ``tap``."""
        command = [sys.executable, "-m", "smd_agent", "tap", str(self.run), *words]
        done = subprocess.run(command, capture_output=True, text=True, timeout=3 * WITHIN, env=Runner.environment())
        return done.returncode, done.stdout + done.stderr

    def answers(self):
        """Return the answers that are there, in the order in which they were asked for."""
        files = sorted((self.run / "control/answers").glob("*.json"))
        return [json.loads(file.read_text()) for file in files]

    def ended(self):
        """Return the exit code of the program, which ends by itself."""
        return self.process.wait(timeout=WITHIN)
