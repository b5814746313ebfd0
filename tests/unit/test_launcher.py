"""The launcher's words: which are ours, which are the program's, and what ours make of a hook file."""

import json
import subprocess
import sys

import pytest

from smd_agent import cli
from smd_agent.cli import launched_program, run
from smd_agent.cli.errors import CommandError
from smd_agent.config import env
from smd_agent.config.hook_file import Source
from smd_agent.config.launcher_defaults import default_content
from smd_agent.config.load import load_settings
from smd_agent.core.modes import ModeKeys
from smd_agent.core.reduction_config import ReductionConfig
from smd_agent.core.save_config import SaveConfigMode
from smd_agent.errors import ConfigError


@pytest.mark.parametrize(
    "words, options, program",
    [
        (["t.py", "--every", "3"], {}, ["t.py", "--every", "3"]),
        (["--every", "3", "t.py", "--out", "x"], {"--every": "3"}, ["t.py", "--out", "x"]),
        (["--every=3", "--strict", "-m", "a.b", "-c"], {"--every": "3", "--strict": ""}, ["-m", "a.b", "-c"]),
        (["-c", "pass", "--", "-m"], {}, ["-c", "pass", "--", "-m"]),
        (["--", "t.py", "--"], {}, ["t.py", "--"]),
        (["--", "-m", "x"], {}, ["-m", "x"]),
        (["-", "a"], {}, ["-", "a"]),
        (["--save", "-x", "t.py"], {"--save": "-x"}, ["t.py"]),
        ([], {}, []),
    ],
)
def test_words_after_the_program_are_its_own(words, options, program):
    assert run.split(words) == (options, program)


@pytest.mark.parametrize("words", [["--evry", "3", "t.py"], ["-u", "t.py"], ["--every"], ["--strict=1", "t.py"]])
def test_wrong_option_before_the_program_is_one_line_and_exit_code_2(words, capsys):
    assert cli.main(words) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert len(captured.err.splitlines()) == 1


@pytest.mark.parametrize(
    "argv, own, expected",
    [
        (["python", "-m", "smd_agent", "t.py", "-m", "smd_agent"], 3, []),
        (["python", "-X", "dev", "-W", "error", "-m", "smd_agent", "t.py"], 1, ["-X", "dev", "-W", "error"]),
        (["python", "-um", "smd_agent", "t.py"], 1, ["-u"]),
        (["python", "-Imsmd_agent", "t.py"], 1, ["-I"]),
        (["python", "-msmd_agent"], 0, []),
        (["python", "-u", "/env/bin/smd-agent", "t.py"], 1, ["-u"]),
        (["python", "-m", "coverage", "run", "-m", "smd_agent", "t.py"], 1, ["-m", "coverage", "run"]),
    ],
)
def test_what_stood_before_us_is_kept(argv, own, expected):
    assert launched_program.interpreter_options(argv, own) == expected


def test_options_replace_what_the_hook_file_says():
    hook = {
        "S3OutputPath": "kept",
        "HookParameters": {"train.save_interval": 5, "save_steps": "1,2", "end_step": 9, "reductions": "min"},
        "CollectionConfigurations": [
            {"CollectionName": "weights", "CollectionParameters": {"save_interval": 2, "include_regex": "w"}},
            {"CollectionName": "biases"},
        ],
    }
    given = {"--every": "7", "--save": "weights, losses", "--reductions": "mean,std", "--out": "/x/y"}
    before = json.dumps(hook)
    assert run.overlay(hook, given) == {
        "S3OutputPath": "kept",
        "HookParameters": {"end_step": 9, "save_interval": 7, "reductions": "mean,std"},
        "CollectionConfigurations": [
            {"CollectionName": "weights", "CollectionParameters": {"include_regex": "w"}},
            {"CollectionName": "losses", "CollectionParameters": {}},
        ],
        "LocalPath": "/x/y",
    }
    assert json.dumps(hook) == before


def test_who_says_which_steps_or_wants_whole_tensors_gets_no_early_steps():
    assert run.overlay(default_content(), {})["HookParameters"]["save_early"]
    for given in ({"--every": "7"}, {"--raw": ""}, {"--raw": "", "--reductions": "mean"}):
        assert "save_early" not in run.overlay(default_content(), given)["HookParameters"]
    assert "save_last" not in run.overlay(default_content(), {"--every": "7"})["HookParameters"]
    assert run.overlay(default_content(), {"--raw": ""})["HookParameters"]["save_last"]
    assert "within_budget" not in run.overlay(default_content(), {"--every": "7"})["HookParameters"]
    assert run.overlay(default_content(), {"--reductions": "mean"})["HookParameters"]["save_early"]


