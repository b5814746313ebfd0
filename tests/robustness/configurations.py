"""Harmed hook configurations: each is followed, or refused in one sentence that can be printed."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

from robustness.mutations import harmed_bytes, harmed_json, nested, text_of
from robustness.part import Part
from smd_agent.config.hook_file import Source
from smd_agent.config.load import load_settings
from smd_agent.core.collection import Collection
from smd_agent.core.save_plan import SavePlan
from smd_agent.errors import ConfigError

LONGEST_SENTENCE = 600
NAMES = ("conv1.weight", "gradient/layers.0.attention.self.query.bias", "Linear_output_0", "a" * 300, "x.y/" * 40)

_SOUND: dict[str, Any] = {
    "LocalPath": "x",
    "S3OutputPath": "s3://a",
    "HookParameters": {
        "save_interval": 5,
        "train.save_interval": "3",
        "save_steps": "1,2",
        "start_step": 0,
        "end_step": 9,
        "reductions": "mean,l2",
        "save_raw_tensor": True,
        "include_regex": "relu.*,x",
        "include_collections": "weights,losses",
        "save_all": "no",
        "include_workers": "all",
        "dry_run": False,
        "export_tensorboard": "true",
        "tensorboard_dir": "tb",
    },
    "CollectionConfigurations": [
        {
            "CollectionName": "gradients",
            "CollectionParameters": {
                "save_interval": 2,
                "include_regex": ["a{1,2}", "weight$"],
                "reductions": "min",
                "eval.end_step": 7,
                "save_histogram": "off",
            },
        },
        {"CollectionName": "weights"},
    ],
}

_NUMBERS = (0, -1, 1, 10**15, 10**15 + 1, 10**18, 10**30, -(10**400), 1e308, 0.5, float("inf"), float("nan"))
_DIGITS = ("9" * 18, "9" * 19, "9" * 5000, "٣", "²", "1e5", "0x10", "-5", "+5", "1_000", "1,2,,3")
_TEXTS = ("", " ", "\0", "a\0b", "\ud800", "\udfff/x", "é" * 300, "x" * 100_000, "😀", "\u202eabc", "a\nb", "a\r\nb")
_PATHS = ("/dev/null", "../../etc", "~nouser/x", "~", "file:///x", "s3://b/c", "\x1b[31mred\x1b[0m", "\x9b31m")
_REGEXES = (
    "(((((",
    "(" * 5000 + ")" * 5000,
    "(a+)+$",
    "^([a-zA-Z_.0-9/]+)+!$",
    "(.*)*(.*)*x!",
    "(x?){80}x{80}!",
    "(a|a)*" * 20 + "!",
    ".*" * 30 + "!",
    r"(.+)+\1!",
    r"(?=(a+)+$).*!",
    r"(?<=a{90})(b|b)*c",
    "a{99999999999999999999}",
    "(((a{1,1000}){1,1000}){1,1000}){1,1000}",
    "[",
    "[[a]",
    "*",
    "(?P<n>x)(?P<n>y)",
    "\\",
    "(?i)x",
    "x(?i)",
    "(?>a+)+b",
    "a{1,2}",
)
_OTHERS = (None, True, False, [], {}, [[]], [None], [1, "2", 3.0], [{}], {"CollectionName": 5}, [[["a"]]])
_WORDS = ("all", "mean,median,MEAN", "l3", ["mean", 5], "a" * 300)
_VALUES = (
    *_NUMBERS,
    *_DIGITS,
    *_TEXTS,
    *_PATHS,
    *_REGEXES,
    *([regex] for regex in _REGEXES),
    *_OTHERS,
    *_WORDS,
    nested(Random(0), 50),
    nested(Random(0), 200),
)
_KEYS = (
    "",
    "\0",
    "trian.save_interval",
    "TRAIN.save_interval",
    "Save_Interval",
    "x" * 10_000,
    "\ud800",
    "a.b.c",
    "include_regex",
    "reductions",
    "save_steps",
    "CollectionName",
    "CollectionParameters",
    "HookParameters",
    "CollectionConfigurations",
    "predict.save_steps",
    "global.start_step",
    "\x1b[2J",
)


def prepare(folder: Path) -> None:
    """Nothing is needed."""


def attempt(random: Random, folder: Path) -> str:
    """Read one configuration and, where it is accepted, ask its collections for some names."""
    if random.random() < 0.6:
        content = text_of(random, harmed_json(random, _SOUND, _VALUES, _KEYS))
    else:
        content = harmed_bytes(random, text_of(random, _SOUND))
    source = Source("a variable", text=content.decode("utf-8", "surrogateescape"))
    if random.random() < 0.3:
        path = folder / "hook.json"
        path.write_bytes(content)
        source = Source(str(path), origin="a variable")
    try:
        settings = load_settings(source)
    except ConfigError as error:
        _check_sentence(str(error))
        return "refused in one sentence"
    for warning in settings.warnings:
        _check_sentence(warning)
    plan = SavePlan([Collection(one.name, list(one.include_regex)) for one in settings.collections])
    for name in NAMES:
        plan.includes(name, -1)
    return "followed, with a warning" if settings.warnings else "followed"


def _check_sentence(sentence: str) -> None:
    assert len(sentence) <= LONGEST_SENTENCE, f"{len(sentence)} characters: {sentence[:80]}"
    assert sentence.isprintable(), f"not printable: {sentence[:80]!r}"


PART = Part(
    "configurations",
    "Harmed configurations",
    "A hook configuration that uses every key is harmed in one to six places, as bytes or as JSON: values of other "
    "kinds, huge numbers, control characters, patterns that a backtracking matcher does not come back from. "
    "It is read; where it is accepted, a plan is made of its collections and asked for the names of tensors.",
    20_000,
    prepare,
    attempt,
)
