"""Runs written by our PyTorch hook: the original library's reader must tell the same as ours."""

from __future__ import annotations

import functools
import math
import os
from pathlib import Path

import numpy as np
import pytest
from harness import beside

pytest.importorskip("torch")

import torch
from torch import nn

import smd_agent.pytorch as smd
from smd_agent import create_trial, session
from smd_agent.formats.paths import INDEX_CACHE
from smd_agent.storage.run_writer import RunWriter

HERE = Path(__file__).parent
OLD_PYTHON = os.environ.get("SMDEBUG_PYTHON", "")
REDUCTIONS = ["min", "max", "mean", "std", "variance", "sum", "prod"]

pytestmark = pytest.mark.skipif(
    not OLD_PYTHON, reason="SMDEBUG_PYTHON does not name an interpreter that has the original smdebug"
)

ALL_OPS = {
    "reductions": REDUCTIONS,
    "abs_reductions": REDUCTIONS,
    "norms": ["l1", "l2"],
    "abs_norms": ["l1", "l2"],
}
KINDS = {
    "raw": {"save_all": True},
    "reduced": {
        "include_collections": ["weights", "biases", "gradients"],
        "reduction_config": smd.ReductionConfig(**ALL_OPS),
    },
    "both": {
        "include_collections": ["weights", "gradients"],
        "reduction_config": smd.ReductionConfig(["median", "max"], norms=["l1"], save_raw_tensor=True),
    },
    "statistics": {
        "include_collections": ["weights", "biases", "gradients"],
        "reduction_config": smd.ReductionConfig(["statistics", "p95", "histogram"], save_shape=True, save_raw_up_to=3),
    },
    "channels": {
        "include_regex": "relu_output",
        "reduction_config": smd.ReductionConfig(["max", "dead_share", "saturated_share"], save_raw_tensor=True),
    },
    "shapes": {"include_collections": ["weights"], "reduction_config": smd.ReductionConfig(["mean"], save_shape=True)},
    "one step": {"include_regex": "dtype", "save_config": smd.SaveConfig(save_interval=10**6)},
}
DTYPES = ["float16", "float32", "float64", "int32", "int64", "uint8", "bool", "complex128", "bfloat16", "float8_e5m2"]


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(1, 3, 3)
        self.relu = nn.ReLU()
        self.fc = nn.Linear(300, 150)

    def forward(self, x):
        return self.fc(self.relu(self.conv(x)).flatten(1))


def train(out_dir, options):
    torch.manual_seed(0)
    model, criterion = Net(), nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    hook = smd.Hook(str(out_dir), **{"save_config": smd.SaveConfig(save_interval=2), **options})
    hook.register_module(model)
    # In a part of the collections file of which their reader takes one number.
    hook.collection_manager.set_rules([("VanishingGradient", {"threshold": "0.0000001"})])
    for step in range(12):
        training = step % 3 < 2
        hook.set_mode(smd.modes.TRAIN if training else smd.modes.EVAL)
        loss = criterion(model(torch.randn(4, 1, 12, 12)), torch.randint(0, 150, (4,)))
        if training:
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        if step == 0:
            for name in DTYPES:
                hook.record_tensor_value(f"dtype_{name}", (torch.randn(3, 2) * 2).to(getattr(torch, name)))
    hook.save_scalar("after/all", 2.5)
    hook.close()
    session.forget()


@pytest.fixture(scope="module")
def dumps(tmp_path_factory):
    """Return what their trial and ours tell about a run of one kind."""

    @functools.cache
    def told(kind):
        root = tmp_path_factory.mktemp("ours") / "run"
        train(root, KINDS[kind])
        return beside.dumps(OLD_PYTHON, root)

    return told


def differences(theirs, ours, place=()):
    if isinstance(theirs, dict) and isinstance(ours, dict):
        for key in theirs.keys() | ours.keys():
            yield from differences(theirs.get(key, "nothing"), ours.get(key, "nothing"), (*place, key))
    elif "computed" in place and place[1].startswith(("dtype_", "input_digest/", "parameters/", "line/")):
        # They add halves in halves, have an order of complex numbers, leave large integers as they are, and try text.
        return
    elif isinstance(theirs, float) and isinstance(ours, float):
        exact = "computed" not in place
        if not (theirs == ours if exact else math.isclose(theirs, ours, rel_tol=1e-4, abs_tol=1e-5)):
            yield (*place, theirs, ours)
    elif theirs != ours and not _is_theirs_to_mend(place, theirs, ours):
        yield (*place, theirs, ours)


def _is_theirs_to_mend(place, theirs, ours):
    """Their reader cannot compute what it has no value for, and says so in other words than ours."""
    unavailable = [isinstance(told, tuple) and told[0] == "TensorUnavailableForStep" for told in (theirs, ours)]
    return "computed" in place and all(unavailable)


