"""What the parts compare with: damage of a run's values is noticed."""

from __future__ import annotations

import shutil
from collections import Counter

import numpy as np
import pytest

from robustness import page, parts
from robustness.faults import in_order
from robustness.jobs import Job
from robustness.kills import NotedTraining
from robustness.limits import Result
from robustness.survival import Survived
from robustness.training import Training
from smd_agent.core.modes import ModeKeys
from smd_agent.formats.messages import Event
from smd_agent.formats.tfrecord import FOOTER, frame_header
from smd_agent.storage.run_writer import RunWriter

COLLECTIONS = '{"collections": {}, "_meta": {"num_workers": 1}}'
STEPS = 3


def write(folder, changed=None):
    """Write a run of two tensors in three steps; ``changed`` has other values by step and name, None for no value."""
    writer = RunWriter(str(folder))
    assert writer.start("worker_0", alone=True) is None
    writer.write_collections(COLLECTIONS)
    for step in range(STEPS):
        file = writer.begin_step(step, ModeKeys.TRAIN, step)
        for name in ("weight", "loss"):
            value = (changed or {}).get((step, name), np.full(3, step, np.float32))
            if value is not None:
                file.add(name, value)
        writer.commit(file)
    writer.close(end_marker=True)
    return folder


def index_files(root):
    return sorted(root.glob("index/*/*.json"))


@pytest.fixture
def training(tmp_path, monkeypatch):
    for name in ("SMDEBUG_TRAINING_END_DELAY_REFRESH", "SMDEBUG_MISSING_EVENT_FILE_RETRY_LIMIT"):
        monkeypatch.setenv(name, "0")
    training = Training("", ())
    training.whole = training.values(write(tmp_path / "whole"))
    # Of each tensor by its mode's steps, and by those of all modes.
    assert len(training.whole) == 2 * 2 * STEPS
    return training


def test_a_sound_run_and_its_beginning_are_passed(training, tmp_path):
    root = write(tmp_path / "run")
    assert training.check_listed(root) == STEPS
    index_files(root)[-1].unlink()
    assert training.check_listed(root) == STEPS - 1
    assert training.check_listed(tmp_path / "none") == 0


@pytest.mark.parametrize(
    "value, told",
    [
        (np.array([1, 1, 1.0000001], np.float32), "another value"),
        (np.array([-0.0, 1, 1], np.float32), "another value"),
        (np.full(3, 1, np.float64), "another dtype"),
        (None, "values are missing"),
    ],
)
def test_another_value_and_one_that_is_missing_are_noticed(training, tmp_path, value, told):
    root = write(tmp_path / "run", {(1, "loss"): value})
    with pytest.raises(AssertionError, match=told):
        training.check_listed(root)


def test_what_the_whole_run_has_not_is_noticed(training, tmp_path):
    root = write(tmp_path / "run")
    del training.whole["loss", ModeKeys.TRAIN, 1]
    with pytest.raises(AssertionError, match="not in the whole run"):
        training.check_listed(root)


def test_of_a_run_that_has_told_of_a_failure_values_may_be_missing(training, tmp_path):
    root = write(tmp_path / "run", {(1, "loss"): None})
    assert training.check_listed(root, complete=False) == STEPS


def test_an_index_that_names_nothing_is_noticed(training, tmp_path):
    root = write(tmp_path / "run")
    for path in root.glob("events/*1/*.tfevents"):
        path.unlink()
    with pytest.raises(AssertionError, match="listed, and not to be read"):
        training.check_listed(root)


@pytest.mark.parametrize("harm", ["a byte", "the end"])
def test_damaged_bytes_are_noticed(training, tmp_path, harm):
    root = write(tmp_path / "run")
    path = sorted(root.glob("events/*/*.tfevents"))[1]
    content = bytearray(path.read_bytes())
    if harm == "a byte":
        content[-20] ^= 1
    else:
        del content[-20:]
    path.write_bytes(content)
    with pytest.raises(AssertionError, match="listed, and not to be read"):
        training.check_listed(root)


def test_an_index_that_cannot_be_read_is_noticed(training, tmp_path):
    root = write(tmp_path / "run")
    index_files(root)[1].write_text("{")
    with pytest.raises(AssertionError, match=r"problems|index files"):
        training.check_listed(root)


def test_an_index_of_a_step_that_another_one_has_taken_is_noticed(training, tmp_path):
    root = write(tmp_path / "run")
    first, second, _ = index_files(root)
    shutil.copy(second, first)
    with pytest.raises(AssertionError):
        training.check_listed(root)


def board_record(tag):
    """A record of TensorBoard's with a scalar of this name, as text."""
    event = Event()
    event.summary.value.add(tag=tag, simple_value=1.0)
    payload = event.SerializeToString()
    return (frame_header(len(payload)) + payload + FOOTER).decode("latin-1")


