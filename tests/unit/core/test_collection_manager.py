from __future__ import annotations

import json

import pytest

from smd_agent.core.collection import Collection
from smd_agent.core.collection_keys import CollectionKeys
from smd_agent.core.collection_manager import CollectionManager
from smd_agent.core.modes import ModeKeys
from smd_agent.core.reduction_config import ReductionConfig
from smd_agent.core.save_config import SaveConfig, SaveConfigMode
from smd_agent.errors import InvalidCollectionConfiguration, SMDebugError, SMDebugValueError
from smd_agent.framework.built_in_collections import built_in_collections

BUILT_IN = built_in_collections(losses="[Ll]oss_(?!input).*output")


def some_manager() -> CollectionManager:
    return CollectionManager(create_default=True, built_in=BUILT_IN)


def test_base_manager_starts_empty() -> None:
    assert CollectionManager().get_collections() == {}
    assert CollectionManager(built_in=BUILT_IN).get_collections() == {}


def test_get_creates_unless_told_not_to() -> None:
    manager = CollectionManager()
    assert manager.get("x") is manager.get("x")
    with pytest.raises(SMDebugError, match="Collection y has not been created"):
        manager.get("y", create=False)


def test_add_replaces_and_create_keeps() -> None:
    manager = CollectionManager({"x": Collection("x", "old")})
    manager.create_collection("x")
    assert manager.get("x").include_regex == ["old"]
    manager.add(Collection("x", "new"))
    assert manager.get("x").include_regex == ["new"]


def test_framework_class_is_used_for_new_collections() -> None:
    class Special(Collection):
        pass

    manager = CollectionManager(create_default=True, built_in={"a": ()}, collection_class=Special)
    assert isinstance(manager.get("a"), Special)
    assert isinstance(manager.get("b"), Special)


def test_preparation_gives_hook_configs_to_those_without() -> None:
    manager = some_manager()
    hook_config = SaveConfig(save_interval=4)
    own = ReductionConfig(["max"])
    manager.get("weights").save_config = SaveConfig({ModeKeys.TRAIN: SaveConfigMode(save_interval=3)})
    manager.get("weights").reduction_config = own
    manager.prepare(hook_config, ReductionConfig(["mean"]))
    weights = manager.get("weights")
    assert weights.save_config == SaveConfig(
        {mode: SaveConfigMode(3 if mode is ModeKeys.TRAIN else 4) for mode in ModeKeys}
    )
    assert weights.reduction_config == own
    assert manager.get("biases").save_config == hook_config
    assert manager.get("biases").reduction_config == ReductionConfig(["mean"])


def test_collection_changed_after_preparation_changes_no_other() -> None:
    manager = some_manager()
    hook_config = SaveConfig(save_interval=1)
    manager.prepare(hook_config, None)
    losses, weights = manager.get("losses").save_config, manager.get("weights").save_config
    assert losses is not None
    losses.end_step = 0
    assert weights == hook_config == SaveConfig(save_interval=1)


def test_preparation_without_reductions_means_raw() -> None:
    manager = some_manager()
    manager.prepare(SaveConfig(), None)
    assert manager.get("weights").reduction_config == ReductionConfig(save_raw_tensor=True)


def test_scalar_collections_stay_raw_and_have_no_histogram() -> None:
    manager = some_manager()
    manager.get("losses").reduction_config = ReductionConfig(["mean"])
    manager.add(Collection("metrics", "accuracy"))
    manager.prepare(SaveConfig(), ReductionConfig(["mean"], save_shape=True))
    assert manager.get("losses").reduction_config == ReductionConfig(save_raw_tensor=True)
    assert manager.get("metrics").reduction_config == ReductionConfig(save_raw_tensor=True, save_shape=True)
    assert not manager.get("losses").save_histogram
    assert manager.get("weights").save_histogram


def test_preparation_refuses_a_collection_that_can_match_nothing() -> None:
    manager = some_manager()
    manager.create_collection("mine")
    with pytest.raises(InvalidCollectionConfiguration) as refused:
        manager.prepare(SaveConfig(), None)
    assert refused.value.c_name == "mine"
    manager.get("mine").add_tensor_name("x")
    manager.prepare(SaveConfig(), None)
    assert manager.get("mine").save_config == SaveConfig()


def test_collection_made_after_preparation_is_complete() -> None:
    manager = some_manager()
    manager.prepare(SaveConfig(save_interval=4), None)
    late = manager.get("late")
    assert late.save_config == SaveConfig(save_interval=4)
    assert late.reduction_config == ReductionConfig(save_raw_tensor=True)


def test_documented_way_to_switch_off_a_default_collection_works() -> None:
    manager = some_manager()
    hook_config = SaveConfig(save_interval=1)
    manager.default_save_config = hook_config
    losses = manager.get(CollectionKeys.LOSSES)
    assert losses.save_config is not None
    losses.save_config.end_step = 0
    manager.prepare(hook_config, None)
    assert not any(losses.save_config.should_save_step(mode, 0) for mode in ModeKeys)
    weights = manager.get("weights").save_config
    assert weights is not None
    assert all(weights.should_save_step(mode, 3) for mode in ModeKeys)


def test_text_names_every_collection_and_the_workers() -> None:
    manager = some_manager()
    manager.set_num_workers(3)
    content = json.loads(manager.to_json())
    assert set(content) == {"collections", "_meta"}
    assert content["_meta"] == {"num_workers": 3}
    assert set(content["collections"]) == set(BUILT_IN)
    again = CollectionManager.load_from_string(manager.to_json())
    assert again == manager
    assert again.get_num_workers() == 3


@pytest.mark.parametrize(
    "text, sentence",
    [
        ("{", "a collections file must be JSON"),
        ('{"a": 1}', "allowed params for collection manager can only be one of collections,_meta"),
        ("[]", "allowed params for collection manager can only be one of collections,_meta"),
    ],
)
def test_other_text_is_refused(text: str, sentence: str) -> None:
    with pytest.raises(SMDebugValueError, match=sentence):
        CollectionManager.load_from_string(text)


def test_what_was_asked_for_is_kept_in_the_file():
    manager = CollectionManager()
    assert manager.asked_for is None
    manager.set_asked_for(["metric", "trees"])
    assert CollectionManager.load_from_string(manager.to_json()).asked_for == ["metric", "trees"]
    for written in (3, {"a": 1}, None):
        manager.update_meta({"asked_for": written})
        assert CollectionManager.load_from_string(manager.to_json()).asked_for is None
    manager.update_meta({"asked_for": ["trees", 3, None]})
    assert manager.asked_for == ["trees"]


def test_what_cannot_be_had_is_kept_in_the_file():
    manager = CollectionManager()
    assert (manager.cannot_save, manager.always_saved) == ({}, [])
    manager.set_asked_for(["trees"], ["metrics"])
    manager.set_cannot_save({"trees": "there are none"})
    manager.set_cannot_save({"labels": "nor here"})
    read = CollectionManager.load_from_string(manager.to_json())
    assert read.cannot_save == {"trees": "there are none", "labels": "nor here"}
    assert read.always_saved == ["metrics"]
    for written in (3, ["a"], {"a": 1}, None):
        manager.update_meta({"cannot_save": written, "always_saved": written})
        read = CollectionManager.load_from_string(manager.to_json())
        assert read.cannot_save == {}
    assert read.always_saved == []
