"""A run as a stream and as tables."""

import inspect
import sys

import numpy as np
import pytest

from smd_agent import create_trial, modes
from smd_agent.core.modes import ModeKeys
from smd_agent.errors import DamagedRecord, InvalidWorker, SMDebugRuntimeError, TensorUnavailableForStep

TRAIN, EVAL = ModeKeys.TRAIN, ModeKeys.EVAL
RED = "smdebug/reductions/"
STATISTICS = ["min", "max", "mean", "std", "l2", "zero_share", "nan_count", "inf_count"]


@pytest.fixture
def trial(run):
    run.collections(weights="weight$", losses="loss", everything=".*")
    for step in range(3):
        weight = np.array([[0.0, -2.0], [np.nan, step]], np.float32)
        stored = {RED + "l2/g": np.float64(step), RED + "abs_mean/g": np.float64(0.5)}
        run.step(step, {"a.weight": weight, "loss": np.float32(3 - step), **stored}, TRAIN, step * 10)
    run.step(3, {"loss": np.float32(9), "empty": np.zeros((0, 2))}, EVAL, 0)
    return create_trial(str(run.end().root), timeout=0)


def test_what_is_saved_comes_by_steps_and_names(trial):
    found = [(one.step, one.mode, one.mode_step, one.worker, one.tensor) for one in trial.iterate(regex="loss|a")]
    assert found == [
        *((step, TRAIN, step * 10, "worker_0", name) for step in range(3) for name in ("a.weight", "loss")),
        (3, EVAL, 0, "worker_0", "loss"),
    ]
    (one,) = trial.iterate(collection="losses", mode=modes.TRAIN, steps=[20, 7])
    assert (one.step, one.value().tolist(), one.statistics()["mean"]) == (2, 1.0, 1.0)
    assert [one.step for one in trial.iterate(regex="^g$", worker="worker_0")] == [0, 1, 2]
    with pytest.raises(InvalidWorker):
        next(trial.iterate(worker="worker_9"))


CHOICE = (
    "regex: 'str | Iterable[Any] | None' = None, collection: 'str | Collection | None' = None, "
    f"mode: 'ModeKeys' = {ModeKeys.GLOBAL!r}, steps: 'Iterable[int] | None' = None, worker: 'str | None' = None"
)
TAKERS = {
    "iterate": ("(self, *, ", ""),
    "to_pandas": ("(self, *, ", ""),
    "to_xarray": ("(self, *, ", ""),
    "to_parquet": ("(self, path: 'str | os.PathLike[str]', *, ", ""),
    "to_tensorboard": ("(self, folder: 'str | os.PathLike[str]', *, ", ""),
    "plot": (
        "(self, named: 'str | Iterable[Any] | None' = None, /, *, ",
        ", statistic: 'str | None' = None, logarithmic: 'bool' = False",
    ),
}


@pytest.mark.parametrize("name", TAKERS)
def test_all_that_choose_show_the_same_arguments_and_refuse_others(trial, name):
    before, after = TAKERS[name]
    shown = str(inspect.signature(getattr(type(trial), name)))
    assert shown.startswith(f"{before}{CHOICE}{after})")
    given = ["x"] * before.count(":")
    with pytest.raises(TypeError, match="'tensor'"):
        getattr(trial, name)(*given, tensor="loss")
    with pytest.raises(TypeError, match="too many positional"):
        getattr(trial, name)(*given, "loss")


def test_values_are_read_when_they_are_asked_for(trial, run):
    stream = trial.iterate(regex="loss")
    first, second = next(stream), next(stream)
    path = run.root / "events/000000000001/000000000001_worker_0.tfevents"
    content = path.read_bytes()
    path.write_bytes(content.replace(b"loss", b"lost"))
    assert first.value() == 3
    with pytest.raises(DamagedRecord):
        second.value()
    with pytest.raises(DamagedRecord):
        second.statistics()
    reduced = next(trial.iterate(regex="^g$"))
    assert reduced.statistics() == {"l2": 0.0, "abs_mean": 0.5}
    with pytest.raises(TensorUnavailableForStep):
        reduced.value()


