"""Scripts for the old library, run unedited: with the agent, by the distribution, and by the library itself."""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

from harness.beside import run_script
from harness.compare import assert_same_values, said, saved_values
from harness.runner import Runner
from smd_agent.alias.table import MODULES
from smd_agent.analysis.trial import Trial, create_trial

TESTS = Path(__file__).parents[1]
SCRIPTS = TESTS / "compat" / "scripts"
NAMES = TESTS.parent / "distributions" / "smdebug" / "smdebug"


@dataclass(frozen=True)
class OldScript:
    """A script run with the agent, and without it by the distribution.

    Attributes:
        agent, alone: how that went.
        run, run_alone: the folders of what they saved.
        unused: where the agent would have saved if the script had no hook.
    """

    agent: CompletedProcess[str]
    alone: CompletedProcess[str]
    run: Path
    run_alone: Path
    unused: Path

    @cached_property
    def trial(self) -> Trial:
        """What was saved with the agent."""
        return create_trial(str(self.run))

    def assert_alike(self) -> None:
        """Assert that the script ran, printed and saved the same both times, and nothing elsewhere."""
        for result in (self.agent, self.alone):
            assert result.returncode == 0, result.stderr
        assert self.agent.stdout == self.alone.stdout != ""
        saved = saved_values(self.trial)
        assert saved
        assert_same_values(saved, saved_values(create_trial(str(self.run_alone))))
        if self.unused != self.run:
            assert not self.unused.exists()
            (line,) = (line for line in said(self.agent) if "a hook of its own" in line)
            assert line.endswith(f"it says what is saved, to {self.run} and not to {self.unused}")
        assert sum(line.startswith("smd_agent: saving ") for line in said(self.agent)) == 1


def beside_names(runner: Runner, script: str) -> Path:
    """Copy a script into a folder in which the distribution lies too, and return its path."""
    folder = runner.folder / "beside_names"
    if not folder.exists():
        folder.mkdir()
        shutil.copytree(NAMES, folder / "smdebug", ignore=shutil.ignore_patterns("__pycache__"))
    return Path(shutil.copy(SCRIPTS / script, folder))


def run_old_script(runner: Runner, script: str) -> OldScript:
    """Run a script that makes its hook by itself; its argument is the run's folder."""
    run, run_alone = runner.folder / f"{script}.own", runner.folder / f"{script}.alone"
    config = {"HookParameters": {"save_interval": 1, "save_all": True}}
    agent = runner.by_variable(SCRIPTS / script, str(run), name=f"{script}.unused", config=config)
    alone = runner.plain(beside_names(runner, script), str(run_alone))
    return OldScript(agent, alone, run, run_alone, runner.folder / f"{script}.unused")


def run_by_file(runner: Runner, script: str, config: dict[str, Any]) -> OldScript:
    """Run a script whose hook is made by the file that the agent is told of; its argument is another one."""
    agent = runner.by_variable(SCRIPTS / script, name=script, config=config)
    alone = runner.plain(beside_names(runner, script), runner.hook_file(f"{script}.alone", config))
    run = runner.folder / script
    return OldScript(agent, alone, run, runner.folder / f"{script}.alone", run)


def missing_names(runner: Runner, *packages: str) -> list[str]:
    """Which names of the table, of modules that begin like these, cannot be imported with the agent."""
    script, wanted = SCRIPTS / "every_name.py", _names(packages)
    file = runner.folder / "wanted.json"
    file.write_text(json.dumps(wanted))
    result = runner.by_variable(script, str(file), name="names")
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout)


def run_by_library(python: str, script: str, *words: object, framework: str) -> str:
    """Run a script by an interpreter that has the old library, and return its last line."""
    variables = {"SMDEBUG_TRAINING_END_DELAY_REFRESH": "0", "AWS_DEFAULT_REGION": "us-east-1"}
    modules = (f"smdebug.{framework}",)
    return run_script(python, SCRIPTS / script, *words, modules=modules, **variables).splitlines()[-1]


def names_the_library_lacks(python: str, folder: Path, *packages: str, framework: str) -> list[str]:
    """Which names of the table, of modules that begin like these, the library itself has not."""
    file = folder / "wanted.json"
    file.write_text(json.dumps(_names(packages)))
    return json.loads(run_by_library(python, "every_name.py", file, framework=framework))


def _names(packages: tuple[str, ...]) -> dict[str, list[str]]:
    found = {
        module: [*served.names]
        for module, served in MODULES.items()
        if any(module == package or (package != "smdebug" and module.startswith(f"{package}.")) for package in packages)
    }
    assert found
    return found
