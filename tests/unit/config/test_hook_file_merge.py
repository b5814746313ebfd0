from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from harness.hook_files import hook, load, one_collection

from smd_agent.config.keys import DEFAULT_OUT_DIR
from smd_agent.core.modes import ModeKeys
from smd_agent.core.reduction_config import ReductionConfig
from smd_agent.core.save_config import SaveConfig, SaveConfigMode

if TYPE_CHECKING:
    from pathlib import Path


def rule(**fields: Any) -> SaveConfigMode:
    return SaveConfigMode(**fields)


@pytest.mark.parametrize("content", [{}, {"HookParameters": None, "CollectionConfigurations": None}])
def test_empty_file_gives_the_documented_defaults(content: dict[str, Any]) -> None:
    settings = load(content)
    assert settings.out_dir == DEFAULT_OUT_DIR
    assert settings.save_config == SaveConfig()
    assert settings.reduction_config is None
    assert settings.include_collections == settings.collections == settings.include_regex == ()
    assert settings.include_workers == "one"
    assert not (settings.save_all)
    assert not (settings.dry_run)
    assert not (settings.export_tensorboard)
    assert settings.tensorboard_dir is None
    assert settings.warnings == ()


def test_default_interval_is_the_frameworks() -> None:
    listed = {"CollectionConfigurations": [{"CollectionName": "a", "CollectionParameters": {"start_step": 1}}]}
    settings = load(listed, default_save_interval=10)
    assert settings.save_config == SaveConfig(save_interval=10)
    assert settings.collections[0].save_config == SaveConfig(save_interval=10, start_step=1)


def test_worked_example_of_the_merge_order() -> None:
    settings = load(
        {
            "HookParameters": {
                "save_interval": 100,
                "train.save_interval": 2,
                "save_steps": "3,7",
                "end_step": 50,
            },
            "CollectionConfigurations": [
                {
                    "CollectionName": "weights",
                    "CollectionParameters": {"save_interval": 5, "eval.save_interval": 9},
                },
                {"CollectionName": "biases", "CollectionParameters": {}},
            ],
        }
    )
    rest = {"save_steps": [3, 7], "end_step": 50}
    weights, biases = settings.collections
    assert weights.save_config == SaveConfig(
        {
            ModeKeys.TRAIN: rule(save_interval=5, **rest),
            ModeKeys.EVAL: rule(save_interval=9, **rest),
            ModeKeys.PREDICT: rule(save_interval=5, **rest),
            ModeKeys.GLOBAL: rule(save_interval=5, **rest),
        }
    )
    assert biases.save_config is None
    assert settings.save_config == SaveConfig(
        {mode: rule(save_interval=2 if mode is ModeKeys.TRAIN else 100, **rest) for mode in ModeKeys}
    )
    assert settings.include_collections == ("weights", "biases")


FIELDS = {"save_interval": (2, 3, 4, 5), "start_step": (2, 3, 4, 5), "end_step": (2, 3, 4, 5)}


@pytest.mark.parametrize("field", [*FIELDS, "save_steps"])
def test_each_field_is_merged_by_itself_and_later_layers_win(field: str) -> None:
    layers = FIELDS.get(field, ([2], [3], [4], [5]))
    hook_keys = {field: layers[0], f"eval.{field}": layers[1]}
    own = {field: layers[2], f"predict.{field}": layers[3]}

    def seen(config: SaveConfig | None, mode: ModeKeys) -> object:
        assert config is not None
        return getattr(config.get_save_config(mode), field)

    of_hook = hook(**hook_keys).save_config
    assert [seen(of_hook, mode) for mode in (ModeKeys.TRAIN, ModeKeys.EVAL)] == [layers[0], layers[1]]
    mode_only = one_collection({f"predict.{field}": layers[3]}, **hook_keys).save_config
    assert [seen(mode_only, mode) for mode in ModeKeys] == [layers[0], layers[1], layers[3], layers[0]]
    both = one_collection(own, **hook_keys).save_config
    assert [seen(both, mode) for mode in ModeKeys] == [layers[2], layers[2], layers[3], layers[2]]


@pytest.mark.parametrize("key", ["TRAIN.save_interval", "Train.save_interval", "train.save_interval"])
def test_mode_prefix_is_read_in_any_case(key: str) -> None:
    settings = hook(**{key: 3})
    assert settings.save_config.get_save_config(ModeKeys.TRAIN).save_interval == 3
    assert settings.warnings == ()


