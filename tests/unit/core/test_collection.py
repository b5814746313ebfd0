from __future__ import annotations

import pytest

from smd_agent.core.collection import Collection
from smd_agent.core.modes import ModeKeys
from smd_agent.core.reduction_config import ReductionConfig
from smd_agent.core.save_config import SaveConfig, SaveConfigMode
from smd_agent.errors import SMDebugTypeError, SMDebugValueError


def test_regex_is_searched_anywhere_and_names_are_exact() -> None:
    collection = Collection("c", include_regex=["relu$", "^conv"], tensor_names=["Net_fc.weight"])
    assert collection.matches("Net_relu")
    assert collection.matches("conv1_output_0")
    assert collection.matches("Net_fc.weight")
    assert not collection.matches("Net_fc.weight2")
    assert not collection.matches("Net_conv1_output_0")


def test_a_regex_that_has_passed_over_a_tensor_is_not_written() -> None:
    collection = Collection("weights", include_regex=["weight", "own"], tensor_names=["fc.weight"])
    collection.pass_over("frozen.weight", ["weight"])
    collection.pass_over("fc.bias", ["own"])
    written = Collection.from_dict(collection.to_json_dict())
    assert written.include_regex == ["own"]
    for name in ("fc.weight", "frozen.weight", "own_scale"):
        assert written.matches(name) == collection.matches(name)
    collection.pass_over("frozen.weight", ())
    assert collection.to_json_dict()["include_regex"] == ["weight", "own"]


def test_empty_collection_matches_nothing() -> None:
    assert not Collection("c").matches("")


def test_regex_appended_to_the_list_counts_at_once() -> None:
    collection = Collection("c", include_regex="a")
    assert not collection.matches("b")
    collection.include_regex.append("b")
    assert collection.matches("b")


def test_include_takes_one_regex_or_a_list() -> None:
    collection = Collection("c")
    collection.include("a")
    collection.include(["b", "c"])
    assert collection.include_regex == ["a", "b", "c"]
    with pytest.raises(SMDebugTypeError, match="Can only include str or list"):
        collection.include(3)  # type: ignore[arg-type]


def test_regex_that_does_not_compile_is_refused_by_name() -> None:
    with pytest.raises(SMDebugValueError, match=r"include_regex='\(' of collection c is not a regular expression"):
        Collection("c", include_regex=["ok", "("])


def test_tensor_names_come_and_go() -> None:
    collection = Collection("c", tensor_names={"x"})
    collection.add_tensor_name("y")
    collection.remove_tensor_name("x")
    collection.remove_tensor_name("never there")
    assert collection.tensor_names == {"y"}
    assert collection.has_tensor_name("y")
    assert not collection.has_tensor_name("x")


@pytest.mark.parametrize(
    "arguments, sentence",
    [
        ({"tensor_names": "a"}, "tensor_names can only be list or set"),
        ({"tensor_names": ("a",)}, "tensor_names can only be list or set"),
        ({"reduction_config": 3}, "reduction_config=3 must be of type ReductionConfig"),
        (
            {"save_config": 3},
            "save_config=3 must be of type SaveConfig or type Dict[ModeKeys, SaveConfigMode]",
        ),
    ],
)
def test_wrong_type_is_refused_in_one_sentence(arguments: dict, sentence: str) -> None:
    with pytest.raises(SMDebugTypeError) as refused:
        Collection("c", **arguments)
    assert str(refused.value) == sentence


def test_bare_mode_rule_is_refused_as_save_config() -> None:
    with pytest.raises(SMDebugTypeError, match="must be of type SaveConfig or type Dict"):
        Collection("c", save_config=SaveConfigMode())  # type: ignore[arg-type]


def test_save_config_may_be_a_dict_by_mode() -> None:
    rule = SaveConfigMode(save_interval=3)
    assert Collection("c", save_config={ModeKeys.TRAIN: rule}).save_config == SaveConfig({ModeKeys.TRAIN: rule})


def test_json_round_trip_keeps_all_six_fields() -> None:
    collection = Collection(
        "c",
        ["a", "b"],
        ["y", "x"],
        ReductionConfig(["median"]),
        SaveConfig(save_interval=2),
        save_histogram=False,
    )
    again = Collection.from_json(collection.to_json())
    assert again == collection
    assert collection.to_json_dict()["tensor_names"] == ["x", "y"]
    assert hash(again) == hash(collection)


@pytest.mark.parametrize(
    "change",
    [
        {"name": "d"},
        {"include_regex": []},
        {"tensor_names": ["z"]},
        {"reduction_config": {"reductions": "min"}},
        {"save_config": {"TRAIN": {}}},
        {"save_histogram": False},
    ],
)
def test_every_field_counts_for_equality(change: dict) -> None:
    fields = Collection("c", ["a"], ["x"]).to_json_dict()
    assert Collection.from_dict({**fields, **change}) != Collection.from_dict(fields)


def test_file_with_missing_fields_is_read() -> None:
    # Old files have false where no regex was given.
    assert Collection.from_dict({"name": "c", "include_regex": False}) == Collection("c")
    with pytest.raises(SMDebugValueError, match="a collection needs a name"):
        Collection.from_dict({"include_regex": []})
