"""A folder with the agent and its libraries, brought into a container by PYTHONPATH alone."""

from __future__ import annotations

import json
import sysconfig
from pathlib import Path

import pytest

from smd_agent import create_trial

LIBRARIES = Path(sysconfig.get_path("purelib"))
OURS = ("wrapt", "crc32c", "google")
ARMED = "import sys; print(any(type(finder).__name__ == '_FrameworkFinder' for finder in sys.meta_path))"


@pytest.fixture
def bundle(tmp_path, copied):
    """What `pip install --target` makes: the package, and the libraries that it needs, in one folder."""
    for path in LIBRARIES.iterdir():
        if path.name.startswith((*OURS, "numpy")):
            (copied / path.name).symlink_to(path)
    return copied


@pytest.fixture
def lacking(fresh):
    """An interpreter that has XGBoost and what that needs, but not all that the agent needs."""
    (fresh.site_packages / "zz_libraries.pth").unlink()
    left_out = (*OURS, "smd_agent", "sitecustomize", "_", "distutils", "a1_")
    for path in LIBRARIES.iterdir():
        if not path.name.startswith(left_out) and path.suffix not in (".pth", ".start"):
            (fresh.site_packages / path.name).symlink_to(path)
    return fresh


def door(bundle):
    return str(bundle / "smd_agent" / "_site")


SCRIPT = """
import sys
import numpy, xgboost
rng = numpy.random.default_rng(0)
x = rng.random((40, 3))
data = xgboost.DMatrix(x, label=x[:, 0])
xgboost.train({"seed": 0}, data, num_boost_round=4, evals=[(data, "train")], verbose_eval=False)
print(numpy.__file__)
print([path for path in sys.path if "copied" in path])
"""


def test_a_program_without_our_libraries_is_captured_with_its_own_numpy(lacking, bundle, script, tmp_path):
    pytest.importorskip("xgboost")
    hook = json.dumps({"LocalPath": str(tmp_path / "run"), "HookParameters": {"save_interval": 1}})
    path = script(SCRIPT)
    plain = lacking.run(str(path), cwd=tmp_path)
    assert plain.returncode == 0, plain.stderr
    alone = lacking.run("-c", "import wrapt", cwd=tmp_path, PYTHONPATH=door(bundle))
    assert "No module named 'wrapt'" in alone.stderr
    run = lacking.run(str(path), cwd=tmp_path, PYTHONPATH=door(bundle), SMD_AGENT_HOOK=hook)
    # NumPy's file is that of the program, and the folder is not on its path.
    assert (run.returncode, run.stdout) == (0, plain.stdout), run.stderr
    assert "failed" not in run.stderr
    assert create_trial(tmp_path / "run").steps() == [0, 1, 2, 3]
    # The commands run there too, where the variables are set.
    listed = lacking.run(
        "-m", "smd_agent", "ls", str(tmp_path / "run"), cwd=tmp_path, PYTHONPATH=door(bundle), SMD_AGENT_HOOK=hook
    )
    assert (listed.returncode, listed.stderr) == (0, "")
    found = lacking.run(
        "-m", "smd_agent", "install", "--check", cwd=tmp_path, PYTHONPATH=door(bundle), SMD_AGENT_HOOK=hook
    )
    assert found.returncode == 0, found.stdout
    assert "Started  by PYTHONPATH; not with -I and -E" in found.stdout


def test_libraries_of_the_program_win(fresh, bundle, hook, tmp_path):
    code = "import wrapt, crc32c, google.protobuf as g, sys; print(wrapt.__file__, crc32c.__file__, g.__file__)"
    plain = fresh.run("-c", code, cwd=tmp_path)
    run = fresh.run("-c", code, cwd=tmp_path, PYTHONPATH=door(bundle), SMD_AGENT_HOOK=hook)
    assert (run.stdout, run.stderr) == (plain.stdout, "")
    assert str(LIBRARIES) in run.stdout


# As the toolkit of SageMaker's images does, the interpreter of which starts that of the script.
STARTER = """
import os, subprocess, sys

def run(code):
    os.environ["PYTHONPATH"] = ":".join(sys.path)
    return subprocess.run([sys.executable, "-c", code], env=os.environ).returncode
"""


@pytest.mark.parametrize("inside", [True, False], ids=["_site", "beside"])
def test_a_script_that_is_started_with_the_path_of_its_starter_is_captured(
    inside, fresh, bundle, volume, hook, tmp_path
):
    package = tmp_path / "toolkit" / "sagemaker_training"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text(STARTER)
    folder = door(bundle) if inside else str(volume)
    code = f"import sys; sys.path.append({str(package.parent)!r}); import sagemaker_training as one; one.run({ARMED!r})"
    run = fresh.run("-c", code, cwd=tmp_path, PYTHONPATH=folder, SMD_AGENT_HOOK=hook)
    assert (run.stdout, run.stderr) == ("True\n", "")
