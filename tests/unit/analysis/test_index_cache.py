"""The cache of index files: it gives what they say, and nothing depends on it."""

import json
import os
import stat
import struct
import time

import numpy as np
import pytest
from crc32c import crc32c

from smd_agent import create_trial
from smd_agent.core.modes import ModeKeys
from smd_agent.errors import SMDebugError
from smd_agent.formats import index_cache as form
from smd_agent.formats.index import Index, IndexParser, NotedShape, Payload
from smd_agent.formats.paths import INDEX_CACHE
from smd_agent.storage import index_files
from smd_agent.storage.claim import Claim

TRAIN, EVAL = ModeKeys.TRAIN, ModeKeys.EVAL
INDEX = "index/000000000/000000000001_worker_0.json"


@pytest.fixture(autouse=True)
def small_runs_have_one(monkeypatch):
    monkeypatch.setattr(index_files, "WORTHWHILE", 1)


@pytest.fixture
def steps(run):
    """A finished run of twelve steps of which no two have the same index."""
    run.collections()
    for step in range(12):
        mode = EVAL if step % 5 == 4 else TRAIN
        tensors = {"t": np.full(step + 1, step, np.float32), "loss": np.float64(step), "smdebug/reductions/l2/g": 1.0}
        run.step(step, tensors, mode, step * 10, shapes={"t": (step,), "o'ther\n": ()} if step % 2 else {})
    aged(run.end())
    return run


def aged(run, seconds=100):
    for path in run.root.rglob("*.json"):
        os.utime(path, (time.time() - seconds, time.time() - seconds))


def opened(run, **options):
    trial = create_trial(str(run.root), timeout=0, **options)
    trial.maybe_refresh()
    return trial


def dump(trial):
    """All that a trial tells of its steps."""
    table = trial.step_table
    return {
        (step, worker): (file.index.mode, file.index.mode_step, file.index.event_file, places(file.index.payload))
        for step in table.steps(ModeKeys.GLOBAL, incomplete=True)
        for worker, file in table.files(step).items()
    }


def places(payload):
    return payload.tensors.names, list(payload.starts), list(payload.lengths), payload.shapes


@pytest.fixture
def index_files_read(monkeypatch):
    """The names of the index files that are read one by one."""
    read = []
    original = index_files.read_text

    def noted(path, *rest, **named):
        read.append(os.path.basename(path))
        return original(path, *rest, **named)

    monkeypatch.setattr(index_files, "read_text", noted)
    return read


def test_a_run_is_opened_from_the_cache_the_next_time(steps, index_files_read):
    first = opened(steps)
    assert len(index_files_read) == 12
    index_files_read.clear()
    second = opened(steps)
    assert index_files_read == []
    assert dump(second) == dump(first)
    assert len(dump(second)) == 12
    assert second.steps() == first.steps()
    assert second.tensor_names() == first.tensor_names() == ["g", "loss", "o'ther\n", "t"]
    assert second.tensor("t").value(3).tolist() == [3, 3, 3, 3]
    assert second.tensor("o'ther\n").shape(3) == ()
    assert second.tensor("g").reduction_value(4, "l2") == 1
    assert second.tensor("t").original_name == "t!"


def test_steps_with_the_same_index_share_it(run):
    run.collections()
    for step in range(6):
        run.step(step, {"a": np.zeros(2), "b": np.zeros(3)})
    aged(run.end())
    opened(run)
    table = opened(run).step_table
    payloads = {id(file.index.payload) for step in range(6) for file in table.files(step).values()}
    assert len(payloads) == 1


def test_an_index_that_changed_since_is_read_again(steps, index_files_read):
    opened(steps)
    index_files_read.clear()
    text = (steps.root / INDEX).read_text()
    (steps.root / INDEX).write_text(text.replace('"mode_step": 10', '"mode_step": 77'))
    trial = opened(steps)
    assert index_files_read == ["000000000001_worker_0.json"]
    assert trial.mode_step(1) == 77


def test_an_index_that_was_damaged_since_is_a_problem(steps):
    opened(steps)
    (steps.root / INDEX).write_text("{")
    trial = opened(steps)
    assert trial.problems.keys() == {INDEX}
    assert 1 not in trial.steps()


def test_an_index_that_was_removed_since_is_gone(steps):
    opened(steps)
    (steps.root / INDEX).unlink()
    assert 1 not in opened(steps).steps()


def test_a_step_that_was_added_since_is_found(steps, index_files_read):
    opened(steps)
    index_files_read.clear()
    steps.step(12)
    assert opened(steps).steps()[-1] == 12
    assert index_files_read == ["000000000012_worker_0.json"]


