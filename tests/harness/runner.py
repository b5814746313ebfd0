"""Runs scripts through the doors of the agent, and without it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import sysconfig
from pathlib import Path

import smd_agent
from harness.kept_runs import kept
from harness.warm import warm_process

SUBJECTS = Path(__file__).parents[1] / "subjects"
# What a launcher or an interpreter is given to start a script of PyTorch in two processes.
TORCHRUN = ["-m", "torch.distributed.run", "--standalone", "--nproc_per_node", "2"]
PACKAGE = Path(smd_agent.__file__).parent
SITE_HOOK = Path(sysconfig.get_path("purelib")) / "smd_agent.pth"


def environment(**variables):
    """The variables of a run. It is not judged when it ends, which takes its time, unless they say so."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("SMD", "USE_SMDEBUG", "COV_", "COVERAGE_"))}
    if not SITE_HOOK.exists():
        # Tests started from a source tree: the folder with our sitecustomize takes the place of the site hook.
        inner = PACKAGE / "_site"
        kept["PYTHONPATH"] = str(inner if inner.exists() else PACKAGE.parent)
    return {**kept, "SMD_AGENT_VERDICT_SECONDS": "0", **variables}


class Runner:
    """Runs one script through the doors; ``hook`` is the configuration, its run goes to ``folder``/<name>.

    ``warm`` names modules: a script that is run to its end then runs in a fork of a process that has imported them.
    """

    def __init__(self, folder, warm=()):
        self.folder = folder
        # The fork starts the agent by the site hook, which is not there when tests are started from a source tree.
        self.warm = tuple(warm) if SITE_HOOK.exists() else ()

    def hook_file(self, name, config):
        path = self.folder / f"{name}.json"
        path.write_text(json.dumps({"LocalPath": str(self.folder / name), **config}))
        return str(path)

    def write(self, text, name="script.py"):
        """Write a script into the folder and return its path."""
        path = self.folder / name
        path.write_text(text)
        return path

    def plain(self, script, *args, **variables):
        env = environment(**variables)
        words = [*map(str, (script, *args))]
        return kept(words, env, self.folder, lambda: self._run_script(script, args, env), sys.executable, self.warm)

    def by_variable(self, script, *args, name="run", config=None, **variables):
        file = self.hook_file(name, config or {})
        return self._run_script(script, args, environment(SMDEBUG_CONFIG_FILE_PATH=file, **variables))

    def by_launcher(self, *words, **variables):
        return self._run([sys.executable, "-m", "smd_agent", *map(str, words)], environment(**variables))

    def start(self, script, *, name="run", config=None):
        """Start the script by the environment variable and return the running process."""
        env = environment(SMDEBUG_CONFIG_FILE_PATH=self.hook_file(name, config or {}))
        return subprocess.Popen([sys.executable, str(script)], cwd=self.folder, env=env, stderr=subprocess.DEVNULL)

    @staticmethod
    def environment(**variables):
        return environment(**variables)

    def _run_script(self, script, args, env):
        if self.warm and Path(script).suffix == ".py":
            return warm_process(self.warm, env).run([str(script), *map(str, args)], env, self.folder, SITE_HOOK)
        return self._run([sys.executable, str(script), *args], env)

    def _run(self, command, env):
        try:
            return subprocess.run(command, cwd=self.folder, env=env, capture_output=True, text=True, timeout=300)
        except subprocess.TimeoutExpired as error:
            # What has ended a thread that others wait for stands there.
            written = (error.stderr or b"").decode(errors="replace")
            raise AssertionError(f"{command} still runs after 300 s, and has written to stderr: {written}") from None
