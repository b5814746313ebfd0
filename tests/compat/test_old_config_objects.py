"""The real smdebug 1.0.34, in its own interpreter, decides and serialises as we do, and reads our collections file.

SMDEBUG_PYTHON names an interpreter that has it.
"""

from __future__ import annotations

import json
import os
import subprocess
from typing import Any

import pytest

from smd_agent.config.hook_file import Source
from smd_agent.config.load import load_settings
from smd_agent.core.collection import Collection
from smd_agent.core.collection_manager import CollectionManager
from smd_agent.core.modes import ModeKeys
from smd_agent.core.reduction_config import ReductionConfig
from smd_agent.core.save_config import SaveConfig, SaveConfigMode
from smd_agent.pytorch.collection import BUILT_IN

OLD_PYTHON = os.environ.get("SMDEBUG_PYTHON", "")

pytestmark = pytest.mark.skipif(not OLD_PYTHON, reason="SMDEBUG_PYTHON names no interpreter with the old smdebug")

STEPS = 1200

RULES: list[dict[str, Any]] = [
    {},
    {"save_interval": 100, "end_step": 200},
    {"save_interval": 100, "end_step": 201},
    {"save_interval": 100, "start_step": 150},
    {"save_steps": [3, 7]},
    {"save_steps": [7, 3], "end_step": 0},
    {"end_step": 0},
    {"save_interval": 10, "start_step": 5},
    {"save_interval": "7", "start_step": "3", "end_step": "90"},
    {"save_interval": 1, "start_step": 4, "end_step": 7, "save_steps": [2, 9]},
]

REDUCTIONS: list[dict[str, Any]] = [
    {},
    {"reductions": "min,max,l1_norm,abs_mean,abs_l2_norm", "save_raw_tensor": True},
    {"reductions": " std, variance,,sum,prod,l2_norm ", "save_shape": True},
]

# What both systems understand; every field of it merges.
HOOK_PARAMETERS: dict[str, Any] = {
    "save_interval": "100",
    "train.save_interval": "2",
    "eval.start_step": "4",
    "save_steps": "3,7",
    "end_step": "50",
    "reductions": "mean,l1_norm",
    "save_raw_tensor": True,
    "include_regex": "relu,conv",
}
COLLECTIONS: list[dict[str, Any]] = [
    {
        "CollectionName": "weights",
        "CollectionParameters": {
            "save_interval": "5",
            "eval.save_interval": "9",
            "include_regex": "fc,bn",
            "reductions": "max,abs_l2_norm",
            "save_histogram": "False",
        },
    },
    {"CollectionName": "biases", "CollectionParameters": {"predict.save_steps": "1,2"}},
    {"CollectionName": "mine", "CollectionParameters": {"include_regex": "^x", "start_step": 2}},
]

OLD_SIDE = """
import json, sys, tempfile
from smdebug.core.collection_manager import CollectionManager
from smdebug.core.modes import ModeKeys
from smdebug.core.reduction_config import ReductionConfig
from smdebug.core.save_config import SaveConfig, SaveConfigMode
from smdebug.pytorch import Hook

task = json.load(sys.stdin)
answer = {"rules": [], "reductions": [], "files": []}
for fields in task["rules"]:
    config = SaveConfig(**fields)
    saved = [step for step in range(task["steps"]) if config.should_save_step(ModeKeys.TRAIN, step)]
    answer["rules"].append([saved, config.to_json_dict()])
for fields in task["reductions"]:
    answer["reductions"].append(ReductionConfig.from_dict(fields).to_json_dict())
partial = SaveConfig({ModeKeys.TRAIN: SaveConfigMode(save_interval=3)})
answer["partial"] = partial.to_json_dict()
partial.merge_default_save_config(SaveConfig(save_interval=9))
answer["merged"] = partial.to_json_dict()
for text in task["files"]:
    answer["files"].append(CollectionManager.load_from_string(text).to_json_dict())
with tempfile.TemporaryDirectory() as folder:
    path = folder + "/hook.json"
    with open(path, "w") as file:
        json.dump({**task["hook"], "LocalPath": folder + "/run"}, file)
    hook = Hook.create_from_json_file(path)
    answer["hook"] = {
        "save_config": hook.save_config.to_json_dict(),
        "reduction_config": hook.reduction_config.to_json_dict(),
        "include_collections": sorted(hook.include_collections),
        "collections": hook.collection_manager.to_json_dict()["collections"],
    }
    sys.stderr.flush()
    with open(task["answer"], "w") as file:
        json.dump(answer, file)
    hook.close()
"""


