"""Other Pythons of the machine, old ones too, that inherit the variables of a captured program: none is harmed."""

from __future__ import annotations

import ast
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
OLDEST = (3, 10)
TOO_OLD = "Python {0}.{1} is too old, 3.10 is needed"


def others():
    """(version, path) of each Python on PATH and beside this one, each version once."""
    names = ["python2.7", *(f"python3.{minor}" for minor in range(20))]
    paths = [*filter(None, map(shutil.which, names))]
    # Where versions of Python are kept side by side.
    paths += map(str, sorted(Path(sys.base_prefix).parent.glob("[23].*/bin/python")))
    found = {}
    for path in paths:
        told = subprocess.run([path, "-c", "import sys; print(sys.version_info[:2])"], capture_output=True, text=True)
        version = re.match(r"\((\d+), (\d+)\)$", told.stdout)
        if version:
            found.setdefault((int(version[1]), int(version[2])), path)
    found.pop(sys.version_info[:2], None)
    return sorted(found.items())


def run(python, *words, folder, **variables):
    return subprocess.run([python, *words], cwd=folder, env=variables, capture_output=True, text=True, timeout=60)


def test_what_any_python_may_meet_is_written_for_an_old_one():
    files = ["sitecustomize.py", "smd_agent.pth", "smd_agent/__init__.py", "smd_agent/__main__.py"]
    for name in files:
        tree = ast.parse((ROOT / name).read_text(), feature_version=(3, 7))
        future = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module == "__future__"]
        assert future == [], name


def test_another_python_runs_its_program_and_says_at_most_that_it_is_too_old(copied, hook, tmp_path):
    shutil.copy(ROOT / "sitecustomize.py", copied)
    other = tmp_path / "other"
    other.mkdir()
    (other / "sitecustomize.py").write_text("import sys; sys.chained = True\n")
    found = others()
    if not found:
        pytest.skip("there is no other Python on this machine")
    for version, python in found:
        meet(version, python, copied, f"{copied}:{other}", hook, tmp_path)


def meet(version, python, copied, path, hook, tmp_path):
    too_old = TOO_OLD.format(*version)
    expected = f"smd_agent: start failed ({too_old}); nothing will be captured\n" if version < OLDEST else ""
    code = "import sys; print(sys.chained)"
    variables = {"PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1"}
    inert = run(python, "-c", code, folder=tmp_path, **variables)
    assert (inert.returncode, inert.stdout, inert.stderr) == (0, "True\n", "")
    armed = run(python, "-c", code, folder=tmp_path, SMD_AGENT_HOOK=hook, **variables)
    assert (armed.returncode, armed.stdout, armed.stderr) == (0, "True\n", expected)
    if version < (3, 6):
        # No installation brings the rest there.
        return
    line = f"exec(open({str(ROOT / 'smd_agent.pth')!r}).read()); print('ran')"
    put = run(python, "-S", "-c", line, folder=copied, SMD_AGENT_HOOK=hook)
    assert (put.returncode, put.stdout) == (0, "ran\n")
    assert [too_old in said for said in put.stderr.splitlines()] == [True] * (version < OLDEST)
    if version < OLDEST:
        asked = run(python, "-m", "smd_agent", "install", "--check", folder=copied)
        assert (asked.returncode, asked.stdout, asked.stderr) == (1, "", f"smd_agent: {too_old}\n")
