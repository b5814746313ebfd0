"""Harmed files of a run: every reader answers, with what can still be read and a named problem for the rest."""

from __future__ import annotations

import contextlib
import io
import json
import logging
import os
import socket
import struct
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
from crc32c import crc32c

from robustness.mutations import harmed_bytes, harmed_json
from robustness.part import Part
from smd_agent import create_trial
from smd_agent.analysis.trial import Trial
from smd_agent.cli import main
from smd_agent.core.collection_manager import CollectionManager
from smd_agent.core.modes import ModeKeys
from smd_agent.errors import ShapeUnavailableForStep, SMDebugError, TensorUnavailableForStep
from smd_agent.formats import messages
from smd_agent.formats.event_encoder import CHECKSUM_BYTES, CHECKSUM_KEY
from smd_agent.formats.paths import COLLECTIONS_FOLDER, END_MARKER, INDEX_CACHE, claim_path
from smd_agent.formats.tfrecord import FOOTER, FRAME_BYTES, FRAME_HEADER_BYTES, frame_header, masked_crc
from smd_agent.storage import index_files
from smd_agent.storage.event_file_reader import FileReader
from smd_agent.storage.run_writer import RunWriter
from smd_agent.storage.worker_files import LostSteps

MOST_OUTPUT = 500_000
LONGEST_SENTENCE = 1000

_SOUND: dict[str, bytes] = {}
# When all files were changed, as far as their times say. In seconds.
_TIME = 1e9
# Before the checksum of the cache of index files, and with it.
_CACHE_HEAD, _CACHE_SIGNED = 16, 20

_VALUES = (
    *(None, True, -1, 0, 1, 2**31, 2**62, 2**63 - 1, 2**64, 10**30, -(2**63), 1.5, float("nan"), float("inf")),
    *("", "x", "0", "-1", "\0", "a/b", "../../../../etc/passwd", "/etc/passwd", "/dev/zero", "/dev/stdin", "events"),
    *("..", "é" * 200, "x" * 5000, "\ud800", "\x1b[2J\x1b[31mX\x07", "a\nb", "\u202e", "(a+)+$", "[", "9" * 5000),
    *([], {}, [[]], [1], ["a"], [None], {"a": 1}, [2**40] * 5, [-1, -1], [0], [2**63]),
    *("TRAIN", "EVAL", "train", "GLOBAL", "NOPE"),
)
_KEYS = (
    *("tensorname", "x", "", "start_idx", "shape", "meta", "event_file_name", "workers", "collections", "_meta"),
    *("num_workers", "include_regex", "save_config", "reduction_config", "\x1b[2J", "count", "gone", "steps", "reason"),
)
_DTYPES = (0, 1, 2, 3, 7, 8, 14, 15, 18, 19, 20, 21, 23, 24, 25, 99, 101)
_DIMENSIONS = (-1, 0, 1, 2, 3, 2**40, 2**62, -(2**63))
_LENGTHS = (0, 2**31, 10**13, 2**40, 2**62)


def prepare(folder: Path) -> None:
    """Make a sound run of three steps and remember its files."""
    logging.getLogger("smd_agent").setLevel(logging.CRITICAL)
    os.environ["SMDEBUG_TRAINING_END_DELAY_REFRESH"] = "0"
    os.environ["SMDEBUG_MISSING_EVENT_FILE_RETRY_LIMIT"] = "0"
    with contextlib.redirect_stderr(io.StringIO()):
        _write_run(folder / "run")
    for path in (folder / "run").rglob("*"):
        os.utime(path, (_TIME, _TIME))
    index_files.WORTHWHILE = 1
    create_trial(str(folder / "run"), timeout=0)
    assert (folder / "run" / INDEX_CACHE).is_file()
    for path in (folder / "run").rglob("*"):
        if path.is_file():
            _SOUND[path.relative_to(folder / "run").as_posix()] = path.read_bytes()


