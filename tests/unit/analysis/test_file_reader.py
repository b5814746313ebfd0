import numpy as np
import pytest

from smd_agent.core.modes import ModeKeys
from smd_agent.errors import DamagedRecord
from smd_agent.storage.event_file_reader import FileReader


@pytest.fixture
def path(run):
    run.step(7, {"a": np.arange(3), "b": np.float32(2.5), "ab": np.zeros(0)}, ModeKeys.EVAL, 2)
    return run.root / "events/000000000007/000000000007_worker_0.tfevents"


def test_all_records_come_in_order(path):
    with FileReader(path) as reader:
        read = list(reader.read_tensors())
        again = list(reader.read_tensors(check=True))
    assert [entry[0] for entry in read] == ["a", "b", "ab"] == [entry[0] for entry in again]
    assert {(entry[1], *entry[3:]) for entry in read} == {(7, ModeKeys.EVAL, 2)}
    assert [entry[2].tolist() for entry in read] == [[0, 1, 2], 2.5, []]


def test_events_can_be_filtered_by_name(path):
    with FileReader(path) as reader:
        events = reader.read_events(regex_list=["^a"])
        assert reader.read_events(regex_list="b$")[0]["name"] == "b"
    assert [event["name"] for event in events] == ["a", "ab"]
    assert events[0] | {"value": None} == {"timestamp": 1007.0, "step": 7, "name": "a", "value": None}


@pytest.mark.parametrize("left", [1, 3, 20, 60])
def test_of_a_file_that_was_cut_off_the_whole_records_are_read(path, left):
    path.write_bytes(path.read_bytes()[:-left])
    with FileReader(path) as reader:
        records = reader.read_tensors()
        assert [next(records)[0], next(records)[0]] == ["a", "b"]
        with pytest.raises(DamagedRecord, match="behind b: the file ends inside a record"):
            next(records)


def test_an_empty_file_has_no_records(tmp_path):
    path = tmp_path / "empty.tfevents"
    path.write_bytes(b"")
    with FileReader(path) as reader:
        assert list(reader.read_tensors()) == []
