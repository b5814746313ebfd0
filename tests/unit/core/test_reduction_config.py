from __future__ import annotations

import pytest

from smd_agent.core.reduction_config import ReductionConfig
from smd_agent.errors import SMDebugValueError

COUNTS = "zero_share,nan_count,inf_count,dead_share,saturated_share"
NAMES = "min,max,mean,median,std,variance,sum,prod,p5,p50,p95"
SETS = "histogram,statistics"


def test_ops_are_each_op_once_in_one_order() -> None:
    config = ReductionConfig(["std", "min", "std"], ["mean"], ["l2", "l1"], ["l1"])
    assert config.ops == (
        ("min", False),
        ("std", False),
        ("l1", False),
        ("l2", False),
        ("mean", True),
        ("l1", True),
    )


def test_json_has_tokens_in_the_old_order() -> None:
    config = ReductionConfig(["min", "max"], ["mean"], ["l1"], ["l2"], save_shape=True)
    assert config.to_json_dict() == {
        "save_raw_tensor": False,
        "reductions": "min,max,l1_norm,abs_mean,abs_l2_norm",
        "save_shape": True,
    }
    assert ReductionConfig.from_json(config.to_json()) == config


@pytest.mark.parametrize(
    "tokens, config",
    [
        ("l1,abs_l2", ReductionConfig(norms=["l1"], abs_norms=["l2"])),
        (" l1_norm , abs_l2_norm,,", ReductionConfig(norms=["l1"], abs_norms=["l2"])),
        ("MEAN,abs_Median", ReductionConfig(["mean"], ["median"])),
        ("", ReductionConfig()),
        (["prod", "abs_variance"], ReductionConfig(["prod"], ["variance"])),
    ],
)
def test_both_spellings_of_tokens_are_read(tokens: object, config: ReductionConfig) -> None:
    assert ReductionConfig.from_dict({"reductions": tokens}) == config


def test_median_goes_where_old_readers_do_not_look_and_comes_back() -> None:
    config = ReductionConfig(["median", "mean"], ["median"])
    written = config.to_json_dict()
    assert written["reductions"] == "mean"
    assert written["extra_reductions"] == "median,abs_median"
    assert ReductionConfig.from_dict(written) == config


def test_statistics_stand_for_eleven_and_may_stand_among_others() -> None:
    config = ReductionConfig(["statistics", "min", "sum"], ["mean"])
    assert config == ReductionConfig.from_tokens(["statistics", "sum"])
    assert config.ops == (
        *((name, False) for name in ("min", "max", "mean", "std", "sum")),
        *((name, False) for name in ("zero_share", "nan_count", "inf_count", "dead_share", "saturated_share")),
        ("l2", False),
        ("mean", True),
    )
    assert not config.histogram


def test_what_old_readers_refuse_goes_where_they_do_not_look() -> None:
    config = ReductionConfig(["statistics", "p95", "histogram"], save_shape=True, save_raw_up_to=64)
    written = config.to_json_dict()
    assert written == {
        "save_raw_tensor": False,
        "reductions": "min,max,mean,std,l2_norm,abs_mean",
        "save_shape": True,
        "extra_reductions": "p95,histogram,zero_share,nan_count,inf_count,dead_share,saturated_share",
        "save_raw_up_to": 64,
    }
    assert ReductionConfig.from_dict(written) == config
    assert config.histogram
    assert config != ReductionConfig(["statistics", "p95", "histogram"], save_shape=True)
    assert config != ReductionConfig(["statistics", "p95"], save_shape=True, save_raw_up_to=64)


@pytest.mark.parametrize(
    "token",
    [
        "abs_nan_count",
        "abs_dead_share",
        "abs_histogram",
        "abs_statistics",
        "mode",
        "abs_",
        "l3",
        "abs_abs_min",
        "min_norm",
        "smdebug",
    ],
)
def test_unknown_token_is_named(token: str) -> None:
    with pytest.raises(SMDebugValueError, match=f"reduction '{token}' is unknown, allowed are min, max, mean"):
        ReductionConfig.from_dict({"reductions": f"mean,{token}"})


@pytest.mark.parametrize(
    "arguments, sentence",
    [
        ({"reductions": ["q"]}, f"reductions can only be one of {NAMES},{COUNTS},{SETS}"),
        ({"reductions": "min"}, f"reductions can only be one of {NAMES},{COUNTS},{SETS}"),
        ({"abs_reductions": 3}, f"abs_reductions can only be one of {NAMES}"),
        ({"abs_reductions": ["nan_count"]}, f"abs_reductions can only be one of {NAMES}"),
        ({"norms": ["l1_norm"]}, "norms can only be one of l1,l2"),
        ({"abs_norms": ["l3"]}, "abs_norms can only be one of l1,l2"),
        ({"save_raw_tensor": "true"}, "save_raw_tensor=true must be a boolean"),
        ({"save_shape": 1}, "save_shape=1 must be a boolean"),
        ({"save_raw_up_to": True}, "save_raw_up_to=True must be a number of elements, at least 0"),
        ({"save_raw_up_to": -1}, "save_raw_up_to=-1 must be a number of elements, at least 0"),
    ],
)
def test_wrong_argument_is_refused_in_one_sentence(arguments: dict, sentence: str) -> None:
    with pytest.raises(SMDebugValueError) as refused:
        ReductionConfig(**arguments)
    assert str(refused.value) == sentence


def test_flags_count_for_equality_and_order_does_not() -> None:
    assert ReductionConfig(["min", "max"]) == ReductionConfig(["max", "min"])
    assert ReductionConfig(["min"]) != ReductionConfig(["min"], save_raw_tensor=True)
    assert ReductionConfig(["min"]) != ReductionConfig(abs_reductions=["min"])
    assert ReductionConfig.from_dict(None) is None


def test_the_nine_statistics_of_an_older_run_are_called_so_too() -> None:
    nine = ["min", "max", "mean", "std", "zero_share", "nan_count", "inf_count"]
    assert ReductionConfig(nine, ["mean"], ["l2"]).describe() == "statistics"
    assert ReductionConfig(["statistics"]).describe() == "statistics"
    assert ReductionConfig([*nine[1:], "dead_share"], ["mean"], ["l2"]).describe() == "9 reductions"