def _write_run(root: Path) -> None:
    writer = RunWriter(str(root))
    writer.start("worker_0", True)
    for step, (mode, mode_step) in enumerate([(ModeKeys.TRAIN, 0), (ModeKeys.TRAIN, 1), (ModeKeys.EVAL, 0)]):
        file = writer.begin_step(step, mode, mode_step)
        file.add("Net_fc.weight", np.arange(12, dtype="f4").reshape(3, 4))
        file.add("complex", np.array([1 + 2j], "c8"))
        file.add("half", np.ones(3, "f2"))
        reductions = ("smdebug/reductions/mean/Net_fc.weight", "smdebug/reductions/abs_l2/other")
        file.add_scalars(reductions, np.array([1.0, 2.0]))
        file.add_text("trees/Feature", ["a", "b"])
        file.add_shape("Net_fc.weight", "Net_fc.weight", (3, 4))
        file.add("large", np.zeros(20_000, "f4"))
        writer.commit(file)
    manager = CollectionManager()
    manager.get("weights").include("weight")
    manager.get("weights").add_tensor_name("Net_fc.weight")
    writer.write_collections(manager.to_json())
    writer.close(True)
    lost = LostSteps("worker_0")
    lost.steps += [3, 4]
    assert lost.due
    lost.put(root)


def attempt(random: Random, folder: Path) -> str:
    """Harm one file, or an event file with an index that fits it; read; put the sound files back."""
    root = folder / "run"
    name = random.choice(sorted(name for name in _SOUND if not name.endswith(".ts")))
    kind = random.random()
    if kind < 0.05:
        changed = {name: _put_in_place_of(random, root / name)}
    else:
        changed = _harmed(random, name) if kind < 0.9 else _beside(random)
        for other, content in changed.items():
            (root / other).unlink(missing_ok=True)
            (root / other).write_bytes(content)
    if claim_path() in changed:
        (root / END_MARKER).unlink()
        changed[END_MARKER] = b""
    try:
        ends = {*_commands(root), _api(root), _without_index(root / name)}
    finally:
        # Those who read may have written a cache of what they found.
        for other in (*changed, INDEX_CACHE):
            _put_back(root, other)
    if "not opened" in ends:
        return "not opened, one sentence"
    return "read, what is damaged is named" if "named" in ends else "read"


def _put_back(root: Path, name: str) -> None:
    path = root / name
    if path.is_dir() and not path.is_symlink():
        path.rmdir()
    path.unlink(missing_ok=True)
    if name in _SOUND:
        path.write_bytes(_SOUND[name])
        os.utime(path, (_TIME, _TIME))


def _put_in_place_of(random: Random, path: Path) -> bytes:
    """Put something in the place of a file that is none, or has no end."""
    path.unlink()
    kind = random.randrange(6)
    if kind == 0:
        os.mkfifo(path)
    elif kind == 1:
        path.mkdir()
    elif kind in (2, 3):
        path.symlink_to(("/dev/zero", path.name)[kind - 2])
    else:
        path.touch()
        os.truncate(path, (0, 8 << 30)[kind - 4])
    return b""


def _beside(random: Random) -> dict[str, bytes]:
    """Return a claim of somebody, or a file under a name that an index or a collections file could have."""
    if random.random() < 0.5:
        claim = {"pid": os.getpid(), "host": socket.gethostname(), "started": "1"}
        return {claim_path(): json.dumps(harmed_json(random, claim, _VALUES, ("pid", "host", ""))).encode()}
    worker = random.choice(("worker_\x1b[2J", "\u202e", "_job-x", "x" * 200, "a\nb", ".."))
    step = random.choice(("3", "0" * 13, "9" * 30, "٣", "-1"))
    name = random.choice((f"index/000000000/{step}_{worker}.json", f"{COLLECTIONS_FOLDER}/{worker}_collections.json"))
    sound = random.choice([content for other, content in _SOUND.items() if other.endswith(".json")])
    return {name: harmed_bytes(random, sound) if random.random() < 0.5 else sound}


def _commands(root: Path) -> set[str]:
    ends = set()
    for words in (["ls", str(root), "--all"], ["show", str(root), "--rows"], ["show", str(root), "half", "--raw"]):
        written, said = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(written), contextlib.redirect_stderr(said):
            code = main(words)
        assert code in (0, 1, 2), f"{words[0]} ends with {code}"
        for text in (written.getvalue(), said.getvalue()):
            assert len(text) <= MOST_OUTPUT, f"{words[0]} prints {len(text)} characters"
            raw = [line for line in text.split("\n") if not line.isprintable()]
            assert not raw, f"{words[0]} prints {raw[0][:80]!r}"
        if code == 2:
            assert len(said.getvalue().splitlines()) == 1, f"{words[0]} says {said.getvalue()[:200]!r}"
        ends.add(("read", "named", "not opened")[code])
    return ends


