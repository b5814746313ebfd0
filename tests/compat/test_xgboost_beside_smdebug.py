"""XGBoost runs of ours opened by the real smdebug 1.0.34, and beside the runs of its own XGBoost hook."""

from __future__ import annotations

import functools
import os
import runpy
from pathlib import Path

import numpy as np
import pytest
from harness import beside

xgboost = pytest.importorskip("xgboost")

import smd_agent.xgboost as smd
from smd_agent import session
from smd_agent.analysis.trial import create_trial

HERE = Path(__file__).parent
OLD_PYTHON = os.environ.get("SMDEBUG_PYTHON", "")
TRAINING = runpy.run_path(str(HERE / "train_xgboost.py"))
KINDS, FEATURES, ROUNDS = (TRAINING[name] for name in ("KINDS", "FEATURES", "ROUNDS"))
# Their regexes lose a feature whose name ends in one of these letters.
LOST_BY_THEM = tuple("bias/")

pytestmark = pytest.mark.skipif(
    not OLD_PYTHON, reason="SMDEBUG_PYTHON does not name an interpreter that has the original smdebug"
)


def cross_validate(out_dir):
    hook = smd.Hook(str(out_dir), save_config=smd.SaveConfig(save_interval=2), include_collections=["losses"])
    hook.set_mode(smd.modes.TRAIN)
    data, _ = TRAINING["matrices"]("binary")
    params = {**KINDS["binary"], "nthread": 1}
    xgboost.cv(params, data, ROUNDS, nfold=3, as_pandas=False, callbacks=[hook])
    hook.close()


@pytest.fixture(scope="module")
def our_run(tmp_path_factory):
    """Return the folder of a run of ours; each kind is trained once."""

    @functools.cache
    def trained(kind):
        root = tmp_path_factory.mktemp("ours") / "run"
        session.forget()
        if kind == "cross-validation":
            cross_validate(root)
        else:
            TRAINING["train"](smd, kind, root)
        session.forget()
        return root

    return trained


# Runs of ours, read by them.


@pytest.fixture(scope="module")
def dumps(our_run):
    """Return what their trial and ours tell about a run of ours."""

    @functools.cache
    def told(kind):
        return beside.dumps(OLD_PYTHON, our_run(kind))

    return told


def _is_theirs_to_mend(place, theirs, ours):
    """Their products of whole numbers overflow; of text there are no reductions, which they say in NumPy's words."""
    if "computed" not in place:
        return False
    if isinstance(theirs, int):
        return place[-1] == "prod" and ours > 2**63
    return (theirs[0], ours[0]) == ("UFuncTypeError", "TypeError")


@pytest.mark.parametrize("kind", [*KINDS, "cross-validation"])
def test_their_trial_tells_what_ours_tells(dumps, kind):
    theirs, ours = dumps(kind)
    assert list(beside.differences(theirs, ours, _is_theirs_to_mend)) == []


def test_every_collection_was_there_to_compare(dumps):
    theirs, _ = dumps("multi-class")
    saved = {name for name, names in theirs["names by collection"].items() if names}
    assert saved == {*TRAINING["COLLECTIONS"]}
    assert theirs["modes"] == ["GLOBAL"]
    assert theirs["steps"]["GLOBAL"] == [0, 2, 4]
    assert theirs["tensors"]["predictions"]["GLOBAL", 2]["value"][:2] == ("<f4", (40, 3))
    assert theirs["tensors"]["trees/Feature"]["GLOBAL", 2]["value"][0].startswith("<U")
    folds, _ = dumps("cross-validation")
    assert folds["modes"] == ["GLOBAL", "TRAIN"]
    assert "train-logloss-std" in folds["names by collection"]["metrics"]


# Runs of theirs, beside ours of the same training.


@pytest.fixture(scope="module")
def their_run(tmp_path_factory):
    """Return the folder of a run of theirs; each kind is trained once."""
    version = beside.run_code(OLD_PYTHON, "import xgboost; print(xgboost.__version__)").strip()
    if version != xgboost.__version__:
        pytest.skip(f"XGBoost {xgboost.__version__} trains other models than {version}, which smdebug has")

    @functools.cache
    def trained(kind):
        root = tmp_path_factory.mktemp("theirs") / "run"
        modules = ("xgboost", "smdebug.xgboost")
        beside.run_script(OLD_PYTHON, HERE / "train_xgboost.py", kind, root, modules=modules, alone=root)
        return root

    return trained


