"""Gluon runs of ours opened by the real smdebug 1.0.34, and beside the runs of its own MXNet hook."""

from __future__ import annotations

import functools
import os
import runpy
from pathlib import Path

import numpy as np
import pytest
from harness.beside import dumps, run_script

pytest.importorskip("mxnet")

import smd_agent.mxnet as smd
from smd_agent import session
from smd_agent.analysis.trial import create_trial
from smd_agent.core.collection_keys import FACT_COLLECTIONS
from smd_agent.mxnet.collection import BUILT_IN

HERE = Path(__file__).parent
OLD_PYTHON = os.environ.get("SMDEBUG_MXNET_PYTHON", "")
TRAINING = runpy.run_path(str(HERE / "train_gluon.py"))
KINDS, STEPS = TRAINING["KINDS"], TRAINING["STEPS"]

pytestmark = pytest.mark.skipif(
    not OLD_PYTHON, reason="SMDEBUG_MXNET_PYTHON does not name an interpreter that has MXNet and the original smdebug"
)


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Return the folders of their run and of ours; each kind is trained once."""

    @functools.cache
    def trained(kind):
        folder = tmp_path_factory.mktemp(kind)
        theirs = folder / "theirs"
        run_script(OLD_PYTHON, HERE / "train_gluon.py", kind, theirs, modules=("mxnet",), alone=theirs)
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
def test_their_trial_tells_what_ours_tells(runs, kind):
    _, run = runs(kind)
    theirs, ours = dumps(OLD_PYTHON, run)
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
    # What is trained is a weight or a bias of ours, whatever its name.
    ours_alone = {"net_batchnorm0_gamma", "net_batchnorm0_beta"}
    facts = {name for collection in FACT_COLLECTIONS for name in ours.tensor_names(collection=collection)}
    assert len(facts) > len(FACT_COLLECTIONS) or kind == "reduced"
    more = {*ours.tensor_names()} - {*theirs.tensor_names()} - facts
    assert {*theirs.tensor_names()} <= {*ours.tensor_names()}
    if kind == "hybridized":
        # They see the outside of a hybridized net only.
        assert {name.split("_")[1] for name in more} == {"conv0", "batchnorm0", "flatten0", "dense0", "dense1"}
    else:
        assert more <= ours_alone
    for name in ("weights", "biases", "gradients", "losses"):
        own = [tensor for tensor in ours.tensor_names(collection=name) if tensor not in ours_alone]
        assert theirs.tensor_names(collection=name) == own
        if name != "losses":
            # Parameters below a block called "loss" are none.
            assert theirs.collection(name).include_regex == list(BUILT_IN[name])
            if kind == "reduced" or name == "gradients":
                # Else facts such as "update/net_dense0_weight" are kept out, for which members are listed by name.
                assert ours.collection(name).include_regex == list(BUILT_IN[name])


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