def _api(root: Path) -> str:
    try:
        trial = create_trial(str(root), timeout=0)
        trial.maybe_refresh()
    except SMDebugError as error:
        _check_sentence(error)
        return "not opened"
    return _values(trial)


def _check_sentence(error: SMDebugError) -> None:
    sentence = str(error)
    assert len(sentence) <= LONGEST_SENTENCE, f"{len(sentence)} characters: {sentence[:80]}"
    assert sentence.isprintable(), f"not printable: {sentence[:80]!r}"


def _values(trial: Trial) -> str:
    end = "named" if trial.problems else "read"
    for collection in trial.collections():
        trial.tensor_names(collection=collection)
    for name in trial.tensor_names():
        tensor = trial.tensor(name)
        for step in tensor.steps(show_incomplete_steps=True):
            for ask in (tensor.value, tensor.reduction_values, tensor.shape, tensor.form, tensor.workers):
                end = max(end, _answered(ask, step), key=("read", "named").index)
        for mode in trial.modes():
            tensor.steps(mode)
    for saved in trial.iterate():
        end = max(end, _answered(lambda _, one=saved: one.statistics(), 0), key=("read", "named").index)
    return end


def _answered(ask: Callable[[int], object], step: int) -> str:
    try:
        ask(step)
    except (TensorUnavailableForStep, ShapeUnavailableForStep):
        # As in a sound run: of some tensors there are only reductions.
        return "read"
    except SMDebugError as error:
        _check_sentence(error)
        return "named"
    return "read"


def _without_index(path: Path) -> str:
    if path.suffix != ".tfevents":
        return "read"
    try:
        reader = FileReader(path)
    except OSError as error:
        return "named" if error.strerror else "?"
    try:
        with reader:
            for _ in reader.read_tensors():
                pass
    except SMDebugError:
        return "named"
    return "read"


def _harmed(random: Random, name: str) -> dict[str, bytes]:
    content = _SOUND[name]
    if name.endswith(".tfevents"):
        if random.random() < 0.3:
            return {name: harmed_bytes(random, content)}
        return _harmed_records(random, name, content)
    if name == INDEX_CACHE:
        return {name: _harmed_cache(random, content)}
    if random.random() < 0.25 or not name.endswith(".json"):
        return {name: harmed_bytes(random, content)}
    harmed = json.dumps(harmed_json(random, json.loads(content), _VALUES, _KEYS))
    return {name: harmed.encode()}


def _harmed_cache(random: Random, content: bytes) -> bytes:
    """Harm the cache of index files; mostly its checksum is then right again."""
    if random.random() < 0.2:
        return harmed_bytes(random, content)
    inside = bytearray(content[_CACHE_SIGNED:])
    for _ in range(random.choice((1, 1, 2, 8))):
        place = random.randrange(len(inside))
        if random.random() < 0.5:
            inside[place] = random.choice((0, 1, 2, 16, 127, 255, inside[place] ^ 1 << random.randrange(8)))
        else:
            number = struct.pack("<q", random.choice((-1, 0, 1, 16, 2**31, 2**40, 2**62, -(2**63))))
            inside[place & ~7 : (place & ~7) + 8] = number[: random.choice((4, 8))]
    return content[:_CACHE_HEAD] + struct.pack("<I", crc32c(inside)) + inside


def _harmed_records(random: Random, name: str, content: bytes) -> dict[str, bytes]:
    """Harm what is inside of one record; its frame, often its checksum, and nearly always the index fit again."""
    records = _records(content)
    harmed = random.randrange(len(records))
    records[harmed] = _harmed_record(random, records[harmed])
    framed = [_framed(random if number == harmed else None, record) for number, record in enumerate(records)]
    changed = {name: b"".join(framed)}
    if random.random() < 0.9:
        number = Path(name).name.partition("_")[0]
        index = next(one for one in _SOUND if one.startswith("index/") and Path(one).name.startswith(number))
        fields = json.loads(_SOUND[index])
        start = 0
        for entry, record in zip(fields["tensor_payload"], framed, strict=True):
            entry["start_idx"], entry["length"] = start, len(record)
            start += len(record)
        changed[index] = json.dumps(fields).encode()
    return changed


