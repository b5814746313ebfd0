"""The series: rows of every step, written as they come, and read back as tables and as tensors."""

from __future__ import annotations

import math
import os
import re
import time
from pathlib import Path

import numpy as np
import pytest
from harness.written_runs import save, saved, started

from smd_agent import create_trial
from smd_agent.core.collection_manager import CollectionManager
from smd_agent.core.failure_domains import SERIES, failures
from smd_agent.core.hook import BaseHook
from smd_agent.core.modes import ModeKeys
from smd_agent.core.selection import Selection
from smd_agent.errors import InvalidWorker, StepNotYetAvailable, StepUnavailable, TensorUnavailableForStep
from smd_agent.formats.series import ABSENT, Header
from smd_agent.printable import rough_size_text
from smd_agent.storage.run_writer import RunWriter

NAMES = ("series/loss", "series/learning_rate")


def rows(run, *steps, names=NAMES, table="steps", mode=ModeKeys.TRAIN):
    for step in steps:
        run.series.add(table, step, mode, step, names, [float(step), *(step / 10 for _ in names[1:])])


def losses(folder):
    table = create_trial(str(folder), timeout=0).series().get("steps")
    return table and dict(zip(table.steps.tolist(), table["series/loss"].tolist(), strict=True))


def wait_for(condition, seconds=10.0):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)


@pytest.fixture
def run(tmp_path):
    run = started(tmp_path / "run")
    saved(run, 0)
    yield run
    run.close(end_marker=False)


def test_rows_of_steps_that_are_not_saved_are_read_back(run, tmp_path):
    rows(run, *range(100))
    run.close(end_marker=True)
    trial = create_trial(str(tmp_path / "run"))
    assert trial.steps() == [0]
    assert trial.tensor_names() == ["x"]
    assert trial.tensor_names(collection="series") == sorted(NAMES)
    table = trial.series()["steps"]
    assert list(table) == list(NAMES)
    assert table.steps.tolist() == table.mode_steps.tolist() == table["series/loss"].tolist() == [*range(100)]
    assert set(table.modes.tolist()) == {ModeKeys.TRAIN.value}
    assert np.all(np.abs(table.seconds - time.time()) < 60)
    tensor = trial.tensor("series/learning_rate")
    assert tensor.steps() == [*range(100)]
    assert tensor.value(70) == 7.0
    assert tensor.values()[99] == [9.9]
    assert tensor.reduction_value(20, "mean") == 2.0
    assert tensor.workers(3) == ["worker_0"]
    with pytest.raises(StepUnavailable):
        tensor.value(100)
    with pytest.raises(InvalidWorker):
        trial.series("worker_1")


def test_the_size_that_is_told_counts_the_files_of_rows(run, tmp_path):
    rows(run, *range(50))
    rows(run, *range(50, 100), names=(*NAMES, "series/momentum"))
    rows(run, 7, table="parameters")

    def on_disk(below):
        return sum(path.stat().st_size for path in (tmp_path / "run" / below).rglob("*") if path.is_file())

    for _ in range(2):
        run.close(end_marker=True)
        assert run.series.size == on_disk("series")
        assert f", {rough_size_text(on_disk('.'))}); to see them" in run.summary()
        rows(run, *range(100, 200))


def test_rows_can_be_read_while_they_come(run, tmp_path):
    rows(run, 0)
    wait_for(lambda: losses(tmp_path / "run"))
    trial = create_trial(str(tmp_path / "run"))
    for step in range(1, 20):
        time.sleep(0.004)
        rows(run, step)
        assert trial.tensor("series/loss").steps()[-1] == step
    with pytest.raises(StepNotYetAvailable):
        trial.tensor("series/loss").value(20)


def test_rows_wait_until_the_run_begins(tmp_path):
    run = RunWriter(str(tmp_path / "run"))
    rows(run, 0, 1, 2)
    assert run.flush()
    assert not (tmp_path / "run").exists()
    assert run.start("worker_0", alone=True) is None
    run.write_collections('{"collections": {}, "_meta": {"num_workers": 1}}')
    save(run, 2)
    run.close(end_marker=True)
    assert losses(tmp_path / "run") == {0: 0, 1: 1, 2: 2}


def test_a_file_that_has_no_row_yet_has_names(run, tmp_path):
    rows(run, 0)
    run.close(end_marker=False)
    (path,) = (tmp_path / "run" / "series").iterdir()
    # A kill between the two writes leaves the first.
    os.truncate(path, len(Header("worker_0", "steps", NAMES, start="0" * 12).to_bytes()))
    assert losses(tmp_path / "run") == {}
    assert [*create_trial(str(tmp_path / "run"), timeout=0).series()["steps"]] == [*NAMES]


