"""Gluon runs of ours opened by the real smdebug 1.0.34, and beside the runs of its own MXNet hook."""

from __future__ import annotations

import functools
import os
import pickle
import runpy
import subprocess
from pathlib import Path

import numpy as np
import pytest
from harness.beside import dump_by_them

pytest.importorskip("mxnet")

import smd_agent.mxnet as smd
from smd_agent import session
from smd_agent.analysis.trial import create_trial

HERE = Path(__file__).parent
OLD_PYTHON = os.environ.get("SMDEBUG_MXNET_PYTHON", "")
TRAINING = runpy.run_path(str(HERE / "train_gluon.py"))
KINDS, STEPS = TRAINING["KINDS"], TRAINING["STEPS"]

pytestmark = pytest.mark.skipif(
    not OLD_PYTHON, reason="SMDEBUG_MXNET_PYTHON does not name an interpreter that has MXNet and the original smdebug"
)


def run_old(*words):
    clean = {name: text for name, text in os.environ.items() if not name.startswith(("SMD", "USE_SMD", "PYTHON"))}
    command = [OLD_PYTHON, "-W", "ignore", *words]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, env=clean, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Return the folders of their run and of ours; each kind is trained once."""

    @functools.cache
    def trained(kind):
        folder = tmp_path_factory.mktemp(kind)
        run_old(HERE / "train_gluon.py", kind, folder / "theirs")
        session.forget()
        TRAINING["train"](smd, kind, folder / "ours")
        session.forget()
        return folder / "theirs", folder / "ours"

    return trained


@pytest.fixture
def both(runs):
    """Return trials of their run and of ours."""
    return lambda kind: tuple(create_trial(str(run)) for run in runs(kind))


@pytest.mark.parametrize("kind", KINDS)
def test_their_trial_tells_what_ours_tells(runs, kind, tmp_path):
    _, run = runs(kind)
    dump_by_them(OLD_PYTHON, run, tmp_path / "by_them.pickle")
    theirs = pickle.loads((tmp_path / "by_them.pickle").read_bytes())
    ours = runpy.run_path(str(HERE / "trial_dump.py"))["dump"](create_trial(str(run)), smd.modes)
    assert theirs["steps"] == ours["steps"]
    assert theirs["collections"] == ours["collections"]
    assert theirs["names by collection"] == ours["names by collection"]
    assert theirs["tensors"].keys() == ours["tensors"].keys()
    count = 0
    for name, places in ours["tensors"].items():
        for place, told in places.items():
            if isinstance(place, tuple) and isinstance(place[1], int):
                found = theirs["tensors"][name][place]
                assert [found[key] for key in ("value", "shape", "stored")] == [
                    told[key] for key in ("value", "shape", "stored")
                ], (name, place)
                count += 1
    assert count > 5 * STEPS


@pytest.mark.parametrize("kind", KINDS)
def test_both_use_the_same_names_and_collections(both, kind):
    theirs, ours = both(kind)
    if kind == "hybridized":
        # They see the outside of a hybridized net only.
        assert {*theirs.tensor_names()} < {*ours.tensor_names()}
        inner = {*ours.tensor_names()} - {*theirs.tensor_names()}
        assert {name.split("_")[1] for name in inner} == {"conv0", "batchnorm0", "flatten0", "dense0", "dense1"}
    else:
        assert theirs.tensor_names() == ours.tensor_names()
    for name in ("weights", "biases", "gradients", "losses"):
        assert theirs.tensor_names(collection=name) == ours.tensor_names(collection=name)
        assert theirs.collection(name).include_regex == ours.collection(name).include_regex


@pytest.mark.parametrize("kind", ["imperative", "hybridized"])
def test_both_save_the_same_values_and_weights_before_the_update_instead_of_after(both, kind):
    theirs, ours = both(kind)
    parameters = "(weight|bias|gamma|beta|running_mean|running_var)$"
    shifted = {*theirs.tensor_names(regex=f"^net_.*{parameters}")}
    assert len(shifted) == 10
    for name in theirs.tensor_names():
        tensor, expected = ours.tensor(name), theirs.tensor(name)
        steps = range(STEPS - 1) if name in shifted else range(STEPS)
        for step in steps:
            value = tensor.value(step + (name in shifted))
            np.testing.assert_array_equal(value, expected.value(step), err_msg=f"{name} {step}")


def test_both_store_the_same_reductions(both):
    theirs, ours = both("reduced")
    for name in theirs.tensor_names(regex="^gradient/"):
        for step in range(STEPS):
            for op in ("min", "max", "mean", "sum", "l1", "l2"):
                expected = theirs.tensor(name).reduction_value(step, op)
                assert ours.tensor(name).reduction_value(step, op) == pytest.approx(expected, rel=1e-4, abs=1e-6)
