"""The table of a run in a Parquet file: the same as with pandas."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from smd_agent import create_trial
from smd_agent.cli import main


@pytest.fixture
def saved(run):
    for step in range(3):
        tensors = {
            "loss": np.float32(step),
            "fc.weight": np.arange(6.0) + step,
            "smdebug/reductions/p5/g": np.array(0.5),
        }
        run.collections(losses="loss", weights="weight").step(step, tensors, shapes={"g": (100,)})
    return run.end()


@pytest.mark.parametrize("rows_at_once", [2, 20_000])
def test_the_file_has_what_pandas_gets(saved, tmp_path, capsys, monkeypatch, rows_at_once):
    pandas, _ = pytest.importorskip("pandas"), pytest.importorskip("pyarrow")
    monkeypatch.setattr("smd_agent.analysis.dataframes._ROWS_AT_ONCE", rows_at_once)
    out = tmp_path / "new" / "tables"
    assert main(["export", str(saved.root), "--parquet", str(out)]) == 0
    assert capsys.readouterr().out == f"wrote {out}/tensors.parquet\n"
    assert [path.name for path in out.iterdir()] == ["tensors.parquet"]
    found = pandas.read_parquet(out / "tensors.parquet")
    expected = create_trial(str(saved.root)).to_pandas()
    assert len(found) == 9
    assert found["p5"].notna().sum() == 3
    pandas.testing.assert_frame_equal(found[[*expected.columns]], expected, check_dtype=False, check_like=True)


def test_a_choice_of_tensors(saved, tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet")
    assert create_trial(str(saved.root)).to_parquet(tmp_path / "a.parquet", collection="losses", steps=[0, 2]) == {}
    table = parquet.read_table(tmp_path / "a.parquet").to_pydict()
    assert (table["step"], table["tensor"], table["value"]) == ([0, 2], ["loss", "loss"], [0.0, 2.0])


def test_a_file_that_is_there_is_left_alone(saved, tmp_path, capsys):
    (tmp_path / "tensors.parquet").write_text("mine")
    assert main(["export", str(saved.root), "--parquet", str(tmp_path)]) == 2
    assert "is there already" in capsys.readouterr().err
    assert (tmp_path / "tensors.parquet").read_text() == "mine"


def test_without_pyarrow_it_is_one_line(saved, tmp_path, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    assert main(["export", str(saved.root), "--parquet", str(tmp_path / "t")]) == 1
    said = capsys.readouterr()
    assert said.out == ""
    assert len(said.err.splitlines()) == 1
    assert "pip install pyarrow" in said.err


def test_what_is_damaged_is_null_and_said(saved, tmp_path, capsys):
    parquet = pytest.importorskip("pyarrow.parquet")
    events = next(iter(sorted(saved.root.rglob("*.tfevents"))))
    content = bytearray(events.read_bytes())
    content[content.index(np.arange(6.0).tobytes()) + 20] ^= 1
    events.write_bytes(content)
    assert main(["export", str(saved.root), "--parquet", str(tmp_path / "t")]) == 1
    assert "fc.weight" in capsys.readouterr().err
    table = parquet.read_table(tmp_path / "t" / "tensors.parquet").to_pydict()
    damaged = [
        mean
        for step, name, mean in zip(table["step"], table["tensor"], table["mean"], strict=True)
        if (step, name) == (0, "fc.weight")
    ]
    assert damaged == [None]
