from __future__ import annotations

import pickle

import pytest

from smd_agent.core.modes import ModeKeys
from smd_agent.core.save_config import SaveConfig, SaveConfigMode
from smd_agent.errors import SMDebugTypeError, SMDebugValueError

RULES = [
    ({}, [0, 500, 1000]),
    ({"save_interval": 100, "end_step": 200}, [0, 100]),
    ({"save_interval": 100, "end_step": 201}, [0, 100, 200]),
    ({"save_interval": 100, "start_step": 150, "end_step": 400}, [200, 300]),
    ({"save_steps": [3, 7]}, [0, 3, 7, 500, 1000]),
    ({"save_steps": [7, 3], "end_step": 0}, [3, 7]),
    ({"end_step": 0}, []),
    ({"start_step": 5, "save_interval": 10, "end_step": 30}, [10, 20]),
    ({"save_interval": 500, "save_steps": [500, 999], "start_step": 1}, [500, 999, 1000]),
    ({"save_interval": 1, "start_step": 4, "end_step": 7, "save_steps": [2, 9]}, [2, 4, 5, 6, 9]),
]


@pytest.mark.parametrize("fields, saved", RULES)
def test_rule_saves_exactly_the_documented_steps(fields: dict, saved: list[int]) -> None:
    for end in (0, 1, 500, 777, 1001):
        assert SaveConfigMode(**fields).steps_below(end) == {step for step in saved if step < end}
    rule = SaveConfigMode(**fields)
    assert [step for step in range(1001) if rule.should_save_step(step)] == saved


@pytest.mark.parametrize("fields, saved", RULES)
def test_next_step_is_the_first_saved_step_from_there_on(fields: dict, saved: list[int]) -> None:
    rule = SaveConfigMode(**fields)
    for step in range(1001):
        expected = next((one for one in saved if one >= step), None)
        found = rule.next_step(step)
        if expected is None and found is not None:
            assert found > 1000
        else:
            assert found == expected


def test_next_step_is_none_when_nothing_will_come() -> None:
    assert SaveConfigMode(save_interval=10, end_step=20).next_step(11) is None
    assert SaveConfigMode(end_step=0, save_steps=[4]).next_step(5) is None


@pytest.mark.parametrize(
    "fields, sentence",
    [
        ({"save_interval": 0}, "save_interval=0 must be a whole number of at least 1"),
        ({"save_interval": -3}, "save_interval=-3 must be a whole number of at least 1"),
        ({"save_interval": "x"}, "save_interval='x' must be a whole number of at least 1"),
        ({"save_interval": 2.5}, "save_interval=2.5 must be a whole number of at least 1"),
        ({"start_step": float("nan")}, "start_step=nan must be a whole number"),
        ({"end_step": [1]}, "end_step=[1] must be a whole number"),
        ({"save_steps": "1,2"}, "save_steps=1,2 must be type(list(int))"),
        ({"save_steps": ["1"]}, "save_steps=['1'] must be type(list(int))"),
        ({"save_steps": 7}, "save_steps=7 must be type(list(int))"),
    ],
)
def test_wrong_field_is_refused_in_one_sentence(fields: dict, sentence: str) -> None:
    with pytest.raises(SMDebugValueError) as refused:
        SaveConfigMode(**fields)
    assert str(refused.value) == sentence


def test_strings_and_whole_floats_are_taken_as_numbers() -> None:
    assert SaveConfigMode("5", "1", 100.0) == SaveConfigMode(5, 1, 100)


def test_assigned_field_is_checked_too() -> None:
    rule = SaveConfigMode()
    rule.end_step = "8"  # type: ignore[assignment]
    assert rule.end_step == 8
    with pytest.raises(SMDebugValueError, match="save_interval=0"):
        rule.save_interval = 0


def test_save_steps_are_not_shared() -> None:
    given = [1]
    first, second = SaveConfigMode(save_steps=given), SaveConfigMode()
    given.append(2)
    SaveConfigMode().save_steps.append(9)
    assert first.save_steps == [1]
    assert second.save_steps == []


def test_same_rule_in_all_modes_by_default() -> None:
    config = SaveConfig(save_interval=3)
    assert all(config.get_save_config(mode) == SaveConfigMode(save_interval=3) for mode in ModeKeys)