@pytest.mark.parametrize(
    "parameters, expected",
    [
        ({}, None),
        ({"reductions": "mean,l1"}, ReductionConfig(["mean"], norms=["l1"])),
        ({"reductions": ["mean", "abs_l2_norm"]}, ReductionConfig(["mean"], abs_norms=["l2"])),
        (
            {"reductions": "median", "save_raw_tensor": True},
            ReductionConfig(["median"], save_raw_tensor=True),
        ),
        ({"reductions": "mean", "save_raw_tensor": "yes"}, ReductionConfig(["mean"], save_raw_tensor=True)),
        ({"reductions": "mean", "save_shape": "True"}, ReductionConfig(["mean"], save_shape=True)),
        ({"save_raw_tensor": True}, ReductionConfig(save_raw_tensor=True)),
        ({"save_shape": True}, ReductionConfig(save_raw_tensor=True, save_shape=True)),
        ({"save_shape": True, "save_raw_tensor": False}, ReductionConfig(save_shape=True)),
        ({"reductions": ""}, ReductionConfig(save_raw_tensor=True)),
    ],
)
def test_what_is_saved_of_a_tensor(parameters: dict[str, Any], expected: ReductionConfig | None) -> None:
    assert hook(**parameters).reduction_config == expected
    assert one_collection(parameters).reduction_config == expected
    assert hook(**parameters).warnings == ()


def test_a_wish_to_save_nothing_is_not_followed_silently() -> None:
    settings = hook(save_raw_tensor=False)
    assert settings.reduction_config is None
    assert settings.warnings == (
        "hook.json: HookParameters.save_raw_tensor is ignored: without reductions and save_shape nothing "
        "would be "
        "saved",
    )


def test_reductions_of_a_collection_replace_the_hooks_and_flags_change_them() -> None:
    of_hook = {"reductions": "mean", "save_shape": True}
    assert one_collection({}, **of_hook).reduction_config is None
    assert one_collection({"reductions": "max"}, **of_hook).reduction_config == ReductionConfig(["max"])
    assert one_collection({"save_raw_tensor": True}, **of_hook).reduction_config == ReductionConfig(
        ["mean"], save_raw_tensor=True, save_shape=True
    )
    assert one_collection({"reductions": ""}, **of_hook).reduction_config == ReductionConfig(save_raw_tensor=True)


def test_collection_listed_twice_adds_regexes_and_takes_the_last_steps() -> None:
    first = {"include_regex": "a", "save_interval": 5, "reductions": "min", "save_histogram": False}
    listed = [
        {"CollectionName": "weights", "CollectionParameters": first},
        {"CollectionName": "weights", "CollectionParameters": {"include_regex": "b", "start_step": 3}},
    ]
    settings = load({"CollectionConfigurations": listed})
    (weights,) = settings.collections
    assert weights.include_regex == ("a", "b")
    assert weights.save_config == SaveConfig(start_step=3)
    assert weights.reduction_config == ReductionConfig(["min"])
    assert weights.save_histogram is False
    assert settings.include_collections == ("weights",)
    assert len(settings.warnings) == 1
    assert "lists weights more than once" in settings.warnings[0]
    again = [*listed, {"CollectionName": "weights", "CollectionParameters": {"reductions": "max"}}]
    (weights,) = load({"CollectionConfigurations": again}).collections
    assert weights.save_config is None
    assert weights.reduction_config == ReductionConfig(["max"])


def test_include_collections_of_the_hook_come_first() -> None:
    settings = load(
        {
            "HookParameters": {"include_collections": "biases, weights"},
            "CollectionConfigurations": [{"CollectionName": "gradients"}, {"CollectionName": "biases"}],
        }
    )
    assert settings.include_collections == ("biases", "weights", "gradients")


@pytest.mark.parametrize(
    "parameters, folder",
    [
        ({"export_tensorboard": True}, "/tmp/run/tensorboard"),
        ({"tensorboard_dir": "/tmp/tb"}, "/tmp/tb"),
        ({"export_tensorboard": "true", "tensorboard_dir": "/tmp/tb"}, "/tmp/tb"),
        ({"export_tensorboard": False, "tensorboard_dir": "/tmp/tb"}, None),
    ],
)
def test_tensorboard_folder(parameters: dict[str, Any], folder: str | None) -> None:
    settings = load({"LocalPath": "/tmp/run", "HookParameters": parameters})
    assert settings.tensorboard_dir == folder
    assert settings.export_tensorboard is (folder is not None)


def test_in_a_training_job_only_the_tensorboard_file_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "tb.json"
    monkeypatch.setenv("TRAINING_JOB_NAME", "")
    monkeypatch.setenv("TENSORBOARD_CONFIG_FILE_PATH", str(path))
    assert hook(tensorboard_dir="/tmp/tb").tensorboard_dir is None
    path.write_text('{"LocalPath": "/tmp/from_job"}')
    assert hook().tensorboard_dir == "/tmp/from_job"
