"""The file that says what a step that went wrong was given."""

from __future__ import annotations

import json

import pytest

from smd_agent.formats.bundles import VERSION, Bundle, bundle_of, bundle_text
from smd_agent.formats.paths import bundle_folder, parse_bundle_folder

BUNDLE = Bundle(
    step=3,
    global_step=4,
    why="the loss is nan",
    loss="nan",
    model="Net",
    casts=[["cpu", "bfloat16"]],
    frames=[["/a/train.py", "main"]],
    operations=[["MmBackward0", 7]],
    words=["train.py"],
    versions={"Python": "3.12.1"},
)


def test_what_is_written_is_read():
    assert bundle_of(bundle_text(BUNDLE)) == BUNDLE


@pytest.mark.parametrize(
    "changed",
    [
        {"step": "3"},
        {"casts": [["cpu"]]},
        {"operations": [["MmBackward0", "7"]]},
        {"frames": ["main"]},
        {"words": [1]},
        {"versions": {"Python": 3}},
        {"version": VERSION + 1},
    ],
)
def test_what_is_none_is_refused(changed):
    assert bundle_of(json.dumps({**json.loads(bundle_text(BUNDLE)), **changed})) is None
    assert bundle_of("[]") is None


@pytest.mark.parametrize("step, worker", [(0, ""), (137, "worker_1")])
def test_a_folder_names_step_and_worker(step, worker):
    name = bundle_folder(step, worker).rpartition("/")[2]
    assert parse_bundle_folder(name) == (step, worker)
    assert parse_bundle_folder(f"{name}.tmp" if worker == "" else "step_") is None