def test_a_frame_has_a_row_for_each_tensor_step_and_worker(trial):
    pytest.importorskip("pandas")
    frame = trial.to_pandas()
    columns = ["step", "mode", "mode_step", "worker", "tensor", "collection", "value", *STATISTICS, "abs_mean"]
    assert [*frame.columns] == columns
    assert len(frame) == 3 * 3 + 2
    losses = frame[frame.tensor == "loss"]
    assert losses["value"].tolist() == [3, 2, 1, 9]
    assert losses[["step", "mode_step"]].to_numpy().tolist() == [[0, 0], [1, 10], [2, 20], [3, 0]]
    assert [*losses["mode"]] == ["TRAIN", "TRAIN", "TRAIN", "EVAL"]
    assert {*losses["collection"]} == {"losses"}
    weights = frame[frame.tensor == "a.weight"].iloc[0]
    assert weights[["zero_share", "nan_count", "inf_count"]].tolist() == [0.5, 1, 0]
    assert np.isnan(weights[["value", "min", "mean", "l2"]].to_numpy(float)).all()
    stored = frame[frame.tensor == "g"]
    assert stored[["l2", "abs_mean"]].to_numpy().tolist() == [[0, 0.5], [1, 0.5], [2, 0.5]]
    assert stored["min"].isna().all()
    assert stored["collection"].unique().tolist() == ["everything"]
    assert frame[frame.tensor == "empty"][["value", *STATISTICS]].isna().all(axis=None)
    assert frame.attrs["problems"] == {}


def test_a_frame_has_the_shares_of_channels_that_are_stored(run):
    pytest.importorskip("pandas")
    name = "smdebug/reductions/dead_share/relu"
    trial = create_trial(
        str(run.collections().step(0, {name: np.float64(0.25), "w": np.ones(3)}).end().root), timeout=0
    )
    frame = trial.to_pandas().set_index("tensor")
    assert frame.loc["relu", "dead_share"] == 0.25
    assert np.isnan(frame.loc["w", "dead_share"])
    assert "saturated_share" not in frame


def test_a_frame_of_some(trial):
    pytest.importorskip("pandas")
    assert trial.to_pandas(regex="loss", mode=modes.TRAIN, steps=range(0, 15))["mode_step"].tolist() == [0, 10]
    assert len(trial.to_pandas(regex="loss", steps=[])) == 0


def test_a_frame_names_what_is_damaged(trial, run):
    pytest.importorskip("pandas")
    path = run.root / "events/000000000001/000000000001_worker_0.tfevents"
    content = bytearray(path.read_bytes())
    content[content.index(b"loss") + 2] ^= 1
    path.write_bytes(content)
    frame = trial.to_pandas(regex="loss")
    assert frame["value"].isna().tolist() == [False, True, False, False]
    assert [*frame.attrs["problems"]] == [(1, "worker_0", "loss")]
    assert "loss at step 1 is damaged" in frame.attrs["problems"][1, "worker_0", "loss"]


def test_a_dataset_has_steps_workers_and_tensors(trial):
    pytest.importorskip("xarray")
    dataset = trial.to_xarray(regex="loss|weight")
    assert dict(dataset.sizes) == {"step": 4, "worker": 1, "tensor": 2}
    assert dataset["value"].sel(tensor="loss", worker="worker_0").values.tolist() == [3, 2, 1, 9]
    assert dataset["mode"].values.tolist() == ["TRAIN"] * 3 + ["EVAL"]
    assert dataset["mode_step"].values.tolist() == [0, 10, 20, 0]
    assert dataset["collection"].sel(tensor="a.weight").item() == "weights"
    assert np.isnan(dataset["nan_count"].sel(tensor="a.weight", step=3)).all()


@pytest.mark.parametrize("method, missing", [("to_pandas", "pandas"), ("to_xarray", "xarray"), ("to_xarray", "pandas")])
def test_a_missing_package_is_one_sentence(trial, monkeypatch, method, missing):
    if method == "to_xarray" and missing == "pandas":
        pytest.importorskip("xarray")
    monkeypatch.setitem(sys.modules, missing, None)
    with pytest.raises(SMDebugRuntimeError, match=rf"needs {missing}, .*: pip install {missing}$"):
        getattr(trial, method)()


def test_inputs_labels_and_predictions_come_in_the_order_of_their_numbers(run):
    run.collections(inputs="_input_")
    tensors = {
        f"net_{kind}_{number}": np.full(2, number) for kind in ("input", "labels", "predictions") for number in (10, 9)
    }
    trial = create_trial(str(run.step(0, tensors, EVAL, 4).end().root), timeout=0)
    for method in (trial.inputs, trial.labels, trial.predictions):
        assert [value.tolist() for value in method(0)] == [[9, 9], [10, 10]]
        assert [value.tolist() for value in method(4, mode=modes.EVAL)] == [[9, 9], [10, 10]]
    assert trial.inputs(1) == []


def test_statistics_are_those_of_numpy(run):
    random = np.random.default_rng(0)
    values = random.standard_normal((7, 5)) * (random.random((7, 5)) > 0.3)
    trial = create_trial(str(run.collections().step(0, {"t": values}).end().root), timeout=0)
    (one,) = trial.iterate()
    expected = [
        values.min(),
        values.max(),
        values.mean(),
        values.std(),
        np.sqrt((values**2).sum()),
        (values == 0).mean(),
    ]
    assert [one.statistics()[name] for name in STATISTICS] == pytest.approx([*expected, 0, 0])