def test_a_range_of_steps_takes_what_it_needs_and_writes_nothing(steps, index_files_read):
    assert opened(steps, range_steps=(2, 5)).steps() == [2, 3, 4]
    assert not (steps.root / INDEX_CACHE).exists()
    opened(steps)
    index_files_read.clear()
    assert opened(steps, range_steps=(2, 5)).steps() == [2, 3, 4]
    assert index_files_read == []


def test_a_run_that_goes_on_gets_none(steps):
    (steps.root / "training_job_end.ts").unlink()
    opened(steps)
    assert not (steps.root / INDEX_CACHE).exists()
    claim = Claim(steps.root)
    assert claim.acquire() is None
    claim.sign()
    opened(steps)
    assert not (steps.root / INDEX_CACHE).exists()
    claim.release()


def test_a_run_that_was_cut_off_gets_one(steps):
    (steps.root / "training_job_end.ts").unlink()
    claim = Claim(steps.root)
    assert claim.acquire() is None
    claim.sign()
    path = steps.root / "claim.smd"
    path.write_text(path.read_text().replace('"started": "', '"started": "9'))
    opened(steps)
    claim.release()
    assert (steps.root / INDEX_CACHE).exists()


def test_a_run_without_an_end_that_is_old_gets_one(steps):
    (steps.root / "training_job_end.ts").unlink()
    aged(steps, 4000)
    opened(steps)
    assert (steps.root / INDEX_CACHE).exists()


def test_what_has_just_been_written_is_not_kept(steps, index_files_read):
    os.utime(steps.root / INDEX)
    opened(steps)
    index_files_read.clear()
    opened(steps)
    assert index_files_read == ["000000000001_worker_0.json"]


def test_a_small_run_gets_none(steps, monkeypatch):
    monkeypatch.setattr(index_files, "WORTHWHILE", 13)
    before = sorted(path.name for path in steps.root.iterdir())
    opened(steps)
    assert sorted(path.name for path in steps.root.iterdir()) == before


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_cannot_be_written_is_read(steps):
    steps.root.chmod(stat.S_IRUSR | stat.S_IXUSR)
    assert len(opened(steps).steps()) == 12
    steps.root.chmod(stat.S_IRWXU)


def test_a_disk_that_refuses_the_file_is_no_problem(steps, monkeypatch, caplog):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(index_files, "replace_file", full)
    trial = opened(steps)
    assert (len(trial.steps()), trial.problems, caplog.records) == (12, {}, [])


def test_a_disk_that_is_nearly_full_gets_none(steps, monkeypatch):
    monkeypatch.setattr(index_files, "_ROOM", 1 << 60)
    opened(steps)
    assert not (steps.root / INDEX_CACHE).exists()


def test_a_link_is_not_written_through(steps, tmp_path):
    (tmp_path / "elsewhere").write_text("mine")
    (steps.root / INDEX_CACHE).symlink_to(tmp_path / "elsewhere")
    opened(steps)
    assert (tmp_path / "elsewhere").read_text() == "mine"


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("kind", ["pipe", "folder", "device", "huge"])
def test_what_is_no_file_is_not_read(steps, kind):
    path = steps.root / INDEX_CACHE
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    elif kind == "device":
        path.symlink_to("/dev/zero")
    else:
        path.touch()
        os.truncate(path, 8 << 30)
    assert len(opened(steps).steps()) == 12


def test_every_byte_that_changed_is_noticed(steps):
    whole = dump(opened(steps))
    content = (steps.root / INDEX_CACHE).read_bytes()
    for place in range(0, len(content), 7):
        harmed = bytearray(content)
        harmed[place] ^= 1 << place % 8
        with pytest.raises(form.UnusableCache):
            form.decode(bytes(harmed), IndexParser())
    for end in range(0, len(content), 31):
        with pytest.raises(form.UnusableCache):
            form.decode(content[:end], IndexParser())
    (steps.root / INDEX_CACHE).write_bytes(content[:-1])
    assert dump(opened(steps)) == whole
    assert (steps.root / INDEX_CACHE).read_bytes() == content


def signed(content):
    """The content with its checksum made right."""
    head = len(form._MAGIC)
    return content[:head] + struct.pack("<I", crc32c(content[head + 4 :])) + content[head + 4 :]


def test_a_wrong_content_with_a_right_checksum_is_refused_or_reads_as_an_index_would(steps):
    opened(steps)
    content = (steps.root / INDEX_CACHE).read_bytes()
    refused = 0
    for place in range(len(form._MAGIC) + 4, len(content)):
        for changed in (0, 0xFF, content[place] ^ 1):
            harmed = signed(content[:place] + bytes((changed,)) + content[place + 1 :])
            try:
                files = form.decode(harmed, IndexParser())
            except form.UnusableCache:
                refused += 1
                continue
            for file in files.values():
                payload = file.index.payload
                assert len(payload.tensors.names) == len(payload.starts) == len(payload.lengths)
                assert all(
                    start >= 0 and length >= 16 for start, length in zip(payload.starts, payload.lengths, strict=False)
                )
                assert file.index.event_file is None or ".." not in file.index.event_file.split("/")
    assert refused > len(content) / 2