def our_files() -> list[CollectionManager]:
    full = CollectionManager(create_default=True, built_in=BUILT_IN)
    full.set_num_workers(4)
    full.add(
        Collection("mine", "^x", ["y"], ReductionConfig(["min"], norms=["l2"]), SaveConfig(save_interval=3), False)
    )
    prepared = CollectionManager(create_default=True, built_in=BUILT_IN)
    prepared.get("weights").save_config = SaveConfig({ModeKeys.EVAL: SaveConfigMode(save_steps=[4])})
    prepared.get("weights").reduction_config = ReductionConfig(["median", "mean"], ["median"])
    prepared.prepare(SaveConfig(save_interval=7, end_step=70), ReductionConfig(["median"], save_shape=True))
    return [CollectionManager(), full, prepared]


@pytest.fixture(scope="module")
def old(tmp_path_factory: pytest.TempPathFactory) -> Any:
    path = tmp_path_factory.mktemp("old") / "answer.json"
    task = {
        "steps": STEPS,
        "rules": RULES,
        "reductions": REDUCTIONS,
        "files": [manager.to_json() for manager in our_files()],
        "hook": {"HookParameters": HOOK_PARAMETERS, "CollectionConfigurations": COLLECTIONS},
        "answer": str(path),
    }
    hidden = ("PYTHONPATH", "SMDEBUG_CONFIG_FILE_PATH", "SMD_AGENT_HOOK", "USE_SMDEBUG")
    subprocess.run(
        [OLD_PYTHON, "-W", "ignore", "-c", OLD_SIDE],
        input=json.dumps(task),
        text=True,
        check=True,
        stdout=subprocess.DEVNULL,
        env={name: value for name, value in os.environ.items() if name not in hidden},
    )
    return json.loads(path.read_text())


def test_same_steps_are_saved(old: Any) -> None:
    for fields, (saved, written) in zip(RULES, old["rules"], strict=True):
        config = SaveConfig(**fields)
        ours = [step for step in range(STEPS) if config.should_save_step(ModeKeys.TRAIN, step)]
        assert ours == saved, fields
        assert config.to_json_dict() == written
        assert SaveConfig.from_dict(written) == config


def test_partial_configs_are_written_and_completed_alike(old: Any) -> None:
    partial = SaveConfig({ModeKeys.TRAIN: SaveConfigMode(save_interval=3)})
    assert partial.to_json_dict() == old["partial"]
    partial.merge_default_save_config(SaveConfig(save_interval=9))
    assert partial.to_json_dict() == old["merged"]


def test_reductions_are_read_and_written_alike(old: Any) -> None:
    for fields, written in zip(REDUCTIONS, old["reductions"], strict=True):
        config = ReductionConfig.from_dict(fields)
        assert config is not None
        assert config.to_json_dict() == written


def test_old_library_reads_our_collections_files(old: Any) -> None:
    for manager, read in zip(our_files(), old["files"], strict=True):
        expected = manager.to_json_dict()
        for collection in expected["collections"].values():
            # The one thing it does not know, and must not stumble over.
            (collection["reduction_config"] or {}).pop("extra_reductions", None)
        assert read == expected


def test_median_is_in_a_file_the_old_library_reads() -> None:
    assert '"extra_reductions": "median,abs_median"' in our_files()[2].to_json()


def test_hook_file_is_merged_alike(old: Any) -> None:
    content = {"HookParameters": HOOK_PARAMETERS, "CollectionConfigurations": COLLECTIONS}
    settings = load_settings(Source("hook.json", text=json.dumps(content)))
    hook = old["hook"]
    assert settings.warnings == ()
    assert settings.save_config.to_json_dict() == hook["save_config"]
    assert settings.reduction_config is not None
    assert settings.reduction_config.to_json_dict() == hook["reduction_config"]
    assert {*settings.include_collections, "default", "losses"} == set(hook["include_collections"])
    assert list(settings.include_regex) == hook["collections"]["default"]["include_regex"]
    for ours in settings.collections:
        theirs = hook["collections"][ours.name]
        built_in = list(BUILT_IN.get(ours.name, ()))
        assert [*built_in, *ours.include_regex] == theirs["include_regex"]
        assert ours.save_config is not None
        assert ours.save_config.to_json_dict() == theirs["save_config"]
        assert (ours.reduction_config and ours.reduction_config.to_json_dict()) == theirs["reduction_config"]
        assert (True if ours.save_histogram is None else ours.save_histogram) == theirs["save_histogram"]
