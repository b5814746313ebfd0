"""What `info` tells of scripts, of broken set-ups and of runs; and whose program a command's name is."""

from __future__ import annotations

import json
import os
import shutil
import sys
from pathlib import Path

import pytest

from smd_agent import cli
from smd_agent.config import env

# The estimator trains nothing: it starts another one.
EXAMPLES = [path for path in sorted((Path(__file__).parents[2] / "examples").glob("*.py")) if path.stem != "estimator"]
FRAMEWORKS = {"gluon": "mxnet", "keras": "tensorflow", "pytorch": "torch", "tape": "tensorflow", "xgboost": "xgboost"}
TRAINING = """
import numpy as np
import xgboost
data = xgboost.DMatrix(np.arange(40.0).reshape(20, 2), label=np.arange(20) % 2)
xgboost.train({"objective": "binary:logistic"}, data, 6, evals=[(data, "train")], verbose_eval=False)
"""


@pytest.fixture
def here(tmp_path, monkeypatch):
    """An empty folder, which is the current one, and an environment that says nothing of the agent."""
    for name in (*(variable.name for variable in env.VARIABLES), "PYTHONPATH", "KERAS_BACKEND"):
        # Set first, so that what is put there is taken away again.
        monkeypatch.setenv(name, "")
        monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def info(capsys, *words):
    """The exit code, and what is printed; all in this process, which starts interpreters only to try the doors."""
    code = cli.main(["info", *map(str, words)])
    captured = capsys.readouterr()
    assert captured.err == ""
    return code, captured.out


def info_json(capsys, *words):
    code, printed = info(capsys, "--json", *words)
    return code, json.loads(printed)


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_every_example(example, here, capsys):
    framework = FRAMEWORKS[example.stem.partition("_")[0]]
    imported = framework in sys.modules
    code, found = info_json(capsys, example)
    assert [one["framework"] for one in found["imports"]] == [framework]
    installed = {one["name"]: one["version"] for one in found["frameworks"]}
    assert code == (0 if installed[framework] else 1)
    assert any(f"{framework}, which {example.name}" in one for one in found["problems"]) != bool(installed[framework])
    assert set(found["patches"]) >= ({framework} if installed[framework] else set())
    assert found["starts"]["argv"][-1] == str(example)
    assert found["output"]["path"].startswith(str(here / "smd_runs" / example.stem))
    # It has made and run nothing.
    assert list(here.iterdir()) == []
    # None is imported to be looked at.
    assert (framework in sys.modules) == imported


def test_a_script_that_can_be_captured_is_said_so_in_the_first_line(here, capsys):
    (here / "train.py").write_text(TRAINING)
    code, printed = info(capsys, "--every", "20", "--patches", "train.py", "--every", "3")
    if "not installed" in printed.partition("xgboost")[2].partition("\n")[0]:
        pytest.skip("there is no XGBoost")
    assert code == 0
    assert printed.startswith("Ready: python -m smd_agent --every 20 train.py --every 3 would capture xgboost ")
    assert "xgboost.train, cv    always  the rounds of a training are saved by a callback\n" in printed
    rows = [line.split() for line in printed.splitlines()]
    assert ["save_interval", "20", "--every"] in rows
    assert all(len(line) < 200 for line in printed.splitlines())


HOOK = {
    "LocalPath": "out",
    "HookParameters": {"train.save_interval": 20, "eval.save_interval": 20, "save_intervall": 4},
    "CollectionConfigurations": [{"CollectionName": "relu", "CollectionParameters": {"include_regex": "relu_o"}}],
}


