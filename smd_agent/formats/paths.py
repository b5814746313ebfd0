"""The names of a run's files: the only place that knows them. All are POSIX paths below the run's root.

======================================================  ====================================================
``events/<step>/<step>_<worker>.tfevents``              the tensors one worker saved at one step
``index/<step // 1000>/<step>_<worker>.json``           where in the event file each of them lies
``collections/000000000/<worker>_collections.json``     the collections of one worker
``training_job_end.ts``                                 empty; the run came to its end
``lost/<worker>.json``                                  the steps that one worker could not save
``about/<worker>.json``                                 with what one worker ran, and what saving took
``failures/<worker>.json``                              what failed of the agent's; only if something did
``series/<worker>_<table>_<segment>.smd``               numbers of every step, see `smd_agent.formats.series`
``bundles/step_<step>/bundle.json``                     what a step that went wrong was given
``bundles/step_<step>/tensors.safetensors``             its tensors, see `smd_agent.formats.bundles`
``control/<name>.request.json``                         what somebody asks the running training for
``control/<name>.plan.json``                            the same, and the training step at which it is obeyed
``control/answers/<name>_<worker>.json``                what one worker has done about it
``index_cache.smd``                                     what the index files say, in one; never needed
``claim.smd``                                           locked by the process that writes, and names it
``claim_<worker>.smd``                                  the same, for each of several workers
======================================================  ====================================================

Steps are global steps with twelve digits, index folders have nine. A file being written ends in ``.tmp``.
A segment of the series has fifteen digits; the one that was begun later has the higher number.
"""

from __future__ import annotations

import re

END_MARKER = "training_job_end.ts"
LOST_FOLDER = "lost"
ABOUT_FOLDER = "about"
FAILURES_FOLDER = "failures"
SERIES_FOLDER = "series"
CONTROL_FOLDER = "control"
ANSWERS_FOLDER = "control/answers"
BUNDLES_FOLDER = "bundles"
BUNDLE_FILE = "bundle.json"
BUNDLE_TENSORS = "tensors.safetensors"
EVENTS_FOLDER = "events"
INDEX_FOLDER = "index"
COLLECTIONS_FOLDER = "collections/000000000"
INDEX_CACHE = "index_cache.smd"
TEMPORARY_SUFFIX = ".tmp"

_STEPS_PER_INDEX_FOLDER = 1000
_STEP_FILE = re.compile(r"(\d+)_(.+)\.(?:json|tfevents)")
_WORKER_CLAIM = re.compile(r"claim_(.+)\.smd")
_SERIES_FILE = re.compile(r"(.+)_([a-z]+)_(\d+)\.smd")
_BUNDLE = re.compile(r"step_(\d{1,15})(?:_(.+))?")
_REQUEST_FILE = re.compile(r"([0-9a-z-]{1,60})\.(request|plan)\.json")
_COLLECTIONS_FILE = re.compile(r"(.+)_collections\.json")


def event_path(step: int, worker: str) -> str:
    """Name the event file of a global step."""
    return f"{EVENTS_FOLDER}/{step:012d}/{step:012d}_{_encoded(worker)}.tfevents"


def index_path(step: int, worker: str) -> str:
    """Name the index file of a global step."""
    return f"{INDEX_FOLDER}/{index_folder(step)}/{step:012d}_{_encoded(worker)}.json"


def index_folder(step: int) -> str:
    """Name the folder, below the index folder, that holds a global step's index file."""
    return f"{step // _STEPS_PER_INDEX_FOLDER:09d}"


def collections_path(worker: str) -> str:
    """Name the collections file of a worker."""
    return f"{COLLECTIONS_FOLDER}/{_encoded(worker)}_collections.json"


def lost_path(worker: str) -> str:
    """Name the file of the steps that a worker could not save."""
    return f"{LOST_FOLDER}/{_encoded(worker)}.json"


def about_path(worker: str) -> str:
    """Name the file in which a worker notes with what it ran, and what saving took."""
    return f"{ABOUT_FOLDER}/{_encoded(worker)}.json"


def failures_path(worker: str) -> str:
    """Name the file of what failed of the agent's in one worker."""
    return f"{FAILURES_FOLDER}/{_encoded(worker)}.json"


def series_path(worker: str, table: str, segment: int) -> str:
    """Name a file of the series of a worker."""
    return f"{SERIES_FOLDER}/{_encoded(worker)}_{table}_{segment:015d}.smd"


def parse_series_file(name: str) -> tuple[str, str, int] | None:
    """Take worker, table and segment from the base name of a file of the series; None for any other name."""
    match = _SERIES_FILE.fullmatch(name)
    return (_decoded(match[1]), match[2], int(match[3])) if match else None


def bundle_folder(step: int, worker: str) -> str:
    """Name the folder of a bundle of a training step; ``worker`` is empty where there is only one."""
    return f"{BUNDLES_FOLDER}/step_{step}{f'_{_encoded(worker)}' if worker else ''}"


def parse_bundle_folder(name: str) -> tuple[int, str] | None:
    """Take training step and worker from the base name of the folder of a bundle; None for any other name."""
    match = _BUNDLE.fullmatch(name)
    return (int(match[1]), _decoded(match[2] or "")) if match else None


def request_path(name: str, kind: str) -> str:
    """Name the file of a request, whose ``kind`` is ``request``, or ``plan`` once a worker has taken it."""
    return f"{CONTROL_FOLDER}/{name}.{kind}.json"


def answer_path(name: str, worker: str) -> str:
    """Name the file of a worker's answer to a request."""
    return f"{ANSWERS_FOLDER}/{name}_{_encoded(worker)}.json"


def parse_request_file(name: str) -> tuple[str, str] | None:
    """Take name and kind from the base name of the file of a request; None for any other name."""
    match = _REQUEST_FILE.fullmatch(name)
    return (match[1], match[2]) if match else None


def claim_path(worker: str | None = None) -> str:
    """Name the claim file of a run, or of one of several workers of a run."""
    return "claim.smd" if worker is None else f"claim_{_encoded(worker)}.smd"


def parse_worker_claim(name: str) -> str | None:
    """Take the worker from the base name of the claim file of one of several workers; None for any other name."""
    match = _WORKER_CLAIM.fullmatch(name)
    return _decoded(match[1]) if match else None


def parse_step_file(name: str) -> tuple[int, str] | None:
    """Take global step and worker from the base name of an event or index file; None for any other name."""
    match = _STEP_FILE.fullmatch(name)
    return (int(match[1]), _decoded(match[2])) if match else None


def parse_collections_file(name: str) -> str | None:
    """Take the worker from the base name of a collections file; None for any other name."""
    match = _COLLECTIONS_FILE.fullmatch(name)
    return _decoded(match[1]) if match else None


# A worker that is a TensorFlow device ("/job:localhost/...") is written with "_" for "/" and "-" for ":".
def _encoded(worker: str) -> str:
    return worker.replace("/", "_").replace(":", "-") if worker.startswith("/") else worker


def _decoded(worker: str) -> str:
    return worker.replace("_", "/").replace("-", ":") if worker.startswith("_") else worker