@pytest.mark.parametrize("text, share", [("2", 0.02), ("0.5", 0.005), ("2%", 0.02), (" 100 % ", 1.0)])
def test_a_budget_is_in_per_cent(text, share):
    hook = run.overlay(default_content(), {"--budget": text})
    assert load_settings(Source("the options", text=json.dumps(hook))).budget == pytest.approx(share)


def test_the_usual_budget_is_one_per_cent():
    assert load_settings(Source("the options", text=json.dumps(default_content()))).budget == 0.01


@pytest.mark.parametrize("text", ["0", "-1", "101", "nan", "much", "", "%"])
def test_a_budget_that_is_none_is_refused(text):
    with pytest.raises(CommandError, match=r"option --budget is .*, allowed is a number above 0 and up to 100"):
        run.overlay({}, {"--budget": text})
    for value in (text, True, [1]):
        hook = {"HookParameters": {"budget": value}}
        with pytest.raises(ConfigError, match=r"HookParameters\.budget is .*, allowed is a number above 0"):
            load_settings(Source("the file", text=json.dumps(hook)))


@pytest.mark.parametrize(
    "option, value", [("--every", "0"), ("--every", "x"), ("--every", "-1"), ("--save", " ,"), ("--out", "")]
)
def test_wrong_value_of_an_option_names_option_and_value(option, value):
    with pytest.raises(CommandError) as caught:
        run.overlay({}, {option: value})
    assert caught.value.code == 2
    assert option in caught.value.message
    assert repr(value) in caught.value.message


@pytest.fixture
def no_variables(monkeypatch, tmp_path):
    """An environment that says nothing about us, put back afterwards, and an empty current folder."""
    for variable in env.VARIABLES:
        # Set first, so that what the launcher puts there is taken away again.
        monkeypatch.setenv(variable.name, "")
        monkeypatch.delenv(variable.name)
    monkeypatch.chdir(tmp_path)


def test_defaults_go_to_a_new_folder_each_time(no_variables, tmp_path):
    found = set()
    for _ in range(3):
        env.put(env.HOOK, None)
        run.configure({}, ["train.py"])
        hook = json.loads(env.hook_json())
        found.add(hook["LocalPath"])
    assert len(found) == 3
    assert all(path.startswith(f"{tmp_path}/smd_runs/train-") for path in found)
    steps = {"save_interval": 100, "save_steps": "0,1,2,3,5,10,20,50"}
    assert hook["HookParameters"] == {
        **{f"{mode}.{key}": value for mode in ("train", "eval", "predict") for key, value in steps.items()},
        "save_early": True,
        "save_last": True,
        "within_budget": True,
        "reductions": "statistics",
        "save_shape": True,
        "save_raw_up_to": 64,
    }
    assert [entry["CollectionName"] for entry in hook["CollectionConfigurations"]] == ["all"]


def test_the_default_steps_are_many_at_first_and_every_hundredth_later(no_variables):
    run.configure({}, ["train.py"])
    settings = load_settings(Source("the options", text=env.hook_json()), default_save_interval=7)
    for mode in (ModeKeys.TRAIN, ModeKeys.EVAL, ModeKeys.PREDICT):
        rule = settings.save_config.get_save_config(mode)
        due = [step for step in range(301) if rule.should_save_step(step)]
        assert due == [0, 1, 2, 3, 5, 10, 20, 50, 100, 200, 300]
    assert settings.save_early
    assert settings.save_last
    assert settings.within_budget
    # A boosting round is dearer than a step: those are the framework's own.
    assert settings.save_config.get_save_config(ModeKeys.GLOBAL) == SaveConfigMode(save_interval=7)
    assert settings.reduction_config == ReductionConfig(["statistics"], save_shape=True, save_raw_up_to=64)


FORM = {"reductions": "statistics", "save_shape": True, "save_raw_up_to": 64}


