"""All that smdebug 1.0.34 has for saving a run is here: each name, argument and default, by its code and its documents.

``harness.old_api`` says where the facts are. Left out is what frameworks call, and the profiler.
"""

from __future__ import annotations

import importlib
import json
import os
import subprocess
from pathlib import Path

import pytest
from harness.hook_files import hook, one_collection
from harness.old_api import DOCUMENTED, OLD, check, check_code, check_documents

from smd_agent.config import env
from smd_agent.core.collection import Collection
from smd_agent.core.modes import ModeKeys
from smd_agent.core.reduction_config import ReductionConfig
from smd_agent.core.save_config import SaveConfig, SaveConfigMode

HERE = Path(__file__).parent
OLD_PYTHON = os.environ.get("SMDEBUG_PYTHON", "")
IMPORTED_AS = {"pytorch": "torch", "tensorflow": "tensorflow", "xgboost": "xgboost"}
# Such as a hook file has for them.
VALUES = {"save_interval": "7", "save_steps": "3,4", "start_step": "2", "end_step": "9", "include_regex": "relu"}
VALUES |= {"reductions": "min", "include_workers": "all"}


@pytest.fixture(params=IMPORTED_AS)
def package(request):
    pytest.importorskip(IMPORTED_AS[request.param])
    return request.param, importlib.import_module(f"smd_agent.{request.param}")


def test_what_the_code_has(package):
    assert check_code(*package) > 30


def test_what_the_documents_have(package):
    assert check_documents(*package) > 8


def test_whether_a_hook_saves_what_is_saved_unasked(package, tmp_path):
    framework, module = package
    make = module.KerasHook if framework == "tensorflow" else module.Hook
    folder = str(tmp_path / "run")
    assert make(folder).has_default_hook_configuration()
    assert make(folder, save_config=SaveConfig(save_interval=3)).has_default_hook_configuration()
    assert make(folder, include_collections=[make.default_saved[0]]).has_default_hook_configuration()
    for asked in ({"include_collections": ["all"]}, {"save_all": True}, {"include_regex": "relu"}):
        assert not make(folder, **asked).has_default_hook_configuration()


def test_configurations():
    check(SaveConfig, DOCUMENTED["save_config"])
    check(SaveConfigMode, DOCUMENTED["save_config_mode"])
    check(ReductionConfig, DOCUMENTED["reduction_config"])
    reductions, norms = DOCUMENTED["reductions"], DOCUMENTED["norms"]
    config = ReductionConfig(reductions, reductions, norms, norms, True)
    assert len(config.ops) == 2 * (len(reductions) + len(norms))
    assert len(ReductionConfig.from_tokens(DOCUMENTED["reductions_in_a_hook_file"]).ops) == len(config.ops)


@pytest.mark.parametrize("arguments, steps", DOCUMENTED["saved_steps"], ids=str)
def test_when_a_step_is_saved(arguments, steps):
    found = SaveConfig(**arguments)
    assert [
        step for step in range(steps[-1] + 1 if steps else 1000) if found.should_save_step(ModeKeys.TRAIN, step)
    ] == steps


def test_a_rule_for_each_mode():
    rule = SaveConfig(mode_save_configs={ModeKeys.TRAIN: SaveConfigMode(save_interval=1)})
    assert rule.get_save_config(ModeKeys.TRAIN).save_interval == 1


@pytest.mark.parametrize("name", DOCUMENTED["hook_parameters"])
def test_parameters_of_the_hook(name):
    last = name.rpartition(".")[2]
    found = hook(**{name: VALUES.get(last, True)})
    assert found.warnings == ()
    assert found != hook() or last == "save_raw_tensor"


@pytest.mark.parametrize("name", DOCUMENTED["collection_parameters"])
def test_parameters_of_a_collection(name):
    last = name.rpartition(".")[2]
    found = one_collection({name: VALUES.get(last, False)})
    assert found != one_collection({}) or last == "save_raw_tensor"


def test_environment_variables():
    known = {variable.name: variable.default for variable in env.VARIABLES}
    asked = DOCUMENTED["environment_variables"]
    assert {name: known.get(name) for name in asked} == asked


def test_what_was_published_otherwise():
    assert len(DOCUMENTED["published_otherwise"]) > 9
    with pytest.raises(AttributeError):
        Collection("metrics").save_config.end_step = 0


@pytest.mark.skipif(not OLD_PYTHON, reason="SMDEBUG_PYTHON names no interpreter with the old smdebug")
@pytest.mark.parametrize("framework", ["pytorch", "xgboost"])
def test_the_facts_are_those_of_smdebug(framework):
    environment = {**os.environ, "SMDEBUG_LOG_LEVEL": "off"}
    command = [OLD_PYTHON, "-W", "ignore", HERE / "writing_api.py", framework]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=True, timeout=120)
    assert (
        json.loads(done.stdout[done.stdout.index("\n{") :] if done.stdout[0] != "{" else done.stdout) == OLD[framework]
    )


def test_a_missing_argument_is_noticed():
    with pytest.raises((AssertionError, KeyError)):
        check(Collection, DOCUMENTED["collection"].replace("save_histogram", "other"))
    with pytest.raises(AssertionError):
        check(Collection, DOCUMENTED["collection"].replace("save_histogram=True", "save_histogram=False"))
