"""A training as a job runs it: with checkpoints, metrics and placeholders, started again, and into a store."""

from __future__ import annotations

import atexit
import json
import re
import shutil
import signal
import subprocess
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from harness.runner import SITE_HOOK

from robustness.training import EVERYTHING, Training
from smd_agent.formats.messages import Event
from smd_agent.formats.tfrecord import FRAME_BYTES, read_record

CHECKPOINTS, METRICS, BOARD, BEFORE, WAY = "checkpoints", "metrics", "board", "before", "way"
ADDRESS = "s3://bucket/run"
_IN_ITS_FOLDER = re.compile(r"s3:.*(?:but in|stays in|goes into) (\S+)")


@dataclass
class Job(Training):
    """A training that writes checkpoints, with what a training job names: their folder, and that of its metrics.

    again: it was killed after a checkpoint, and goes on in its run.
    """

    again: bool = False

    def prepare(self, folder: Path) -> None:
        if self.again:
            ended = self.run(folder, SITE_HOOK, KILLED="1")
            assert ended.returncode == -signal.SIGKILL, ended.stderr
            before = folder / BEFORE
            before.mkdir()
            for name in (CHECKPOINTS, "run"):
                (folder / name).rename(before / name)
        super().prepare(folder)

    def run(
        self,
        folder: Path,
        site_hook: Path | None,
        name: str = "run",
        killed_when: Callable[[], bool] | None = None,
        **more: str,
    ) -> subprocess.CompletedProcess[str]:
        for made in (CHECKPOINTS, METRICS, BOARD):
            shutil.rmtree(folder / made, ignore_errors=True)
        if self.again and (folder / BEFORE).exists():
            shutil.copytree(folder / BEFORE, folder, dirs_exist_ok=True)
        (folder / "checkpointconfig.json").write_text(json.dumps({"LocalPath": str(folder / CHECKPOINTS)}))
        return super().run(folder, site_hook, name, killed_when, **more)

    def hook(self, folder: Path, name: str) -> dict[str, Any]:
        parameters = {**EVERYTHING["HookParameters"], "tensorboard_dir": str(folder / BOARD)}
        # Elsewhere it would not be the run to go on with.
        inner = "run" if self.again else "{host}-{rank}-{date}-{pid}"
        return {"LocalPath": str(folder / name / inner), "HookParameters": parameters}

    def variables(self, folder: Path) -> dict[str, str]:
        return {
            "CHECKPOINT_CONFIG_FILE_PATH": str(folder / "checkpointconfig.json"),
            "SAGEMAKER_METRICS_DIRECTORY": str(folder / METRICS),
        }

    def root(self, folder: Path) -> Path:
        run = folder / "run"
        return run / "run" if self.again else next(run.glob("*/"), run)

    def keeps(self, folder: Path) -> dict[str, object]:
        states = folder / CHECKPOINTS / "metadata.json"
        noted = json.loads(states.read_text()) if states.exists() else []
        return {
            **super().keeps(folder),
            "metrics": sum(len(path.read_text().splitlines()) for path in (folder / METRICS).glob("*.json")),
            "states": [state["latest-mode-step"] for state in noted],
            "events for TensorBoard": sum(map(_saved_in, (folder / BOARD).rglob("*tfevents*"))),
        }


def _saved_in(path: Path) -> int:
    """The number of events of saved steps; a kill may cost rows of the series."""
    data, found, place = path.read_bytes(), 0, 0
    while place < len(data):
        payload = bytes(read_record(data, place))
        found += not any(value.tag.startswith("series/") for value in Event.FromString(payload).summary.value)
        place += len(payload) + FRAME_BYTES
    return found


@dataclass
class StoredJob(Job):
    """A job whose run goes into a store that speaks S3; after it has ended, what is there is beside it."""

    @property
    def missing(self) -> bool:
        return not all(map(find_spec, ("moto", "s3fs")))

    def prepare(self, folder: Path) -> None:
        if self.missing:
            return
        from harness.store_server import store_server

        running = ExitStack()
        running.enter_context(store_server())
        atexit.register(running.close)
        super().prepare(folder)

    def run(
        self,
        folder: Path,
        site_hook: Path | None,
        name: str = "run",
        killed_when: Callable[[], bool] | None = None,
        **more: str,
    ) -> subprocess.CompletedProcess[str]:
        from harness.store_server import BUCKET, contents, files

        store = files()
        left = store.find(BUCKET)
        if left:
            store.rm(left)
        way = folder / WAY
        shutil.rmtree(way, ignore_errors=True)
        way.mkdir()
        ended = super().run(folder, site_hook, name, killed_when, **more)
        for path, content in contents(ADDRESS).items():
            place = folder / name / path
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(content)
        # Where the run is then, a line says.
        here = _IN_ITS_FOLDER.search(ended.stderr)
        if here is not None:
            shutil.copytree(here[1], folder / name, dirs_exist_ok=True)
        return ended

    def hook(self, folder: Path, name: str) -> dict[str, Any]:
        # A request takes longer than a step.
        return {"LocalPath": ADDRESS, "HookParameters": {"save_interval": 5, "save_all": True}}

    def variables(self, folder: Path) -> dict[str, str]:
        return {**super().variables(folder), "TMPDIR": str(folder / WAY), "SMD_AGENT_UPLOAD_SECONDS": "10"}

    def root(self, folder: Path) -> Path:
        return folder / "run"


_SCRIPT, _MODULES = "xgboost/checkpointed_rounds.py", ("xgboost", "sklearn")
_NAMED = "with folders of checkpoints, of a job's metrics and of files for TensorBoard"
XGBOOST_JOB = Job(_SCRIPT, _MODULES, manner=f", {_NAMED} and with placeholders in its run's name,")
XGBOOST_AGAIN = replace(
    XGBOOST_JOB, manner=", which was killed and goes on from its checkpoint in its run,", again=True
)
XGBOOST_STORED = StoredJob(
    _SCRIPT, (*_MODULES, "s3fs", "aiobotocore.session"), manner=", whose run goes into a store that speaks S3,"
)
# In the same process as that.
XGBOOST_BESIDE = replace(XGBOOST_JOB, modules=XGBOOST_STORED.modules)