@pytest.fixture
def both(our_run, their_run):
    """Return trials of their run and of ours."""
    return lambda kind: (create_trial(their_run(kind)), create_trial(our_run(kind)))


def names(trial, regex=""):
    return {*trial.tensor_names(regex=regex)} if regex else {*trial.tensor_names()}


def features_of(trial):
    """Return the names of the features as SHAP values have them."""
    return [f"f{i}" for i in range(8)] if "average_shap/f0" in names(trial) else FEATURES


def features_they_lose(trial):
    return {name for name in features_of(trial) if name.endswith(LOST_BY_THEM)}


@pytest.mark.parametrize("kind", KINDS)
def test_both_save_the_same_names(both, kind):
    theirs, ours = both(kind)
    kept = {*features_of(ours)} - features_they_lose(ours)
    # One matrix instead of the same one under every feature.
    assert names(theirs) - names(ours) == {f"full_shap/{name}" for name in kept}
    # No feature is lost, and no metric of an evaluation set whose name has a digit.
    unseen = {name for name in names(ours) if name.startswith("validation_0-")}
    lost = {f"average_shap/{name}" for name in features_they_lose(ours)}
    assert names(ours) - names(theirs) == {"full_shap/matrix"} | unseen | lost
    assert len(unseen) == len(ours.tensor_names(regex="^train-"))


@pytest.mark.parametrize("kind", KINDS)
def test_both_save_the_same_values(both, kind):
    theirs, ours = both(kind)
    common = names(theirs) & names(ours) - names(ours, "^(trees|average_shap)/")
    assert {name.split("/")[0] for name in common} >= {
        "feature_importance",
        "hyperparameters",
        "labels",
        "predictions",
    }
    for name in common:
        assert ours.tensor(name).steps() == theirs.tensor(name).steps()
        for step in theirs.tensor(name).steps():
            value, expected = ours.tensor(name).value(step), theirs.tensor(name).value(step)
            assert (name, step, value.dtype, value.shape) == (name, step, expected.dtype, expected.shape)
            assert (name, step, value.tobytes()) == (name, step, expected.tobytes())


@pytest.mark.parametrize("kind", KINDS)
def test_their_trees_are_among_ours(both, kind):
    """They save the tree whose number is that of the round; with several trees a round, these are not its trees."""
    theirs, ours = both(kind)
    count = {"multi-class": 3, "class numbers": 3, "forest": 2}.get(kind, 1)
    for step in theirs.tensor("trees/Tree").steps():
        trees = ours.tensor("trees/Tree").value(step)
        assert {*trees} == {*range(step * count, (step + 1) * count)}
        assert {*theirs.tensor("trees/Tree").value(step)} == {step}
        if step not in trees:
            continue
        for name in names(theirs, "^trees/"):
            value, expected = ours.tensor(name).value(step)[trees == step], theirs.tensor(name).value(step)
            # Widths of text are those of the longest; all else is the same.
            assert value.dtype.kind == expected.dtype.kind
            assert value.dtype.kind == "U" or value.dtype == expected.dtype
            np.testing.assert_array_equal(value, expected)


@pytest.mark.parametrize("kind", KINDS)
def test_shap_values_are_theirs_once_and_averaged_without_sign(both, kind):
    theirs, ours = both(kind)
    their_name = sorted(names(theirs, "^full_shap/"))[0]
    for step in theirs.steps():
        matrix, expected = ours.tensor("full_shap/matrix").value(step), theirs.tensor(their_name).value(step)
        assert (matrix.dtype, matrix.shape) == (expected.dtype, expected.shape)
        assert matrix.tobytes() == expected.tobytes()
        by_column = np.abs(expected.astype(np.float64)).reshape(-1, 9).mean(axis=0)
        for name, mean in zip(features_of(ours), by_column, strict=False):
            value = ours.tensor(f"average_shap/{name}").value(step)
            assert value.shape == (1,)
            assert value[0] == pytest.approx(mean, rel=1e-12)