def test_values_say_where_they_come_from(here, capsys, monkeypatch):
    (here / "hook.json").write_text(json.dumps(HOOK))
    monkeypatch.setenv("SMDEBUG_CONFIG_FILE_PATH", "hook.json")
    monkeypatch.setenv("SMD_AGENT_STRICT", "1")
    code, found = info_json(capsys)
    values = {one["name"]: (one["value"], one["origin"]) for one in found["configuration"]["values"]}
    assert values["LocalPath"] == (str(here / "out"), "hook.json: LocalPath")
    assert values["save_interval (train, eval)"] == ("20", "hook.json: HookParameters.<mode>.save_interval")
    assert values["save_interval (predict, global)"][1] == "default"
    assert values["relu: include_regex"] == ("relu_o", "hook.json: CollectionConfigurations[relu].include_regex")
    assert values["dry_run"] == ("false", "default")
    assert {one["name"]: one["value"] for one in found["variables"]} == {
        "SMDEBUG_CONFIG_FILE_PATH": "hook.json",
        "SMD_AGENT_STRICT": "1",
    }
    assert found["configuration"]["source"] == "hook.json, named by SMDEBUG_CONFIG_FILE_PATH"
    # The key that nobody knows.
    assert code == 1
    assert found["problems"] == [
        "hook.json: the key HookParameters.save_intervall is unknown and ignored; did you mean save_interval?"
    ]
    (here / "train.py").write_text("import xgboost")
    _, found = info_json(capsys, "--every", "7", "--out", "there", "train.py")
    values = {one["name"]: (one["value"], one["origin"]) for one in found["configuration"]["values"]}
    assert values["save_interval"] == ("7", "--every")
    assert values["LocalPath"] == (str(here / "there"), "--out")
    assert values["relu: include_regex"][1] == "hook.json: CollectionConfigurations[relu].include_regex"


def first_problem(capsys, *words):
    code, printed = info(capsys, *words)
    assert code == 1
    lines = printed.splitlines()
    assert lines[0] in ("1 problem:", "2 problems:", "3 problems:")
    return lines[1]


def test_broken_set_ups_are_said_first(here, capsys, monkeypatch):
    (here / "plain.py").write_text("import math, json\n")
    (here / "train.py").write_text("import torch\n")
    (here / "broken.py").write_text("print 'of another Python'\n")
    (here / "bad.json").write_text('{"LocalPath": 3}')
    assert "plain.py imports no framework that is captured" in first_problem(capsys, "plain.py")
    assert "there is no file called trian.py" in first_problem(capsys, "trian.py")
    assert "there is no module called no_such" in first_problem(capsys, "-m", "no_such.part")
    assert "broken.py is no Python of this release at line 1" in first_problem(capsys, "broken.py")
    assert "bad.json: LocalPath is 3, allowed is" in first_problem(capsys, "--config", "bad.json", "plain.py")
    assert "no.json, which --config names, does not exist" in first_problem(capsys, "--config", "no.json", "plain.py")
    # Nobody can make a folder in a file, root neither.
    printed = info(capsys, "--out", "train.py/run", "train.py")[1]
    assert f"no run can be written into {here}/train.py/run: {here}/train.py is no folder" in printed
    monkeypatch.setenv("USE_SMDEBUG", "off")
    assert "everything is switched off: USE_SMDEBUG is off" in first_problem(capsys, "train.py")


def test_options_of_the_interpreter_that_keep_the_agent_out(installed, bare, volume, tmp_path):
    (tmp_path / "train.py").write_text("import xgboost\n")
    done = installed.run("-I", "-m", "smd_agent", "info", "--json", "train.py", cwd=tmp_path)
    found = json.loads(done.stdout)
    assert found["interpreter"]["flags"] == ["-I"]
    states = {one["name"]: one["state"] for one in found["doors"]}
    assert states["smd_agent.pth"] == "open"
    without_site = ["-S", "-c", "import sys; sys.path.append(sys.argv.pop(1)); from smd_agent.cli import main; main()"]
    done = bare.run(*without_site, str(volume), "info", "--json", "train.py", cwd=tmp_path)
    found = json.loads(done.stdout)
    # That all the rest seems to be missing is no mistake of its own.
    assert found["problems"] == ["the agent cannot start under python -S, which skips all start-up files"]
    done = bare.run("-m", "smd_agent", "info", cwd=tmp_path, PYTHONPATH=str(volume))
    rows = [line.split(maxsplit=2) for line in done.stdout.splitlines()]
    assert ["PYTHONPATH", "open", str(volume / "sitecustomize.py")] in rows
    # Another one comes first that runs no other.
    other = tmp_path / "other"
    other.mkdir()
    (other / "sitecustomize.py").write_text("")
    done = bare.run("-m", "smd_agent", "info", cwd=tmp_path, PYTHONPATH=f"{other}{os.pathsep}{volume}")
    assert f"  1. PYTHONPATH: {other / 'sitecustomize.py'} comes first, and runs no other one\n" in done.stdout
    # And a hook whose package is another one.
    package = installed.site_packages / "smd_agent"
    package.rename(tmp_path / "gone")
    package.mkdir()
    (package / "__init__.py").touch()
    try:
        done = installed.run("-m", "smd_agent", "info", cwd=tmp_path, PYTHONPATH=str(volume))
    finally:
        shutil.rmtree(package)
        (tmp_path / "gone").rename(package)
    assert "  1. smd_agent.pth: " in done.stdout
    assert "start failed (ModuleNotFoundError: No module named 'smd_agent.boot')" in done.stdout


