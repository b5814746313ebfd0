"""The series in commands and exports: it is there where it is asked for, and else all is as it was."""

from __future__ import annotations

import math

import numpy as np
import pytest
from harness.written_runs import saved, started

from smd_agent import create_trial
from smd_agent.cli import main
from smd_agent.core.modes import ModeKeys

NAMES = ("series/loss", "series/learning_rate", "series/seconds")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("series") / "run"
    run = started(folder)
    saved(run, 0, 100)
    for step in range(200):
        mode = ModeKeys.EVAL if step % 10 == 9 else ModeKeys.TRAIN
        loss = math.nan if step >= 150 else 1 / (step + 1)
        run.series.add("steps", step, mode, step // 10 if mode is ModeKeys.EVAL else step, NAMES, (loss, 0.1, 0.01))
    run.series.add("parameters", 199, ModeKeys.TRAIN, 199, ("series/gradient_l2/w",), (3.0,))
    run.close(end_marker=True)
    return str(folder)


def printed(capsys, *args):
    code = main([*args])
    return code, capsys.readouterr().out


def test_show_names_the_first_loss_that_is_not_finite(folder, capsys):
    code, out = printed(capsys, "show", folder, "series/loss")
    assert code == 0
    assert "NaN/Inf" in out
    assert "series/loss" in out
    assert "150" in out


def test_show_has_all_numbers_and_leaves_out_what_need_not_change(folder, capsys):
    code, out = printed(capsys, "show", folder, "series")
    assert code == 0
    assert all(name in out for name in (*NAMES, "series/gradient_l2/w"))
    assert "Same" not in out


def test_show_of_one_step(folder, capsys):
    code, out = printed(capsys, "show", folder, "series/learning_rate", "--step", "7", "--mode", "train")
    assert code == 0
    assert "0.1" in out


def test_show_of_tensors_is_as_it_was(folder, capsys):
    _, out = printed(capsys, "show", folder)
    assert "series" not in out


def test_ls_names_the_series(folder, capsys):
    _, out = printed(capsys, "ls", folder)
    assert "Series   4 numbers in 200 steps, 0 to 199: python -m smd_agent show" in out
    assert "1 tensor in 2 steps" in out


def test_the_choice_of_the_series_reads_its_steps(folder):
    trial = create_trial(folder)
    found = [(one.step, one.tensor) for one in trial.iterate(collection="series", steps=[3, 199])]
    assert found == [(3, name) for name in sorted(NAMES)] + [
        (199, name) for name in sorted((*NAMES, "series/gradient_l2/w"))
    ]
    assert {one.tensor for one in trial.iterate()} == {"x"}


def test_export_writes_a_table_of_its_own(folder, tmp_path, capsys):
    parquet = pytest.importorskip("pyarrow.parquet")
    assert printed(capsys, "export", folder, "--parquet", str(tmp_path / "out"))[0] == 0
    table = parquet.read_table(tmp_path / "out" / "series.parquet").to_pydict()
    assert table["step"] == [*range(200)]
    assert table["mode"][8:10] == ["TRAIN", "EVAL"]
    assert table["mode_step"][9] == 0
    assert set(table["worker"]) == {"worker_0"}
    assert table["series/loss"][3] == 0.25
    assert math.isnan(table["series/loss"][150])
    assert table["series/gradient_l2/w"] == [None] * 199 + [3.0]
    assert set(parquet.read_table(tmp_path / "out" / "tensors.parquet").to_pydict()["tensor"]) == {"x"}


def test_export_shows_it_in_tensorboard(folder, tmp_path, capsys):
    assert printed(capsys, "export", folder, "--tensorboard", str(tmp_path / "board"))[0] == 0
    content = b"".join(path.read_bytes() for path in sorted((tmp_path / "board").rglob("*tfevents*")))
    assert content.count(b"series/loss") == 200


def test_a_table_of_pandas(folder):
    pytest.importorskip("pandas")
    frame = create_trial(folder).to_pandas(collection="series", mode=ModeKeys.EVAL)
    assert len(frame) == 20 * 3 + 1
    assert np.isnan(frame[frame.tensor == "series/loss"]["value"]).sum() == 5
