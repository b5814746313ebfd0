"""Interpreters to be compared: one without the agent, one with it installed, and a folder to inject it from.

They are empty virtual environments that see the libraries of the interpreter running the tests. The package
under test is linked into them, so they show what an installation does, whichever way the tests themselves
were started.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import sysconfig
import venv
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

import smd_agent

PACKAGE = Path(smd_agent.__file__).parent
HOOK_FILE = PACKAGE.parent / "smd_agent.pth"
DROPPED = ("PYTHONPATH", "PYTHONSTARTUP", "SMDEBUG_CONFIG_FILE_PATH", "USE_SMDEBUG", "VIRTUAL_ENV")


@dataclass(frozen=True)
class Interpreter:
    """A Python to run things with."""

    root: Path

    @property
    def path(self) -> str:
        return str(self.root / "bin" / "python")

    @property
    def site_packages(self) -> Path:
        return next(self.root.glob("lib/python*/site-packages"))

    def run(self, *words: str, cwd: Path, stdin: str = "", **variables: str) -> subprocess.CompletedProcess[str]:
        """Run `python <words>` with the agent's variables removed from the environment, then these added."""
        return run_command([self.path, *words], cwd=cwd, stdin=stdin, **variables)

    def command(self, *words: str, cwd: Path, stdin: str = "", **variables: str) -> subprocess.CompletedProcess[str]:
        """Run a command found on a PATH that begins with this interpreter's folder."""
        path = os.pathsep.join([str(self.root / "bin"), os.environ["PATH"]])
        # Looked up by a shell, since subprocess would take this process's PATH for it.
        shell = ["sh", "-c", 'exec "$@"', "sh", *words]
        return run_command(shell, cwd=cwd, stdin=stdin, PATH=path, **variables)


def run_command(words: list[str], *, cwd: Path, stdin: str = "", **variables: str) -> subprocess.CompletedProcess[str]:
    kept = {
        name: value
        for name, value in os.environ.items()
        if name not in DROPPED and not name.startswith(("SMD_AGENT_", "COV_", "COVERAGE_"))
    }
    return subprocess.run(
        words,
        cwd=cwd,
        env={**kept, **variables},
        input=stdin,
        capture_output=True,
        text=True,
        timeout=120,
        # Where tests are run in the background, they have been told to ignore it.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )


def make_interpreter(root: Path) -> Interpreter:
    venv.EnvBuilder(symlinks=True).create(root)
    made = Interpreter(root)
    # A path line makes the libraries importable without running their start-up files.
    libraries = {sysconfig.get_path("purelib"), sysconfig.get_path("platlib")}
    (made.site_packages / "zz_libraries.pth").write_text("\n".join(sorted(libraries)) + "\n")
    return made


def sitecustomize() -> Path:
    inner = PACKAGE / "_site" / "sitecustomize.py"
    return inner if inner.is_file() else PACKAGE.parent / "sitecustomize.py"


@pytest.fixture(scope="session")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Interpreter:
    """An interpreter in which the agent is not installed."""
    return make_interpreter(tmp_path_factory.mktemp("interpreters") / "bare")


@pytest.fixture(scope="session")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Interpreter:
    """An interpreter in which the agent is installed with its site hook."""
    # The name is as long as the other one's: line lengths of tracebacks shall not differ.
    made = make_interpreter(tmp_path_factory.mktemp("interpreters") / "inst")
    (made.site_packages / "smd_agent").symlink_to(PACKAGE, target_is_directory=True)
    shutil.copy(HOOK_FILE, made.site_packages)
    return made


@pytest.fixture
def fresh(tmp_path: Path) -> Interpreter:
    """An interpreter of this test alone, in which the agent is not installed."""
    return make_interpreter(tmp_path / "fresh")


@pytest.fixture
def copied(tmp_path: Path) -> Path:
    """A folder with a copy of the package as it is unpacked: without byte code."""
    folder = tmp_path / "copied"
    shutil.copytree(PACKAGE, folder / "smd_agent", ignore=shutil.ignore_patterns("__pycache__"))
    return folder


@pytest.fixture
def volume(tmp_path: Path) -> Path:
    """A folder that holds the agent and nothing else, as mounted into a container."""
    folder = tmp_path / "volume"
    folder.mkdir()
    (folder / "smd_agent").symlink_to(PACKAGE, target_is_directory=True)
    shutil.copy(sitecustomize(), folder / "sitecustomize.py")
    return folder


@pytest.fixture
def hook(tmp_path: Path) -> str:
    """A hook configuration as the launcher hands it on."""
    return f'{{"LocalPath": "{tmp_path / "run"}"}}'


Script = Callable[[str], Path]


@pytest.fixture
def script(tmp_path: Path) -> Script:
    """Write a script and return its path."""

    def write(text: str) -> Path:
        path = tmp_path / "script.py"
        path.write_text(text)
        return path

    return write


@pytest.fixture
def toy(tmp_path: Path) -> Path:
    """A folder with a small framework and its patch, which counts how often it was applied."""
    folder = tmp_path / "toy"
    folder.mkdir()
    (folder / "toyframe.py").write_text("value = 1\n")
    (folder / "toypatch.py").write_text("def apply(module):\n    module.patched = getattr(module, 'patched', 0) + 1\n")
    return folder


if sys.platform == "win32":
    collect_ignore_glob = ["test_*.py"]