def test_a_run_says_what_was_asked_for_and_never_came(installed, tmp_path):
    pytest.importorskip("xgboost")
    (tmp_path / "train.py").write_text(TRAINING)
    hook = {
        "LocalPath": "run",
        "HookParameters": {"save_interval": 2, "save_steps": "3,400", "include_collections": ["metric", "trees"]},
        "CollectionConfigurations": [
            {"CollectionName": "mine", "CollectionParameters": {"include_regex": "logloss, trian-logloss"}},
            {"CollectionName": "full_shap", "CollectionParameters": {"start_step": 1000, "save_steps": ""}},
        ],
    }
    (tmp_path / "hook.json").write_text(json.dumps(hook))
    trained = installed.run("train.py", cwd=tmp_path, SMDEBUG_CONFIG_FILE_PATH="hook.json")
    assert trained.returncode == 0, trained.stderr
    done = installed.run("-m", "smd_agent", "info", "run", "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["state"] == "finished"
    assert found["steps"] == [{"mode": "GLOBAL", "number": 4, "first": 0, "last": 4}]
    missing = {(one["what"], one["asked"]): one for one in found["never_came_up"]}
    assert {one["name"] for one in missing.values()} == {"metric", "mine", "full_shap", "GLOBAL"}
    assert missing["collection", "metric"]["nearest"][0] == "metrics"
    assert missing["include_regex", "trian-logloss"]["nearest"] == ["train-logloss"]
    assert missing["collection", "full_shap"]["why"] == "no step was due: GLOBAL from 1000 on, the last was 4"
    assert missing["steps", "400"]["why"] == "the last that was saved: 4"
    asked = {one["name"]: (one["asked"], one["tensors"] > 0) for one in found["collections"]}
    assert asked["trees"] == asked["mine"] == (True, True)
    assert asked["metrics"] == (False, True)
    assert asked["full_shap"] == (True, False)
    printed = installed.run("-m", "smd_agent", "info", "run", cwd=tmp_path).stdout
    assert printed.startswith("Never came up:\n")
    assert "  metric: it is not built in and has no include_regex\n    nearest: metrics" in printed
    # What is neither is said to be neither.
    (tmp_path / "empty").mkdir()
    done = installed.run("-m", "smd_agent", "info", "empty", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert "empty holds no run, and no __main__.py that could be started" in done.stderr


def test_a_command_wins_over_a_program_of_the_system_and_a_file_over_both(here, capsys, monkeypatch):
    programs = here / "bin"
    programs.mkdir()
    for name in ("diff", "watch", "info"):
        (programs / name).write_text("#!/bin/sh\necho program\n")
        (programs / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}{os.pathsep}{os.environ['PATH']}")
    started = []
    monkeypatch.setattr("smd_agent.cli.launched_program.become", lambda program, argv: started.append(program) or 0)
    # Ours: they look for the runs.
    assert cli.main(["diff", "one", "two"]) == 2
    assert "there is no run at one" in capsys.readouterr().err
    assert cli.main(["info"]) == 0
    assert started == []
    # Options of run before the name: neither ours nor the program.
    assert cli.main(["--every", "3", "diff", "one", "two"]) == 2
    assert "options of run stand before diff, which is a command" in capsys.readouterr().err
    # The program, where it is asked for.
    for words in (["--", "diff", "one"], ["run", "diff", "one"], ["--out", "x", "--", "diff", "one"]):
        assert cli.main(words) == 0
    assert started == [str(programs / "diff")] * 3
    # A file of that name comes first.
    (here / "diff").write_text("print('script')\n")
    assert cli.main(["diff", "one", "two"]) == 0
    assert cli.main(["--every", "3", "diff", "one"]) == 0
    assert started[3:] == [sys.executable] * 2
