"""The capture of a framework that was put in place in part only."""

import importlib
import types

import pytest

from smd_agent import session
from smd_agent.framework.built_in_collections import built_in_collections
from smd_agent.framework.hook import FrameworkHook
from smd_agent.framework.whole_or_off import whole_or_off
from smd_agent.patches import FRAMEWORKS


@pytest.fixture(autouse=True)
def fresh():
    """No hook, and nothing switched off."""
    session.forget()
    yield
    session.forget()


def fails(*args, **kwargs):
    raise OSError("no room")


KERAS = types.SimpleNamespace(__name__="keras", __version__="2.15", backend=None)
# What the first part of each patch calls, and the framework that is not captured then.
PATCHES = {
    "torch": ("wanted_settings", "pytorch"),
    "xgboost": ("boosting.capture", "xgboost"),
    "tensorflow": ("wanted_settings", "tensorflow"),
    "mxnet": ("wanted_settings", "mxnet"),
}


@pytest.mark.parametrize("name", PATCHES)
def test_a_framework_whose_patch_fails_is_not_captured_and_others_are(name, monkeypatch):
    module = importlib.import_module(FRAMEWORKS[name])
    part, framework = PATCHES[name]
    monkeypatch.setattr(f"{module.__name__}.{part}", fails)
    with pytest.raises(OSError, match="no room"):
        module.apply(KERAS)
    assert session.is_off(framework)
    assert not any(session.is_off(other) for _, other in PATCHES.values() if other != framework)


@pytest.mark.parametrize("name, framework", [("tensorflow", "tensorflow"), ("pytorch", "pytorch")])
def test_a_keras_that_is_watched_in_part_is_not_captured(name, framework, monkeypatch):
    module = importlib.import_module(f"smd_agent.patches.{name}")
    monkeypatch.setattr(module, "_sources" if name == "tensorflow" else "_applied", types.SimpleNamespace(__iter__=1))
    with pytest.raises(TypeError, match="not iterable"):
        module.watch_keras(KERAS)
    assert session.is_off(framework)


def test_all_patches_are_tried_here():
    assert {*PATCHES} == {*FRAMEWORKS} - {"keras", "tf_keras"}


class Hook(FrameworkHook):
    """One whose framework is "framework", the folder of its base."""

    built_in = built_in_collections(losses="loss")


def test_a_hook_that_the_script_makes_afterwards_saves_nothing(tmp_path):
    with pytest.raises(OSError, match="no room"):
        whole_or_off("framework")(fails)()
    hook = Hook(str(tmp_path / "run"))
    session.make_current(hook)
    assert hook.recorder.output.off


def test_a_hook_of_another_framework_saves(tmp_path):
    with pytest.raises(OSError, match="no room"):
        whole_or_off("torch")(fails)()
    hook = Hook(str(tmp_path / "run"))
    session.make_current(hook)
    assert not hook.recorder.output.off


@pytest.mark.parametrize("part", ["env.strict", "_end_with_child_process"])
def test_a_hook_that_a_failure_has_left_half_made_is_not_the_one_of_the_process(part, tmp_path, monkeypatch):
    monkeypatch.setattr(session._session, "prepared", False)
    # The process has been prepared already.
    monkeypatch.setattr("smd_agent.session.atexit", types.SimpleNamespace(register=id))
    monkeypatch.delattr("os.register_at_fork")
    with monkeypatch.context() as failing:
        failing.setattr(f"smd_agent.session.{part}", fails)
        with pytest.raises(OSError, match="no room"):
            Hook(str(tmp_path / "run"))
    assert session.current() is None
    hook = Hook(str(tmp_path / "run"))
    session.make_current(hook)
    assert session.current() is hook