@pytest.mark.parametrize(
    "options, left",
    [
        ({"--every": "7"}, {"save_interval": 7, **FORM}),
        ({"--every": "7", "--raw": ""}, {"save_interval": 7}),
        ({"--every": "7", "--reductions": "l2, max"}, {"save_interval": 7, "reductions": "l2,max"}),
        (
            {"--every": "7", "--raw": "", "--reductions": "l2"},
            {"save_interval": 7, "reductions": "l2", "save_raw_tensor": True},
        ),
    ],
    ids=str,
)
def test_the_defaults_give_way_to_the_options(no_variables, options, left):
    run.configure(options, ["train.py"])
    assert json.loads(env.hook_json())["HookParameters"] == left


def test_raw_takes_the_reductions_of_a_hook_file_away(no_variables, tmp_path):
    weights = {"CollectionName": "weights", "CollectionParameters": {"reductions": "max", "save_interval": 3}}
    hook = {"HookParameters": {"reductions": "mean", "save_raw_up_to": 5}, "CollectionConfigurations": [weights]}
    (tmp_path / "hook.json").write_text(json.dumps(hook))
    assert run.split(["--raw", "--config", "hook.json", "a.py"])[0] == {"--raw": "", "--config": "hook.json"}
    run.configure({"--raw": "", "--config": "hook.json"}, ["train.py"])
    assert json.loads(env.hook_json()) == {
        "HookParameters": {},
        "CollectionConfigurations": [{"CollectionName": "weights", "CollectionParameters": {"save_interval": 3}}],
    }


def test_config_alone_is_handed_on_as_a_file(no_variables, tmp_path):
    (tmp_path / "hook.json").write_text('{"LocalPath": "x"}')
    env.put(env.HOOK, "{}")
    run.configure({"--config": "hook.json"}, ["train.py"])
    assert env.hook_json() is None
    assert env.config_path() == str(tmp_path / "hook.json")


@pytest.mark.parametrize(
    "options, reason",
    [
        ({"--config": "missing.json"}, "missing.json, which --config names, does not exist"),
        ({"--reductions": "mean,mode"}, "mode"),
    ],
)
def test_wrong_configuration_ends_the_launch_before_anything_starts(options, reason, no_variables, tmp_path, capsys):
    words = [word for pair in options.items() for word in pair]
    assert cli.main([*words, "-c", "raise SystemExit(77)"]) == 2
    said = capsys.readouterr().err
    assert reason in said
    assert len(said.splitlines()) == 1
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "wanted, meant",
    [("gradiants", "gradients"), ("losses,weigths", "weights"), ("loss", "losses"), ("Gradient", "gradients")],
)
def test_a_collection_that_is_nearly_a_known_one_is_not_asked_for(wanted, meant, no_variables, capsys):
    assert cli.main(["--save", wanted, "-c", "raise SystemExit(77)"]) == 2
    said = capsys.readouterr().err
    assert said.endswith(f"; did you mean {meant}?\n")
    assert len(said.splitlines()) == 1


def test_a_collection_of_the_program_or_of_the_hook_file_may_be_asked_for(no_variables, tmp_path):
    run.configure({"--save": "my_weights,relu"}, ["train.py"])
    listed = [{"CollectionName": "gradiants", "CollectionParameters": {"include_regex": "grad"}}]
    (tmp_path / "hook.json").write_text(json.dumps({"LocalPath": "x", "CollectionConfigurations": listed}))
    run.configure({"--config": "hook.json", "--save": "gradiants"}, ["train.py"])
    assert json.loads(env.hook_json())["CollectionConfigurations"] == listed


@pytest.mark.parametrize("by", ["--out", "--config"])
def test_a_folder_that_cannot_be_made_is_said_before_the_program_starts(by, no_variables, tmp_path, capsys):
    (tmp_path / "file").write_text("")
    (tmp_path / "hook.json").write_text('{"LocalPath": "file/run"}')
    assert cli.main([by, {"--out": "file/run", "--config": "hook.json"}[by], "-c", "raise SystemExit(77)"]) == 1
    said = capsys.readouterr().err
    folder = tmp_path / "file"
    assert said == (
        f"smd_agent: no run can be written into {folder}/run: {folder} is no folder; choose a folder by --out\n"
    )


@pytest.mark.parametrize("word, meant", [("chekc", "check"), ("repotr", "report"), ("list", ""), ("sohw", "show")])
def test_a_mistyped_command_is_answered_with_the_one_that_was_meant(word, meant, no_variables, capsys):
    assert cli.main([word, "run"]) == 127
    suggestion = f"; did you mean {meant}?" if meant else ""
    assert capsys.readouterr().err == f"smd_agent: there is no script or command called {word}{suggestion}\n"


