"""A training that is run under the agent, and what it saves when nothing disturbs it."""

from __future__ import annotations

import logging
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from harness.compare import OURS, saved_values
from harness.runner import SITE_HOOK, SUBJECTS, Runner
from harness.warm import warm_process

from robustness.survival import kinds_of, order_of
from smd_agent import create_trial
from smd_agent.core.modes import ModeKeys
from smd_agent.errors import SMDebugError
from smd_agent.formats.paths import INDEX_FOLDER

QUIET = {"TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": "", "OMP_NUM_THREADS": "1"}
# A loss whose module or function was not seen.
OTHER_NAMES = ("Loss_output_0",)
EVERYTHING: dict[str, Any] = {"HookParameters": {"save_interval": 1, "save_all": True}}


@dataclass
class Training:
    """A script, without and with the agent, in forks of a process that has imported its framework.

    script: below the folder of the subjects.
    modules: that are imported.
    python: names a variable of the environment, which names the interpreter; None for this one.
    manner: in which it is trained, in words of the page.
    """

    script: str
    modules: tuple[str, ...]
    python: str | None = None
    manner: str = ""
    stdout: str = ""
    seconds: float = 0.0
    whole: dict[Any, np.ndarray] = field(default_factory=dict)
    steps: int = 0
    kept: dict[str, object] = field(default_factory=dict)
    kinds: dict[str, str] = field(default_factory=dict)
    order: dict[tuple[ModeKeys, int], int] = field(default_factory=dict)

    @property
    def missing(self) -> bool:
        """Whether there is no interpreter for it here."""
        return self.python is not None and not os.environ.get(self.python)

    def prepare(self, folder: Path) -> None:
        """Run it to its end, without the agent and with it, and remember what came of it."""
        logging.getLogger("smd_agent").setLevel(logging.CRITICAL)
        os.environ.update(SMDEBUG_TRAINING_END_DELAY_REFRESH="0", SMDEBUG_MISSING_EVENT_FILE_RETRY_LIMIT="0")
        if self.missing:
            return
        plain = self.run(folder, None)
        assert (plain.returncode, plain.stderr) == (0, ""), plain.stderr
        self.stdout = plain.stdout
        # The second run is as fast as those that follow.
        for _ in range(2):
            shutil.rmtree(folder / "run", ignore_errors=True)
            start = time.monotonic()
            ended = self.run(folder, SITE_HOOK)
            self.seconds = time.monotonic() - start
            self.check_untouched(ended)
        root = self.root(folder)
        self.whole = self.values(root)
        self.steps = len(listed(root))
        self.kept = self.keeps(folder)
        trial = create_trial(str(root), timeout=0)
        self.kinds, self.order = kinds_of(trial), order_of(trial)
        shutil.rmtree(folder / "run")

    def run(
        self,
        folder: Path,
        site_hook: Path | None,
        name: str = "run",
        killed_when: Callable[[], bool] | None = None,
        **more: str,
    ) -> subprocess.CompletedProcess[str]:
        """Run it in a folder; ``site_hook`` starts the agent, which saves everything to the folder of this name."""
        runner = Runner(folder)
        hook = runner.hook_file(name, self.hook(folder, name))
        python = sys.executable if self.python is None else os.environ[self.python]
        environment = runner.environment(**QUIET, SMDEBUG_CONFIG_FILE_PATH=hook, SMD_AGENT_VERDICT_SECONDS="30")
        # The same process for all of them, whatever is added for one.
        process = warm_process(self.modules, environment, (python,))
        words = [str(SUBJECTS / self.script)]
        variables = {**environment, **self.variables(folder), **more}
        return process.run(words, variables, folder, site_hook, killed_when, taken_down=True)

    def hook(self, folder: Path, name: str) -> dict[str, Any]:
        """Return the configuration of a run that goes to the folder of this name."""
        return EVERYTHING

    def variables(self, folder: Path) -> dict[str, str]:
        """Return further variables of its environment."""
        return {}

    def root(self, folder: Path) -> Path:
        """Return the folder in which its run is once it has ended."""
        return folder / "run"

    def keeps(self, folder: Path) -> dict[str, object]:
        """Return how much is kept of it, which is the same whenever nothing is lost."""
        return {"steps": len(listed(self.root(folder)))}

    def check_untouched(self, ended: subprocess.CompletedProcess[str]) -> list[str]:
        """Assert that the script did as it does without the agent; return what the agent has said."""
        assert ended.returncode == 0, f"ended with {ended.returncode}: {ended.stderr[-1200:]}"
        assert ended.stdout == self.stdout, f"another result: {ended.stderr[-1200:]}"
        lines = ended.stderr.splitlines()
        foreign = [line for line in lines if not line.startswith(OURS)]
        assert not foreign, f"on stderr: {foreign[-3:]}"
        return lines

    def values(self, root: Path) -> dict[Any, np.ndarray]:
        """Return all values of a run, by name, mode and step; whatever is listed must be readable."""
        if not listed(root):
            return {}
        trial = create_trial(str(root), timeout=0)
        try:
            found = saved_values(trial)
        except SMDebugError as error:
            raise AssertionError(f"listed, and not to be read: {error}") from error
        assert not trial.problems, f"problems: {trial.problems}"
        steps = trial.steps(show_incomplete_steps=True)
        assert len(steps) == len(listed(root)), f"{len(listed(root))} index files, {len(steps)} steps"
        return found

    def check_listed(self, root: Path, complete: bool = True) -> int:
        """Assert what `check_values` does; return the number of the run's steps."""
        self.check_values(root, complete)
        return len(listed(root))

    def check_values(self, root: Path, complete: bool = True) -> dict[Any, np.ndarray]:
        """Assert that what a run lists is there, and what the whole run has; return its values.

        Args:
            root: the run's folder.
            complete: the steps that it lists must have all that the whole run has in them, and nothing else. Where
                something has failed, a loss may have the name that it has elsewhere, and facts may be told later.
        """
        found = self.values(root)
        for key, value in found.items():
            if not complete and self.kinds.get(key[0], "all else") == "all else":
                continue
            if not complete and key not in self.whole and key[0] in OTHER_NAMES:
                continue
            assert key in self.whole, f"not in the whole run: {key}"
            expected = self.whole[key]
            assert value.dtype == expected.dtype, f"another dtype: {key}"
            assert value.tobytes() == expected.tobytes(), f"another value: {key}"
        if complete:
            steps = {(mode, step) for _, mode, step in found}
            missing = [key for key in self.whole if key[1:] in steps and key not in found]
            assert not missing, f"{len(missing)} values are missing in steps that are listed: {missing[:3]}"
        return found


def listed(root: Path) -> list[str]:
    """Return the names of a run's index files."""
    return sorted(path.name for path in (root / INDEX_FOLDER).glob("*/*.json"))


PYTORCH = Training("pytorch/many_steps.py", ("torch", "torch._dynamo"))
KERAS = Training("keras/many_steps.py", ("tensorflow",))
GLUON = Training("mxnet/many_steps.py", ("mxnet",), "MXNET_PYTHON")
XGBOOST = Training("xgboost/many_rounds.py", ("xgboost", "sklearn"))
