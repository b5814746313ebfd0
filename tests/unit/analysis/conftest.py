import json

import numpy as np
import pytest
from crc32c import crc32c

from smd_agent.cli import main
from smd_agent.core.collection_manager import CollectionManager
from smd_agent.core.modes import ModeKeys
from smd_agent.formats.event_encoder import HeadEncoder, Stamp, tail
from smd_agent.formats.index import index_text, shape_fragment, tensor_fragment
from smd_agent.formats.paths import END_MARKER, collections_path, event_path, index_path
from smd_agent.formats.tfrecord import FRAME_HEADER_BYTES

TRAIN, EVAL = ModeKeys.TRAIN, ModeKeys.EVAL
RED = "smdebug/reductions/"


class Run:
    """A run folder that a test writes file by file."""

    def __init__(self, root):
        self.root = root

    def collections(self, worker="worker_0", num_workers=1, asked=None, cannot=None, **regexes):
        manager = CollectionManager()
        if asked is not None:
            manager.set_asked_for(asked, ["losses"])
            manager.set_cannot_save(cannot or {})
        for name, regex in regexes.items():
            manager.get(name).include(regex)
        manager.set_num_workers(num_workers)
        self._write(collections_path(worker), manager.to_json().encode())
        return self

    def step(self, step, tensors=None, mode=ModeKeys.TRAIN, mode_step=None, worker="worker_0", shapes=None, event=True):
        mode_step = step if mode_step is None else mode_step
        stamp = Stamp(step, mode, mode_step, 1000.0 + step)
        content, entries = b"", []
        for name, value in (tensors or {"t": np.full((2, 2), step, np.float32)}).items():
            value = np.asarray(value)
            body = HeadEncoder().head(stamp, name, value.dtype, value.shape) + value.tobytes()
            record = body + tail(crc32c(body[FRAME_HEADER_BYTES:]))
            entries.append(tensor_fragment(json.dumps(name), len(content), len(record)))
            content += record
        if event:
            self._write(event_path(step, worker), content)
        noted = [
            shape_fragment(json.dumps(name), json.dumps(f"{name}!"), shape) for name, shape in (shapes or {}).items()
        ]
        text = index_text(mode.name, mode_step, event_path(step, worker), entries, noted)
        self._write(index_path(step, worker), text.encode())
        return self

    def end(self):
        self._write(END_MARKER, b"")
        return self

    def _write(self, relative, content):
        path = self.root / relative
        path.parent.mkdir(parents=True, exist_ok=True)
        # As the agent does it: a file that can be read is whole.
        temporary = self.root / "temporary"
        temporary.write_bytes(content)
        temporary.replace(path)


@pytest.fixture
def run(tmp_path):
    return Run(tmp_path / "run")


@pytest.fixture(autouse=True)
def short_waits(monkeypatch):
    monkeypatch.setattr("smd_agent.analysis.collections_files.POLL_SECONDS", 0.01)
    monkeypatch.setattr("smd_agent.analysis.trial.POLL_SECONDS", 0.01)
    monkeypatch.setattr("smd_agent.storage.run_reader.EVENT_FILE_POLL_SECONDS", 0.01)
    monkeypatch.setenv("SMDEBUG_TRAINING_END_DELAY_REFRESH", "0")


@pytest.fixture
def command(run, capsys):
    def call(name, *words):
        code = main([name, str(run.root), *words])
        written = capsys.readouterr()
        return code, written.out.splitlines(), written.err.splitlines()

    return call


@pytest.fixture
def two_modes(run):
    run.collections(weights="weight$", losses="loss", all=".*")
    for step in range(3):
        run.step(step, {"a.weight": np.ones((2, 3), np.float32), "loss": np.float64(step)}, TRAIN, step * 10)
    run.step(
        3,
        {"a.weight": np.ones((2, 3), np.float32), RED + "mean/g": np.float64(0.5), RED + "l2/g": np.float64(2)},
        EVAL,
        0,
    )
    return run