def test_of_a_job_what_is_beside_its_run_is_missed(tmp_path):
    job = Job("", ())
    files = {
        "metrics/7.json": '{"Value": 1}\n{"Value": 2}\n',
        "checkpoints/metadata.json": '[{"latest-mode-step": {"TRAIN": 9}}, {"latest-mode-step": {"TRAIN": 19}}]',
        "board/run/events.out.tfevents.1": "".join(map(board_record, ("loss", "series/loss", "series/seconds"))),
    }
    write(tmp_path / "run" / "host-0")
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).write_text(text, "latin-1")
    whole = job.keeps(tmp_path)
    states = [{"TRAIN": 9}, {"TRAIN": 19}]
    assert whole == {"steps": STEPS, "metrics": 2, "states": states, "events for TensorBoard": 1}
    for name, text in files.items():
        (tmp_path / name).unlink()
        assert job.keeps(tmp_path) != whole
        (tmp_path / name).write_text(text, "latin-1")
    index_files(tmp_path / "run" / "host-0")[0].unlink()
    assert job.keeps(tmp_path) == {**whole, "steps": STEPS - 1}


def test_functions_are_tried_in_an_order_that_a_further_one_does_not_change():
    names = [f"file{number}.py:function" for number in range(50)]
    before = in_order(names, ("file7.py:function",))
    assert before[0] == "file7.py:function"
    assert sorted(before) == sorted(names)
    assert before[1:] != sorted(before[1:])
    assert in_order([*reversed(names), "guard.py:fence"], ("file7.py:function",)) == before
    after = in_order([*names, "further.py:function"], ("file7.py:function",))
    assert [name for name in after if name != "further.py:function"] == before
    with pytest.raises(AssertionError, match="not called"):
        in_order(names, ("gone.py:function",))


def test_parts_that_were_not_run_stay_on_the_page():
    names = [*parts.PARTS]
    results = {name: Result(failures=[]) for name in names}
    for number, result in enumerate(results.values()):
        result.ends.update({"well": number + 1})
    whole = page.text(results)
    assert all(f"\n## {parts.PARTS[name].title}\n" in whole for name in names)
    one_by_one = ""
    for name in reversed(names):
        one_by_one = page.text({name: results[name]}, one_by_one)
    assert one_by_one == whole
    results[names[1]].ends["badly"] += 3
    changed = page.text({names[1]: results[names[1]]}, whole)
    assert changed == page.text(results) != whole


def test_what_later_steps_have_is_counted_by_the_part_that_failed():
    ends = {
        Survived("core", False, (), True, True): 6,
        Survived("core", False, ("losses", "all else"), True, True): 2,
        Survived("pytorch/capture", True, ("all else",), True, False): 1,
        Survived("pytorch/capture", True, (), False, False): 1,
    }
    assert all(Survived.parse(str(one)) == one for one in ends)
    assert Survived.parse("not tried: there is no interpreter with it") is None
    result = Result(Counter({str(one): count for one, count in ends.items()}))
    section = page.text({"faults_with_pytorch": result})
    assert "after 8 of 10 (80.0%) of these failures" in section
    assert "after 2 of 2 (100.0%)" in section
    assert "not so after 1." in section
    assert "| core | 8 | 6 | 8 | 8 | 6 | 0 |" in section
    assert "| pytorch/capture | 2 | 2 | 2 | 2 | 1 | 1 |" in section


@pytest.mark.parametrize(
    "noted, rows, ends",
    [
        ([], {}, "before a step had ended"),
        ([3.0], {}, "one step old"),
        ([3.0, 2.0, 1.0], {0: 3.0, 1: 2.0}, "one step old"),
        ([3.0, 2.0], {0: 3.0, 1: 2.0}, "of the newest step"),
        # It was killed before it could note the last one.
        ([3.0], {0: 3.0, 1: 2.0}, "of the newest step"),
        ([3.0, 2.0], {}, "2 steps have ended, and the series has 0"),
        ([3.0, 2.0, 1.0], {0: 3.0}, "3 steps have ended, and the series has 1"),
        ([3.0, 2.0, 1.0], {0: 3.0, 2: 1.0}, "gaps"),
        ([3.0, 2.0], {0: 3.0, 1: 2.001}, "Mismatched"),
    ],
)
def test_a_series_that_lacks_more_than_the_last_step_is_noticed(tmp_path, noted, rows, ends):
    training = NotedTraining("", (), losses=[3.0, 2.0, 1.0])
    (tmp_path / "notes").write_text("".join(f"{loss}\n" for loss in noted))
    writer = RunWriter(str(tmp_path / "run"))
    assert writer.start("worker_0", alone=True) is None
    writer.write_collections(COLLECTIONS)
    for step, loss in rows.items():
        writer.series.add("steps", step, ModeKeys.TRAIN, step, ("series/loss",), (loss,))
    writer.close(end_marker=False)
    try:
        end = training.check_series(tmp_path)
    except AssertionError as error:
        end = str(error)
    assert ends in end
