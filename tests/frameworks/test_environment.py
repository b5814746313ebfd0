"""What each framework notes of where a training runs, and that the training is not changed by it."""

from __future__ import annotations

import re
import subprocess
import sys
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path

import pytest

from smd_agent.printable import rough_size_text
from smd_agent.storage.worker_files_reader import read_about

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
PROGRAMS = {
    "torch": ("pytorch_digits.py", "PyTorch", ("--epochs", "1", "--seed", "7")),
    "tensorflow": ("keras_digits.py", "TensorFlow", ("--epochs", "1")),
    "xgboost": ("xgboost_cancer.py", "XGBoost", ()),
    "mxnet": ("gluon_digits.py", "MXNet", ()),
}


def release_of(module):
    # Some are installed as another package, such as one for the CPU alone.
    return metadata.version(metadata.packages_distributions()[module][0])


@pytest.mark.parametrize("framework", PROGRAMS)
def test_an_unedited_program(framework, tmp_path):
    if find_spec(framework) is None:
        pytest.skip(f"{framework} is not installed")
    script, name, options = PROGRAMS[framework]
    words = [sys.executable, "-m", "smd_agent", "--out", str(tmp_path / "run"), EXAMPLES / script, *options]
    done = subprocess.run([*map(str, words)], capture_output=True, text=True, cwd=tmp_path, timeout=300, check=True)
    (about,) = read_about(tmp_path / "run")
    versions = about.environment["versions"]
    assert versions[name] == release_of(framework)
    assert versions["Python"] == ".".join(map(str, sys.version_info[:3]))
    assert about.environment["program"] == {"script": script}
    (share,) = re.findall(r", ([\d.]+)% of the process's time", done.stderr)
    assert f"{about.share:.1%}" == f"{share}%"
    on_disk = sum(path.stat().st_size for path in (tmp_path / "run").rglob("*") if path.is_file())
    assert f" values, {rough_size_text(on_disk)}, " in done.stderr
    if framework == "torch":
        assert about.environment["seeds"] == {"PyTorch": "7"}
        assert about.environment["settings"]["deterministic algorithms"] == "off"
        assert "GPU" not in about.environment["machine"]
    if framework == "tensorflow":
        assert {"Keras": release_of("keras")}.items() <= versions.items()
        assert about.environment["seeds"]["TensorFlow"]
    if framework == "mxnet":
        assert "seeds" not in about.environment


def test_a_mode_of_the_program_sees_nothing_of_it():
    pytest.importorskip("torch")
    from torch.utils._python_dispatch import TorchDispatchMode

    from smd_agent.pytorch.environment import facts

    seen = []

    class Mode(TorchDispatchMode):
        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            seen.append(function)
            return function(*args, **(kwargs or {}))

    with Mode():
        found = [*facts()]
    assert found
    assert seen == []
