import pytest

from smd_agent.formats.paths import (
    collections_path,
    event_path,
    index_path,
    parse_collections_file,
    parse_step_file,
)

DEVICE = "/job:localhost/replica:0/task:0/device:GPU:0"


def test_files_of_a_step_are_named_by_step_and_worker():
    assert event_path(1000, "worker_3") == "events/000000001000/000000001000_worker_3.tfevents"
    assert index_path(1000, "worker_3") == "index/000000001/000000001000_worker_3.json"
    assert collections_path("worker_3") == "collections/000000000/worker_3_collections.json"


def test_a_device_name_is_written_without_slashes_and_colons():
    assert event_path(0, DEVICE).endswith("000000000000__job-localhost_replica-0_task-0_device-GPU-0.tfevents")


@pytest.mark.parametrize("worker", ["worker_0", "worker_12", "my-host_a__b", DEVICE])
def test_a_worker_is_found_again_in_the_names(worker):
    assert parse_step_file(event_path(7, worker).rpartition("/")[2]) == (7, worker)
    assert parse_step_file(index_path(7, worker).rpartition("/")[2]) == (7, worker)
    assert parse_collections_file(collections_path(worker).rpartition("/")[2]) == worker


@pytest.mark.parametrize("name", ["000000000007_worker_0.json.tmp", "notes.txt", "worker_0.json", "7_.json"])
def test_other_files_are_no_step_files(name):
    assert parse_step_file(name) is None
    assert parse_collections_file(name) is None