def test_numbers_that_a_row_has_not_are_told_from_those_that_are_none(run, tmp_path):
    run.series.add("steps", 0, ModeKeys.TRAIN, 0, NAMES, [math.nan, ABSENT])
    run.series.add("steps", 1, ModeKeys.TRAIN, 1, NAMES, [ABSENT, math.inf])
    run.series.add("parameters", 1, ModeKeys.TRAIN, 1, ("series/update_l2/w", "series/update_l2/b"), [math.nan, ABSENT])
    run.series.add("parameters", 2, ModeKeys.TRAIN, 2, ("series/update_l2/w", "series/update_l2/b"), [1e300, 0.5])
    run.close(end_marker=True)
    trial = create_trial(str(tmp_path / "run"))
    found = {name: trial.tensor(name).values() for name in trial.tensor_names(collection="series")}
    assert {name: [*values] for name, values in found.items()} == {
        "series/loss": [0],
        "series/learning_rate": [1],
        "series/update_l2/w": [1, 2],
        "series/update_l2/b": [2],
    }
    assert math.isnan(found["series/loss"][0][0])
    assert math.isinf(found["series/update_l2/w"][2][0])
    with pytest.raises(TensorUnavailableForStep):
        trial.tensor("series/loss").value(1)
    assert trial.tensor_names(collection="series", step=2) == ["series/update_l2/b", "series/update_l2/w"]


def test_columns_may_change(run, tmp_path):
    rows(run, 0, 1, names=("series/loss",))
    rows(run, 2, names=NAMES)
    rows(run, 3, names=NAMES[::-1])
    rows(run, 4, names=("series/learning_rate",))
    run.close(end_marker=True)
    trial = create_trial(str(tmp_path / "run"))
    assert len(os.listdir(tmp_path / "run" / "series")) == 2
    loss, rate = (trial.tensor(name).values() for name in NAMES)
    assert {step: value[0] for step, value in loss.items()} == {0: 0, 1: 1, 2: 2, 3: 0.3}
    assert {step: value[0] for step, value in rate.items()} == {2: 0.2, 3: 3, 4: 4}


def test_modes_count_their_own_steps(run, tmp_path):
    for step in range(10):
        mode = ModeKeys.EVAL if step % 3 == 2 else ModeKeys.TRAIN
        run.series.add("steps", step, mode, step // 3 if mode is ModeKeys.EVAL else step - step // 3, NAMES, [step, 0])
    run.close(end_marker=True)
    tensor = create_trial(str(tmp_path / "run")).tensor("series/loss")
    assert tensor.steps(ModeKeys.EVAL) == [0, 1, 2]
    assert tensor.value(2, ModeKeys.EVAL) == 8
    assert tensor.steps(ModeKeys.TRAIN) == [0, 1, 2, 3, 4, 5, 6]
    assert tensor.value(6, ModeKeys.TRAIN) == 9


def test_a_hook_adds_rows_to_the_current_step(tmp_path):
    hook = BaseHook(RunWriter(str(tmp_path / "run")), Selection(CollectionManager(create_default=True), ()))
    assert hook.recorder.series.wanted
    for step in range(5):
        if hook.position.begin(hook.recorder.clocks[ModeKeys.TRAIN]):
            hook.recorder.open_step()
        hook.save_scalar("s", 1.0)
        hook.recorder.series.add("steps", NAMES, (step, 0.1))
    hook.recorder.series.add_at("steps", 1, ModeKeys.TRAIN, 1, NAMES, (7.0, 0.1))
    hook.close()
    assert losses(tmp_path / "run") == {0: 0, 1: 7, 2: 2, 3: 3, 4: 4}


def test_a_failure_costs_rows_and_nothing_else(tmp_path, capfd):
    hook = BaseHook(RunWriter(str(tmp_path / "run")), Selection(CollectionManager(create_default=True), ()))
    series = hook.recorder.series
    for _ in range(200):
        series.add("steps", NAMES, ("no number",))
    assert SERIES.off
    assert not series.wanted
    failures.begin_anew()
    assert "rows of the series are not saved any more" in capfd.readouterr().err


@pytest.mark.parametrize("options", [{"dry_run": True}, {"series_bytes": 0}])
def test_nothing_is_taken_where_that_is_switched_off(tmp_path, options):
    run = started(tmp_path / "run", **options)
    hook = BaseHook(RunWriter(str(tmp_path / "run"), **options), Selection(CollectionManager(create_default=True), ()))
    assert not hook.recorder.series.wanted
    hook.recorder.series.add("steps", NAMES, (1.0, 2.0))
    run.close(end_marker=True)
    assert not (tmp_path / "run" / "series").exists()


def test_a_million_rows_of_eight_numbers_take_less_than_a_hundred_megabytes(tmp_path):
    run = started(tmp_path / "run")
    saved(run, 0)
    names = tuple(f"series/{number}" for number in range(8))
    for step in range(100_000):
        run.series.add("steps", step, ModeKeys.TRAIN, step, names, (0.1,) * 8)
    run.close(end_marker=True)
    sizes = [path.stat().st_size for path in (tmp_path / "run" / "series").iterdir()]
    assert sum(sizes) <= 10_000_000
    assert len(create_trial(str(tmp_path / "run")).series()["steps"].steps) == 100_000


def test_the_program_of_the_page_reads_a_file(run, tmp_path):
    rows(run, *range(10))
    run.close(end_marker=True)
    (path,) = (tmp_path / "run" / "series").iterdir()
    page = (Path(__file__).parents[3] / "docs" / "file-format.md").read_text()
    program = page.partition("```py\n")[2].partition("```")[0]
    found = {}
    exec(re.sub('"run/series/.*?"', repr(str(path)), program), found)
    assert found["losses"] == {step: step for step in range(10)}
