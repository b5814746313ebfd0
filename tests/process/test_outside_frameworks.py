"""A framework that another package adds by an entry point: it is captured, verified and told of as ours are."""

from __future__ import annotations

import json
import shutil

import numpy as np
import pytest
from harness.runner import SUBJECTS

from smd_agent import create_trial

ADDS = "[console_scripts]\nother = other:main\n\n[smd_agent.frameworks]\n"
TOYTRAIN = f"{ADDS}toytrain = smd_agent_toytrain.patch\n"

QUIET = {"SMD_AGENT_VERDICT_SECONDS": "0"}


@pytest.fixture
def packages(tmp_path):
    """A folder in which packages are installed: toytrain, and what adds it."""
    folder = tmp_path / "packages"
    shutil.copytree(SUBJECTS / "outside", folder)
    install(folder, "smd_agent_toytrain", TOYTRAIN)
    return folder


def install(folder, name, entry_points):
    about = folder / f"{name}-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text(entry_points)


@pytest.fixture
def train(installed, packages, tmp_path):
    """Run the unedited script, or the agent's command on it."""

    def run(*words, text=None, **variables):
        script = tmp_path / "train.py"
        script.write_text(text or (SUBJECTS / "outside" / "train.py").read_text())
        return installed.run(*words, str(script), cwd=tmp_path, PYTHONPATH=str(packages), **QUIET, **variables)

    return run


def hook_for(folder, **parameters):
    parameters = {"save_interval": 5, "save_all": True, **parameters}
    return json.dumps({"LocalPath": str(folder), "HookParameters": parameters})


def said(result):
    assert result.returncode == 0, result.stderr
    usual = tuple(f"smd_agent: {word} " for word in ("no", "saving", "saved"))
    return [line for line in result.stderr.splitlines() if not line.startswith(usual)]


def test_losses_and_weights_of_an_unedited_script_are_saved(train, tmp_path):
    plain = train()
    result = train(SMD_AGENT_HOOK=hook_for(tmp_path / "run"))
    assert (result.stdout, said(result)) == (plain.stdout, [])
    computed = json.loads(plain.stdout)
    trial = create_trial(str(tmp_path / "run"), timeout=0)
    assert trial.steps() == [0, 5, 10]
    assert trial.tensor_names(collection="losses") == ["loss"]
    assert trial.tensor_names(collection="weights") == ["weight"]
    for step in trial.steps():
        assert trial.tensor("loss").value(step) == computed["losses"][step]
        np.testing.assert_array_equal(trial.tensor("weight").value(step), computed["weights"][step])


def test_one_that_was_imported_before_the_agent_started_is_captured(train, tmp_path):
    text = "import toytrain\nfrom smd_agent import boot\nboot.start()\n"
    text += (SUBJECTS / "outside" / "train.py").read_text()
    hook = json.dumps(hook_for(tmp_path / "run"))
    done = train("-c", f"import os, sys; os.environ['SMD_AGENT_HOOK'] = {hook}; exec({text!r})", text="")
    assert said(done) == []
    assert create_trial(str(tmp_path / "run"), timeout=0).steps() == [0, 5, 10]


def test_verify_observes_it(train):
    told = json.loads(train("-m", "smd_agent", "verify", "--json").stdout)
    assert (told["verdict"], told["steps"], told["versions"]["Toytrain"]) == ("equal", 12, "1.2")


def test_info_tells_of_it(train):
    told = json.loads(train("-m", "smd_agent", "info", "--json").stdout)
    (framework,) = (one for one in told["frameworks"] if one["name"] == "toytrain")
    assert (framework["supported"], framework["captured"]) == ("from 1.0", True)
    assert told["patches"]["toytrain"][0]["functions"] == ["toytrain.Trainer.step"]


BROKEN = {
    "no module": ("other = is_missing.patch\n", "ModuleNotFoundError: No module named 'is_missing'"),
    "no apply": ("other = other.patch\n", "AttributeError: module 'other.patch' has no attribute 'apply'"),
    "no name": ("an other = other.patch\n", "'an other' = 'other.patch' is left out: it names no module"),
    "no value": ("other\n", "'other' = '' is left out: it names no module"),
    "ours": ("torch = other.patch\n", "torch is left out: it is captured by smd_agent.patches.pytorch"),
    "twice": ("toytrain = zz\n", "toytrain is left out: it is captured by "),
}


@pytest.mark.parametrize("case", BROKEN)
def test_one_that_is_broken_costs_itself_and_one_line(case, train, packages, tmp_path):
    entry, reason = BROKEN[case]
    install(packages, "zz_other", ADDS + entry)
    (packages / "other").mkdir()
    (packages / "other" / "__init__.py").touch()
    (packages / "other" / "patch.py").touch()
    text = "import other\n" + (SUBJECTS / "outside" / "train.py").read_text()
    plain = train(text=text)
    result = train(text=text, SMD_AGENT_HOOK=hook_for(tmp_path / "run"))
    (line,) = said(result)
    assert reason in line
    assert result.stdout == plain.stdout
    # Of two that add one framework, either may be the first on the path.
    if case != "twice" or "smd_agent_toytrain" in line.partition(" by ")[2]:
        assert create_trial(str(tmp_path / "run"), timeout=0).steps() == [0, 5, 10]
    info = train("-m", "smd_agent", "info", "--json")
    assert "toytrain" in json.loads(info.stdout)["patches"] or case == "twice"


def test_a_failure_in_its_functions_is_not_the_programs(train, packages, tmp_path):
    patch = packages / "smd_agent_toytrain" / "patch.py"
    broken = (
        patch.read_text().replace('    @WEIGHTS.fence("saving weights")\n', "").replace("[trainer.model", "[trainer.no")
    )
    patch.write_text(broken)
    plain = train()
    result = train(SMD_AGENT_HOOK=hook_for(tmp_path / "run"))
    lines = said(result)
    assert lines
    assert any("'Trainer' object has no attribute 'no'" in line for line in lines)
    assert result.stdout == plain.stdout


def test_what_the_framework_itself_raises_is_the_programs(train, tmp_path):
    text = "import toytrain\ntoytrain.Trainer(toytrain.Linear(2)).step(1, 2)\n"
    plain = train(text=text)
    result = train(text=text, SMD_AGENT_HOOK=hook_for(tmp_path / "run"))
    assert plain.returncode == result.returncode == 1
    assert [line for line in result.stderr.splitlines() if not line.startswith("smd_agent: ")] == (
        plain.stderr.splitlines()
    )


def test_an_interpreter_that_is_not_armed_reads_nothing(train):
    assert "smd_agent.patches.other_packages" not in train(text="import sys, toytrain\nprint([*sys.modules])").stdout


@pytest.mark.parametrize("imported, is_read", [("json", False), ("toytrain", True)])
def test_entry_points_are_read_before_the_first_import_that_is_no_part_of_python(imported, is_read, train, tmp_path):
    text = f"import sys, {imported}\nprint('smd_agent.patches.other_packages' in sys.modules)"
    assert train(text=text, SMD_AGENT_HOOK=hook_for(tmp_path / "run")).stdout == f"{is_read}\n"