def cached(payload, event_file="events/x", mode_step=0, path="000000000/000000000001_worker_0.json", signature=(1, 1)):
    return form.CachedFile(path, signature, Index(TRAIN, mode_step, event_file, payload))


def payload_of(names=("t",), starts=(0,), lengths=(20,), shapes=None):
    from array import array

    return Payload(IndexParser().shared(names), array("q", starts), array("q", lengths), shapes or {})


def test_all_that_an_index_can_say_comes_back():
    shapes = {"t": NotedShape("ö", ()), "u": NotedShape("", (2**70, 0), "bfloat16")}
    files = [
        cached(payload_of(("t", "ü/x y:0"), (5, 1), (20, 2**31), shapes), "some/other.file"),
        cached(payload_of((), (), (), shapes), None, path="000000000/000000000002_worker_0.json"),
        cached(payload_of(), "events/000000000003/000000000003_/job.tfevents", path="0/3__job.json"),
        cached(payload_of(), "events/000000000004/000000000004_w.tfevents", path="0/000000000004_w.json"),
        cached(payload_of(("a\0b", "\ud800"), (0, 20), (20, 20)), path="1"),
        cached(payload_of(shapes={"t": NotedShape("a\1", (1,))}), mode_step=2**63, path="000000000/\udcff_w.json"),
        cached(payload_of(), signature=(2**63, 0), path="2"),
    ]
    found = form.decode(form.encode(files), IndexParser())
    assert [*found] == [file.path for file in files]
    for file in files:
        index, got = file.index, found[file.path].index
        assert (got.mode, got.mode_step, got.event_file) == (index.mode, index.mode_step, index.event_file)
        assert places(got.payload) == places(index.payload)
        assert found[file.path].signature == file.signature


def test_no_index_gives_an_empty_cache():
    assert form.decode(form.encode([]), IndexParser()) == {}


def test_a_path_that_leaves_the_run_is_refused():
    for path in ("../x", "/etc/passwd", "a//b", "x" * 2000):
        with pytest.raises(form.UnusableCache):
            form.decode(form.encode([cached(payload_of(), path)]), IndexParser())


@pytest.mark.parametrize(
    "head",
    [
        [],
        {},
        {"files": 5},
        {"files": [["a", 1, 1, {"mode": "TRAIN", "mode_step": 0}, 0]]},
        {"files": [["a", 1, 1, {"mode": "TRAIN", "mode_step": -1, "event_file_name": "b"}, 0]]},
        {"files": [["a", 1, 1, {"mode": ["TRAIN"], "mode_step": 1, "event_file_name": "b"}, 0]]},
        {"files": [[["a"], 1, 1, {"mode": "TRAIN", "mode_step": 1, "event_file_name": "b"}, 0]]},
        {"files": [["a", 1, 1, None, 0]]},
        {"names": [["t", "t"]]},
        {"names": [[5]]},
        {"names": [5]},
        {"shapes": [[{"tensorname": "t", "originalname": "t", "shape": [-1]}]]},
        {"shapes": [["t"]]},
        {"payloads": [[0, 1, 0]]},
        {"payloads": [["0", "0", 0]]},
        {"payloads": [[0, 0, 1]]},
        {"payloads": []},
    ],
    ids=json.dumps,
)
def test_a_head_that_says_what_no_index_may_say_is_refused(head):
    content = form.encode([cached(payload_of(), path="a")])
    start = len(form._MAGIC) + 4
    size, count = form._SIZES.unpack_from(content, start)
    fields = json.loads(content[form._HEAD_START : form._HEAD_START + size])
    changed = json.dumps({**fields, **head} if head else head).encode()
    numbers = content[form._HEAD_START + size :]
    harmed = signed(content[:start] + form._SIZES.pack(len(changed), count) + changed + numbers)
    with pytest.raises(form.UnusableCache):
        form.decode(harmed, IndexParser())


def test_problems_are_told_as_without_a_cache(steps):
    opened(steps)
    event = steps.root / "events/000000000001/000000000001_worker_0.tfevents"
    event.write_bytes(event.read_bytes()[:-60])
    with pytest.raises(SMDebugError):
        opened(steps).tensor("g").reduction_value(1, "l2")
    index = json.loads((steps.root / INDEX).read_text())
    assert index["meta"]["mode_step"] == 10
