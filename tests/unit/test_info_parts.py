"""Parts of `info` that need no process: words for steps and forms, nearest names, releases, a script's imports."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from smd_agent.cli import entry_points, situation
from smd_agent.cli.info import _together
from smd_agent.cli.request_report import form_text, literals, nearest_names, rule_text
from smd_agent.cli.script_imports import look_at
from smd_agent.core.reduction_config import ReductionConfig
from smd_agent.core.save_config import SaveConfigMode
from smd_agent.patches import FRAMEWORKS
from smd_agent.patches.declared import DECLARED, Range, declared_for


@pytest.mark.parametrize(
    "rule, text",
    [
        ({}, "every 500"),
        ({"save_interval": 1}, "every step"),
        ({"save_interval": 100, "save_steps": [0, 1, 2]}, "every 100 and 0,1,2"),
        ({"save_interval": 10, "start_step": 20, "end_step": 41}, "every 10 from 20 to 40"),
        ({"end_step": 0}, "never"),
        ({"end_step": 0, "save_steps": [*range(9)]}, "0,1,2,3,4,5,6,7,..."),
        ({"start_step": 7, "end_step": 7}, "never"),
    ],
)
def test_steps_in_words(rule, text):
    assert rule_text(SaveConfigMode(**rule)) == text


def test_forms_in_words():
    assert form_text(None) == form_text(ReductionConfig(save_raw_tensor=True)) == "whole"
    assert form_text(ReductionConfig(save_shape=True)) == "shapes"
    assert form_text(ReductionConfig(["mean"])) == "mean"
    assert form_text(ReductionConfig(["statistics"], save_raw_up_to=64)) == "statistics, whole up to 64"
    assert form_text(ReductionConfig(["mean"], save_raw_tensor=True)) == "whole and mean"


NAMES = ["Net_conv1.weight", "Net_conv2.weight", "Net_fc.bias", "gradient/Net_fc.bias", "Net_relu_output_0", "CELoss"]


@pytest.mark.parametrize(
    "pattern, nearest",
    [
        (r"^Net_conv3\.weight$", ("Net_conv1.weight", "Net_conv2.weight")),
        ("relu_outptu", ("Net_relu_output_0",)),
        (r".*fc\d?\.biass", ("Net_fc.bias", "gradient/Net_fc.bias")),
        ("celoss_0", ("CELoss",)),
        ("nothing_like_it", ()),
        ("attention|conv9", ("Net_conv1.weight", "Net_conv2.weight")),
        (".*", ()),
    ],
)
def test_nearest_names(pattern, nearest):
    assert nearest_names(pattern, NAMES)[: len(nearest) or None] == nearest


def test_many_long_names_are_looked_at_in_bounded_time():
    names = (f"{'layer.' * 1000}{number}" for number in range(10**9))
    assert nearest_names("x" * 10**5, names) == ()


def test_plain_texts_of_a_regular_expression():
    assert literals(r"^(?!gradient)Net\.fc[0-9]+\.(weight|bias)$") == ["net.fc.weight", "bias"]
    assert literals(r"(?P<n>a.b){2,3}.*\d\|c") == ["a.b|c"]
    assert literals("^$") == []


def test_releases():
    assert Range("2.1").holds("2.13.0+cpu")
    assert not Range("2.1").holds("2.0.1")
    assert not Range("1.8", "1.9").holds("2.0.0b1")
    assert Range("1.8", "1.9").holds("1.9.1")
    assert Range("2.13").holds("2.13rc1")
    assert [str(Range("2.1")), str(Range("1.8", "1.9")), str(Range())] == ["from 2.1", "1.8 to 1.9", "all"]


def test_each_framework_has_its_declarations():
    assert DECLARED.keys() == FRAMEWORKS.keys()
    assert all(declared_for(name, "3.0") for name in FRAMEWORKS)
    assert all(Path(framework.observer).is_file() for framework in DECLARED.values())
    assert all(name in DECLARED for framework in DECLARED.values() for name in framework.brings)
    assert declared_for("keras", "2.15.0") == declared_for("tf_keras", "2.21") == DECLARED["tf_keras"].replaced
    assert declared_for("keras", "3.1", "torch") == DECLARED["keras"].backends["torch"]
    assert declared_for("keras", "3.1", "jax") == DECLARED["keras"].replaced


def test_functions_are_named_together():
    assert _together(["torch.autograd.backward", "torch.autograd.grad"]) == "torch.autograd.backward, grad"
    assert _together(["torch.compile", "torch.nn.Module.compile"]) == "torch.compile, nn.Module.compile"


def found(*target):
    look = look_at([*map(str, target)])
    return {one.framework: (one.place, one.by) for one in look.imports}


def test_imports_are_found_where_they_are(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "parts" / "deep").mkdir(parents=True)
    (tmp_path / "parts" / "__init__.py").write_text("from . import net\n")
    (tmp_path / "parts" / "__main__.py").write_text("from parts.deep.data import load\n")
    (tmp_path / "parts" / "deep" / "data.py").write_text("def load():\n    import xgboost as xgb\n")
    (tmp_path / "train.py").write_text(
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import tensorflow\nelse:\n    import json\n"
        "from parts.deep import data\n"
        "def main():\n    from torch.nn import Linear\n    importlib.import_module('mxnet.gluon')\n"
    )
    assert found("train.py") == {
        "torch": ("train.py:8", "torch"),
        "mxnet": ("train.py:9", "mxnet"),
        "xgboost": ("parts/deep/data.py:2", "xgboost"),
    }
    assert found("-m", "parts") == found("-m", "parts.__main__") == {"xgboost": ("parts/deep/data.py:2", "xgboost")}
    (tmp_path / "parts" / "__main__.py").write_text("from deep import data\n")
    assert found("parts") == {"xgboost": ("deep/data.py:2", "xgboost")}
    assert found("-c", "import lightning") == {"torch": ("the code:1", "lightning")}
    assert found("torchrun", "--nproc", "2", "train.py").keys() == {"torch", "mxnet", "xgboost"}
    # Modules that import each other, and files that are no text.
    (tmp_path / "a.py").write_text("import b, c, keras\n")
    (tmp_path / "b.py").write_text("import a\n")
    (tmp_path / "c.py").write_bytes(b"\xff\x00")
    assert found("a.py") == {"keras": ("a.py:1", "keras")}
    assert "cannot be read" in look_at(["c.py"]).problem
    assert look_at(["-m", "no.such.module"]).imports == ()


def test_keras_computes_with_what_a_variable_or_its_file_says(tmp_path, monkeypatch):
    monkeypatch.delenv("KERAS_BACKEND", raising=False)
    monkeypatch.setenv("KERAS_HOME", str(tmp_path))
    assert entry_points.keras_backend() == "tensorflow"
    for content, backend in (('{"backend": "jax"}', "jax"), ("[]", "tensorflow"), ("{", "tensorflow")):
        (tmp_path / "keras.json").write_text(content)
        assert entry_points.keras_backend() == backend
    monkeypatch.setenv("KERAS_BACKEND", "torch")
    assert entry_points.keras_backend() == "torch"


def test_a_folder_for_a_run(tmp_path, monkeypatch):
    monkeypatch.delenv("TRAINING_JOB_NAME", raising=False)
    made = situation.look_into(str(tmp_path / "new" / "run"))
    assert (made.holds, made.problem, made.goes_to) == ("it does not exist yet", "", made.path)
    assert made.free > 0
    run = tmp_path / "run"
    (run / "index").mkdir(parents=True)
    (tmp_path / "run-2").mkdir()
    found = situation.look_into(str(run))
    assert found.holds == "it holds a run (not finished, no step written)"
    assert found.goes_to == str(tmp_path / "run-3")
    monkeypatch.setenv("TRAINING_JOB_NAME", "job")
    assert situation.look_into(str(run)).goes_to == str(run / "run-2")
    (run / "index").rmdir()
    assert situation.look_into(str(run)).holds == "it is empty"
    (tmp_path / "file").write_text(json.dumps({}))
    assert situation.look_into(str(tmp_path / "file" / "run")).problem == f"{tmp_path / 'file'} is no folder"