def test_command_that_does_not_exist_is_exit_code_127(no_variables, tmp_path, capsys):
    (tmp_path / "train.py").write_text("")
    assert cli.main(["train"]) == 127
    assert "did you mean train.py?" in capsys.readouterr().err


def test_binary_and_shell_script_are_executed_as_they_are(tmp_path):
    tool = tmp_path / "tool"
    tool.write_text("#!/bin/sh\n")
    tool.chmod(0o755)
    assert launched_program.resolve([str(tool), "a"]) == (str(tool), [str(tool), "a"])


@pytest.mark.parametrize(
    "text, mode", [("#!/usr/bin/env python3\n", 0o755), ("#!/bin/sh\n", 0o644), ("x = 1\n", 0o755)]
)
def test_any_other_file_is_a_script_of_this_interpreter(text, mode, tmp_path):
    tool = tmp_path / "tool"
    tool.write_text(text)
    tool.chmod(mode)
    program, argv = launched_program.resolve([str(tool), "a"])
    assert (program, argv[-2:]) == (launched_program.sys.executable, [str(tool), "a"])


def test_words_named_like_commands_are_scripts_when_they_exist(no_variables, tmp_path, monkeypatch):
    launched = []
    monkeypatch.setattr(run, "launch", lambda words, commands: launched.append(words) or 0)
    (tmp_path / "ls").write_text("")
    assert cli.main(["ls", "x"]) == 0
    assert cli.main(["run", "ls"]) == 0
    assert launched == [["ls", "x"], ["ls"]]


def test_commands_of_ours_come_before_programs_of_the_system(no_variables, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(run, "launch", lambda words, commands: pytest.fail(f"{words} were launched"))
    (tmp_path / "bin").mkdir()
    for name in ("diff", "show", "check", "ls"):
        tool = tmp_path / "bin" / name
        tool.write_text("#!/bin/sh\nexit 77\n")
        tool.chmod(0o755)
        monkeypatch.setenv("PATH", str(tmp_path / "bin"))
        assert launched_program.resolve([name])[0] == str(tool)
        words = [name, str(tmp_path / "a"), str(tmp_path / "b")][: 3 if name == "diff" else 2]
        assert cli.main(words) == 2
        assert "there is no run at" in capsys.readouterr().err


def test_a_script_called_diff_is_a_script(tmp_path):
    (tmp_path / "diff").write_text("import sys; print('the script', sys.argv)")
    command = [sys.executable, "-m", "smd_agent", "diff", "a", "b"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout) == (0, "the script ['diff', 'a', 'b']\n"), done.stderr
    (tmp_path / "diff").unlink()
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert "there is no run at a" in done.stderr


def test_help_of_the_launcher_names_every_option(capsys):
    assert cli.main(["run", "--help"]) == 0
    text = capsys.readouterr().out
    assert all(option in text for option in (*run.VALUE_OPTIONS, "--strict"))
    assert cli.main(["--help"]) == 0
    overview = capsys.readouterr().out
    assert all(name in overview for name in cli.COMMANDS)
    assert cli.main([]) == 2


@pytest.mark.parametrize("old, new", [(None, "{0}"), ("", "{0}"), (":a:", "{0}::a:"), ("{0}:a", "{0}:a")])
def test_pythonpath_of_the_user_is_kept_to_the_letter(old, new, monkeypatch, tmp_path):
    (tmp_path / "sitecustomize.py").write_text("")
    monkeypatch.setenv("PYTHONPATH", "" if old is None else old.format(tmp_path))
    if old is None:
        monkeypatch.delenv("PYTHONPATH")
    # An empty part stands for the current folder, so none may appear or vanish.
    launched_program.prepend_pythonpath(str(tmp_path))
    assert env.get("PYTHONPATH") == new.format(tmp_path)


def test_a_mistyped_option_is_answered_with_the_one_that_was_meant():
    with pytest.raises(CommandError, match=r"unknown option --evry before the script; did you mean --every\?"):
        run.split(["--evry", "5", "train.py"])
    with pytest.raises(CommandError, match=r"unknown option --xyz before the script; see python -m smd_agent run"):
        run.split(["--xyz", "train.py"])