def _records(content: bytes) -> list[bytes]:
    records = []
    while content:
        size = struct.unpack("<Q", content[:8])[0]
        records.append(content[FRAME_HEADER_BYTES : FRAME_HEADER_BYTES + size])
        content = content[size + FRAME_BYTES :]
    return records


def _framed(random: Random | None, record: bytes) -> bytes:
    head = frame_header(len(record))
    if random is not None and random.random() < 0.05:
        length = struct.pack("<Q", random.choice(_LENGTHS))
        head = length + struct.pack("<I", masked_crc(length))
    return head + record + FOOTER


def _harmed_record(random: Random, record: bytes) -> bytes:
    event = messages.Event()
    event.ParseFromString(record[:-CHECKSUM_BYTES])
    if event.summary.value and random.random() < 0.8:
        _harm_value(random, event.summary.value[0])
        return _signed(random, event.SerializeToString())
    return _signed(random, harmed_bytes(random, record[:-CHECKSUM_BYTES]))


def _signed(random: Random, record: bytes) -> bytes:
    return record + CHECKSUM_KEY + struct.pack("<I", crc32c(record)) if random.random() < 0.5 else record


def _harm_value(random: Random, value: Any) -> None:
    random.choice(_HARMS)(random, value)


def _other_dimensions(random: Random, value: Any) -> None:
    dims = value.tensor.tensor_shape.dim
    if random.random() < 0.5:
        del dims[:]
    for _ in range(random.choice((1, 2, 3, 70))):
        dims.add().size = random.choice(_DIMENSIONS)


def _other_dtype(random: Random, value: Any) -> None:
    value.tensor.dtype = random.choice(_DTYPES)


def _other_content(random: Random, value: Any) -> None:
    value.tensor.tensor_content = random.randbytes(random.randint(0, 100))


def _other_name(random: Random, value: Any) -> None:
    value.tag = random.choice(("", "x" * 100_000, "\x1b[2J", "a\0b", "../x", "é"))


def _other_notes(random: Random, value: Any) -> None:
    for note in value.metadata.plugin_data:
        note.content = random.choice(("", "-1", "99", "x", "9" * 5000, "1e5", "٣"))


def _further_note(random: Random, value: Any) -> None:
    content = random.choice(("\x1b[31m", "x" * 10_000, ""))
    value.metadata.plugin_data.add(plugin_name="dtype", content=content)


def _another_kind(random: Random, value: Any) -> None:
    if random.random() < 0.5:
        value.simple_value = 3.0
    else:
        value.ClearField("tensor")


def _texts(random: Random, value: Any) -> None:
    value.tensor.string_val.extend([b"\xff\xfe" * 10, b"\x1b[31m"] * random.randint(0, 3))
    value.tensor.dtype = 7


def _listed(random: Random, value: Any) -> None:
    value.tensor.ClearField("tensor_content")
    field = random.choice(("float_val", "int64_val", "half_val", "scomplex_val"))
    getattr(value.tensor, field).extend([1] * random.randint(0, 30))
    if random.random() < 0.5:
        _other_dtype(random, value)


_HARMS = (
    *(_other_dimensions, _other_dtype, _other_content, _other_name, _other_notes, _further_note, _another_kind),
    *(_texts, _listed),
)

PART = Part(
    "run_files",
    "Harmed files of a run",
    "A run of three steps, written by the agent, has one of its collections, index or event files, its note of lost "
    "steps, or the cache of its index files harmed, as bytes, as JSON, or inside of a record or the cache whose "
    "checksum is then right again. "
    "Or a pipe, a folder, a link to a device or to itself, or 8 GiB of nothing stand in the place of a file. "
    "Or there are files beside those of the run: claims, and names that no writer makes. "
    "`create_trial` with every value, reduction, shape and statistic, `ls --all`, `show`, `show --raw` and "
    "`FileReader` read it.",
    20_000,
    prepare,
    attempt,
)
