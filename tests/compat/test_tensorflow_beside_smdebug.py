"""TensorFlow runs of ours, opened by the real smdebug 1.0.34."""

from __future__ import annotations

import importlib.util
import os
import sys
from pathlib import Path

import pytest
from harness.beside import differences, dumps, run_script

if importlib.util.find_spec("tensorflow") is None:
    pytest.skip("could not import 'tensorflow'", allow_module_level=True)

import smd_agent

HERE = Path(__file__).parent
OLD_PYTHON = os.environ.get("SMDEBUG_PYTHON", "")

pytestmark = pytest.mark.skipif(
    not OLD_PYTHON, reason="SMDEBUG_PYTHON does not name an interpreter that has the original smdebug"
)


def _are_missing(place, theirs, ours):
    """Both say so of what was not saved, in words of their own; theirs computes with text and large integers."""
    if "computed" in place and place[1].startswith(("input_digest/", "parameters/", "line/")):
        return True
    both = [isinstance(found, tuple) and found[0] == "TensorUnavailableForStep" for found in (theirs, ours)]
    return "computed" in place and all(both)


HAS_ESTIMATORS = importlib.util.find_spec("tensorflow_estimator") is not None


@pytest.mark.parametrize("way", ["", " reduced"])
@pytest.mark.parametrize("kind", ["fit", "estimator", "tape", "session"])
def test_their_trial_tells_what_ours_tells(kind, way, tmp_path):
    if kind == "estimator" and not HAS_ESTIMATORS:
        pytest.skip("this TensorFlow has no estimators")
    folder = tmp_path / "run"
    place = str(Path(smd_agent.__file__).parents[1])
    script = HERE / "train_tensorflow.py"
    run_script(sys.executable, script, kind + way, folder, modules=("tensorflow",), PYTHONPATH=place)
    theirs, ours = dumps(OLD_PYTHON, folder)
    assert list(differences(theirs, ours, _are_missing)) == []
    # Of a tensor that is reduced, the name is without the output's number.
    {"fit": check_fit, "tape": check_tape}.get(kind, check_graph)(theirs, kind, "" if way else ":0", not way)


def check_fit(theirs, kind, port, raw):
    members = theirs["names by collection"]
    # The last step of each epoch has the epoch's logs.
    assert theirs["steps"]["TRAIN"] == [0, 2, 4, 5]
    assert theirs["steps"]["PREDICT"] == [0, 2]
    # Two validations of 2 steps, and 3 of evaluate; validation's logs are saved in the last step of each.
    assert theirs["steps"]["EVAL"] == [0, 1, 2, 3, 4, 6]
    assert members["weights"] == [f"first/weights/first/kernel{port}", f"last/weights/last/kernel{port}"]
    assert members["biases"] == [f"first/weights/first/bias{port}", f"last/weights/last/bias{port}"]
    variables = ("first/bias", "first/kernel", "last/bias", "last/kernel")
    assert members["gradients"] == [f"gradients/{name}Grad" for name in variables]
    assert members["losses"] == ["batch_loss", "loss", "val_loss"]
    assert members["metrics"] == ["mae", "val_mae"]
    assert members["inputs"] == ["inputs"]
    assert members["outputs"] == ["labels", "predictions"]
    assert members["layers"] == [f"{layer}/{kind}" for layer in ("first", "last") for kind in ("inputs", "outputs")]
    # Moments of each variable, the number of steps, and what the optimizer is set to.
    assert len(members["optimizer_variables"]) >= 2 * 4 + 1
    assert any("learning_rate" in name for name in members["optimizer_variables"])
    assert members["updates"] == [f"{what}/{name}" for what in ("update", "update_ratio") for name in trained(members)]
    settings = ("beta_1", "beta_2", "eps", "lr")
    assert {name.split("/")[-1] for name in members["optimizer"]} == {*settings}
    assert len(members["input_digests"]) == 1
    assert [name.split("/")[0] for name in members["parameters"]] == ["line", "parameters"]
    kernel = theirs["tensors"][f"first/weights/first/kernel{port}"]
    assert [kernel["steps"][mode] for mode in ("TRAIN", "EVAL", "PREDICT")] == [[0, 2, 4], [0, 2, 4, 6], [0, 2]]
    assert (kernel["TRAIN", 0]["value"][0] == "<f4") == raw
    stored = kernel["TRAIN", 0]["stored"]
    assert {op for op, _ in stored or ()} == (set() if raw else {"min", "mean", "std", "l2"})


def trained(members):
    return sorted(
        name.partition("/weights/")[2].removesuffix(":0") for name in (*members["weights"], *members["biases"])
    )


def check_tape(theirs, kind, port, raw):
    members = theirs["names by collection"]
    if raw:
        steps = theirs["tensors"]["loss"]["steps"]
        assert (steps["TRAIN"], steps["EVAL"]) == ([0, 2, 4], [0, 2])
    assert members["weights"] == [f"weights/dense/kernel{port}"]
    assert members["biases"] == [f"weights/dense/bias{port}"]
    assert members["gradients"] == ["gradients/dense/biasGrad", "gradients/dense/kernelGrad"]
    assert members["losses"] == ["loss"]


def check_graph(theirs, kind, port, raw):
    members = theirs["names by collection"]
    # A session is without a mode, as with the original.
    expected = {"TRAIN": [0, 2, 4], "EVAL": [0, 2, 4], "PREDICT": [0, 2, 4]}
    found = {mode: steps for mode, steps in theirs["steps"].items() if steps and mode in (*expected, "GLOBAL")}
    if kind == "session":
        assert found == {"GLOBAL": [0, 2, 4]}
    else:
        del found["GLOBAL"]
        assert found == expected
    assert members["weights"] == [f"layer/w{port}"]
    # It is none of the fetches, and losses are never reduced.
    assert members["losses"] == ["mean_squared_error/value:0"]
    assert len(members["gradients"]) == 1
    assert {f"layer/w/Adam{port}", f"layer/w/Adam_1{port}"} <= {*members["optimizer_variables"]}