def test_mode_left_out_has_the_defaults_when_asked() -> None:
    config = SaveConfig({ModeKeys.TRAIN: SaveConfigMode(save_interval=7)})
    assert config.should_save_step(ModeKeys.TRAIN, 14)
    assert config.should_save_step(ModeKeys.EVAL, 500)
    assert not config.should_save_step(ModeKeys.EVAL, 14)


def test_mode_left_out_is_null_in_json_and_comes_back_as_left_out() -> None:
    config = SaveConfig({ModeKeys.TRAIN: SaveConfigMode(save_interval=7)})
    assert config.to_json_dict() == {
        "TRAIN": {"save_interval": 7, "save_steps": [], "start_step": 0, "end_step": None},
        "EVAL": None,
        "PREDICT": None,
        "GLOBAL": None,
    }
    assert SaveConfig.from_json(config.to_json()) == config
    assert config != SaveConfig(save_interval=7)


def test_merging_fills_only_the_modes_left_out() -> None:
    config = SaveConfig({ModeKeys.TRAIN: SaveConfigMode(save_interval=7)})
    default = SaveConfig(save_interval=9)
    config.merge_default_save_config(default)
    assert config.get_save_config(ModeKeys.TRAIN).save_interval == 7
    assert config.get_save_config(ModeKeys.GLOBAL).save_interval == 9
    config.get_save_config(ModeKeys.GLOBAL).save_interval = 1
    assert default.get_save_config(ModeKeys.GLOBAL).save_interval == 9


def test_field_assigned_to_the_whole_config_reaches_every_mode() -> None:
    config = SaveConfig({ModeKeys.TRAIN: SaveConfigMode(save_interval=7)})
    config.end_step = 0
    assert not any(config.should_save_step(mode, 0) for mode in ModeKeys)
    assert config.end_step == 0
    assert config.get_save_config(ModeKeys.TRAIN).save_interval == 7
    with pytest.raises(SMDebugValueError, match="save_interval differs by mode"):
        _ = config.save_interval


def test_copy_is_independent() -> None:
    config = SaveConfig(save_interval=3)
    copied = config.copy()
    copied.save_interval = 4
    assert config == SaveConfig(save_interval=3)


def test_configs_pickle() -> None:
    config = SaveConfig({ModeKeys.TRAIN: SaveConfigMode(2, 3, 4, [5])})
    assert pickle.loads(pickle.dumps(config)) == config


@pytest.mark.parametrize(
    "given, expected",
    [
        (None, SaveConfig()),
        (SaveConfigMode(save_interval=4), SaveConfig(save_interval=4)),
        ({}, SaveConfig({})),
        ({"train": {"save_interval": 4}}, SaveConfig({ModeKeys.TRAIN: SaveConfigMode(save_interval=4)})),
        ({ModeKeys.EVAL: SaveConfigMode(4)}, SaveConfig({ModeKeys.EVAL: SaveConfigMode(4)})),
        ({"PREDICT": None}, SaveConfig({})),
    ],
)
def test_parse_takes_what_a_hook_takes(given: object, expected: SaveConfig) -> None:
    assert SaveConfig.parse(given) == expected


def test_parse_refuses_other_types() -> None:
    with pytest.raises(SMDebugTypeError, match="obj=3 cannot be parsed into a SaveConfig object"):
        SaveConfig.parse(3)
    with pytest.raises(SMDebugValueError, match="mode='save_interval' must be one of TRAIN,EVAL,PREDICT,GLOBAL"):
        SaveConfig.parse({"save_interval": {}})


@pytest.mark.parametrize("modes", [{"TRAIN": SaveConfigMode()}, {ModeKeys.TRAIN: {"save_interval": 1}}, 3])
def test_constructor_takes_only_modes_and_rules(modes: object) -> None:
    with pytest.raises(SMDebugValueError, match="must be of type ModeKey,SaveConfigMode"):
        SaveConfig(modes)  # type: ignore[arg-type]


def test_set_save_config_takes_only_rules() -> None:
    with pytest.raises(SMDebugValueError, match="save_config_mode=4 must be type SaveConfigMode"):
        SaveConfig().set_save_config(ModeKeys.TRAIN, 4)  # type: ignore[arg-type]


def test_defaults_apply_to_fields_a_listed_mode_leaves_out() -> None:
    config = SaveConfig.from_dict({"TRAIN": {"start_step": 2}}, {"save_interval": 10})
    assert config.get_save_config(ModeKeys.TRAIN) == SaveConfigMode(10, 2)