@pytest.mark.parametrize("kind", KINDS)
def test_their_trial_tells_what_ours_tells(dumps, kind):
    theirs, ours = dumps(kind)
    assert list(differences(theirs, ours)) == []
    assert set(theirs["modes"]) == {"GLOBAL", "TRAIN", "EVAL"}
    assert "scalar/after/all" in theirs["names"]


def test_their_trial_skips_what_was_lost_and_runs_inside_of_a_run(tmp_path):
    root = tmp_path / "run"
    train(root, KINDS["shapes"])
    before, _ = beside.dumps(OLD_PYTHON, root)
    inside = RunWriter(str(root), below=True)
    assert inside.start("worker_0", alone=True) is None
    assert inside.root == root / "run-2"
    step = inside.begin_step(7, smd.modes.TRAIN, 7)
    step.add("other", np.ones(3))
    inside.commit(step)
    inside.close(end_marker=True)
    (root / "lost").mkdir()
    (root / "lost/worker_0.json").write_text('{"count": 1, "gone": 0, "steps": [11], "reason": "full"}')
    (root / "claim_worker_1.smd").touch()
    assert beside.dumps(OLD_PYTHON, root)[0] == before


def test_their_trial_is_not_disturbed_by_a_cache_of_ours(tmp_path, monkeypatch):
    monkeypatch.setattr("smd_agent.storage.index_files.WORTHWHILE", 1)
    root = tmp_path / "run"
    train(root, KINDS["shapes"])
    before, ours = beside.dumps(OLD_PYTHON, root)
    for path in root.rglob("*.json"):
        os.utime(path, (1e9, 1e9))
    create_trial(str(root))
    assert (root / INDEX_CACHE).is_file()
    assert beside.dumps(OLD_PYTHON, root) == (before, ours)


def test_the_values_and_reductions_were_there_to_compare(dumps):
    raw, _ = dumps("raw")
    assert len(raw["names"]) > 15
    shape = raw["tensors"]["gradient/Net_conv.weight"]["TRAIN", 2]["value"][:2]
    assert shape == ("<f4", (3, 1, 3, 3))
    reduced, _ = dumps("reduced")
    assert len(reduced["tensors"]["Net_conv.weight"]["EVAL", 2]["stored"]) == 2 * len(REDUCTIONS) + 4
    assert reduced["collections"]["weights"]["tensor_names"] == ["Net_conv.weight", "Net_fc.weight"]


def test_their_reader_loads_a_widened_bfloat16(dumps):
    theirs, _ = dumps("one step")
    dtype, shape, data = theirs["tensors"]["dtype_bfloat16_output_0"]["TRAIN", 0]["value"]
    values = np.frombuffer(data, dtype).reshape(shape)
    assert dtype == "<f4"
    assert np.array_equal(torch.tensor(values).bfloat16().float().numpy(), values)


def test_shares_of_channels_are_there_for_both(dumps):
    theirs, ours = dumps("channels")
    for told in (theirs, ours):
        output = told["tensors"]["relu_output_0"]["TRAIN", 2]
        assert {*output["stored"]} == {("max", False), ("dead_share", False), ("saturated_share", False)}
        dtype, shape, data = output["value"]
        channels = np.moveaxis(np.frombuffer(data, dtype).reshape(shape), 1, 0).reshape(3, -1)
        assert output["stored"]["dead_share", False] == np.mean([not channel.any() for channel in channels])


def test_statistics_are_there_for_both_and_small_tensors_are_whole(dumps):
    theirs, ours = dumps("statistics")
    assert theirs["collections"]["weights"]["reductions"] == ["abs_mean", "l2_norm", "max", "mean", "min", "std"]
    counts = [(name, False) for name in ("p95", "zero_share", "nan_count", "inf_count", "histogram")]
    documented = [*((name, False) for name in ("min", "max", "mean", "std", "l2")), ("mean", True)]
    for told in (theirs, ours):
        weight = told["tensors"]["gradient/Net_fc.weight"]["TRAIN", 2]
        assert {*weight["stored"]} == {*counts, *documented}
        assert weight["stored"]["nan_count", False] == 0
        assert 0 < weight["stored"]["max", False] <= weight["stored"]["l2", False]
        assert weight["shape"] == (150, 300)
        dtype, shape, data = weight["stored"]["histogram", False]
        assert (dtype, shape) == ("<i8", (260,))
        assert np.frombuffer(data, dtype).sum() == 150 * 300
        bias = told["tensors"]["Net_conv.bias"]["TRAIN", 2]
        assert bias["value"][1] == (3,)
        assert bias["stored"] == {}
