"""What hooks are made with."""

from __future__ import annotations

import inspect

import pytest

from smd_agent import session
from smd_agent.framework.boosting.hook import BoostingHook
from smd_agent.framework.hook import FrameworkHook


def test_a_hook_of_boosted_trainings_takes_first_what_every_hook_takes():
    every, boosting = (by_place(hook) for hook in (FrameworkHook, BoostingHook))
    assert boosting[0][: len(every[0])] == every[0]
    assert boosting[1] == every[1]


@pytest.mark.parametrize(
    "given, folder",
    [
        ({}, None),
        ({"export_tensorboard": True}, "run/tensorboard"),
        ({"tensorboard_dir": "boards"}, "boards"),
        ({"export_tensorboard": True, "tensorboard_dir": "boards"}, "boards"),
    ],
    ids=str,
)
def test_the_folder_for_tensorboard(tmp_path, monkeypatch, given, folder):
    monkeypatch.chdir(tmp_path)
    hook = FrameworkHook("run", **given)
    session.forget()
    assert hook.tensorboard_dir == (None if folder is None else str(tmp_path / folder))


def test_in_a_training_job_the_folder_for_tensorboard_is_the_jobs(tmp_path, monkeypatch):
    file = tmp_path / "board.json"
    monkeypatch.setenv("TRAINING_JOB_NAME", "job")
    monkeypatch.setenv("TENSORBOARD_CONFIG_FILE_PATH", str(file))
    hook = FrameworkHook(str(tmp_path / "run"), tensorboard_dir="boards")
    session.forget()
    assert hook.tensorboard_dir is None
    file.write_text('{"LocalPath": "/tmp/of_job"}')
    hook = FrameworkHook(str(tmp_path / "run"))
    session.forget()
    assert hook.tensorboard_dir == "/tmp/of_job"


@pytest.mark.parametrize(
    "given, default",
    [
        ({}, True),
        ({"save_config": None}, True),
        ({"include_collections": ["labels"]}, False),
        ({"save_all": True}, False),
    ],
    ids=str,
)
def test_whether_only_what_hooks_save_by_themselves_is_saved(tmp_path, given, default):
    hook = BoostingHook(str(tmp_path / "run"), **given)
    session.forget()
    assert hook.has_default_hook_configuration() is default


def test_a_hook_knows_the_name_of_its_worker(tmp_path):
    class Third(FrameworkHook):
        def worker(self):
            return 2, 3

    names = [kind(str(tmp_path / "run"))._get_worker_name() for kind in (FrameworkHook, Third)]
    session.forget()
    assert names == ["worker_0", "worker_2"]


def by_place(hook):
    """The parameters that may be given by place, and those that have to be named."""
    parameters = list(inspect.signature(hook).parameters.values())
    named = [parameter for parameter in parameters if parameter.kind is parameter.KEYWORD_ONLY]
    return [parameter for parameter in parameters if parameter not in named], named


def test_a_hook_says_what_it_was_made_with(tmp_path):
    hook = FrameworkHook(str(tmp_path / "a"), dry_run=True, include_regex=["relu"], save_all=True)
    assert (hook.dry_run, hook.include_regex, hook.save_all) == (True, ["relu"], True)
    hook = FrameworkHook(str(tmp_path / "b"))
    assert (hook.dry_run, hook.include_regex, hook.save_all) == (False, None, False)
    assert hook.last_saved_step is None
    hook.save_scalar("x", 1)
    assert hook.last_saved_step is None
    hook.close()
    assert hook.last_saved_step == 0
    session.forget()
