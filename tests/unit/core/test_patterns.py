"""A regular expression is found in a name or not, as Python's matcher would say, and always within a moment."""

from __future__ import annotations

import random
import re
import time
import warnings

import pytest

from smd_agent.config.hook_file import Source
from smd_agent.config.load import load_settings
from smd_agent.core import patterns
from smd_agent.core.collection import Collection
from smd_agent.core.patterns import LONGEST_PATTERN, ORDINARY_NAME, NamePattern, UnfitPattern
from smd_agent.core.save_plan import SavePlan
from smd_agent.errors import ConfigError, SMDebugValueError
from smd_agent.framework.boosting.built_in_collections import built_in_collections

# Python's matcher does not come back from these, unless it is lucky: each with a name in which it is found.
FOUND = {
    "^([a-zA-Z_.0-9/]+)+!$": "conv1.weight!",
    "(?=(a+)+$).*a$": "b" + "a" * 100,
    "(?!(a|a)*b)(a|a)*!": "a" * 99 + "!",
    "(a+)+$": "b" + "a" * 100,
    "(a|a)*!": "a" * 100 + "!",
    "(a|ab|b)*!": "ab" * 50 + "!",
    "(.*)*(.*)*!": "conv1.weight!",
    "(a?){80}a{80}!": "a" * 120 + "!",
    "(x+x+)+y": "x" * 100 + "y",
    ".*" * 40 + "!": "conv1.weight!",
    "(?:a|a)" * 60 + "!": "a" * 60 + "!",
    "^(?:(?:.+/)*)*weight!$": "a/b/weight!",
    r"(?i)(\w|[a-z]|A)+!": "A" * 99 + "!",
    r"(?m)^(a+|b|\n)+!$": "x\n" + "ab" * 20 + "!",
    "(?:(?:(?:a{1,999}){1,999}){1,999}){1,999}(a+)+!": "a" * 254 + "!",
    "(?:(?<=(?<=(?<=.)..)...)a|b)+!": "abcab!",
    "(?:(?=(?:(?=(?:(?=(?:a|b)*!)[ab])*!)[ab])*!)[ab])*!": "ab" * 120 + "!",
}
CATASTROPHIC = tuple(FOUND)
# What they are asked about: long ones of the kind that makes them slow, and what a model has.
NAMES = (
    "a" * 200,
    "ab" * 100,
    "gradient/layers.0.attention.self.query.weight",
    "x" * 250,
    "a/" * 80 + "weight",
    "A" * 99,
)
REFUSED = (r"(.+)+\1!", r"((a+)+)(?=\2)!")
ORDINARY = (
    *(regex for regexes in built_in_collections(("rmse", "error")).values() for regex in regexes),
    ".*(" + "|".join(f"layer{number}_output_{number % 7}" for number in range(500)) + ").*",
    "",
    ".*",
    "weight$",
    "relu|conv1",
    ".*conv.*weight.*",
    "^(?!gradient).*weight$",
    r"^(gradient/)?encoder\.layer\.\d+\..*",
    r"(\w+\.)*weight",
    "|".join(f"layer{number}.weight" for number in range(1000)),
    r"(?P<name>conv)(?P=name)?",
    r"^(\w+)\.layer(\d+)\.\2",
    "(?i)LOSS",
    "a{1,2}",
)


@pytest.fixture
def promptly():
    """Fails a test that needs more than a moment of the processor."""
    start = time.process_time()
    yield
    assert time.process_time() - start < 3


@pytest.mark.usefixtures("impatient", "promptly")
@pytest.mark.parametrize("regex", CATASTROPHIC)
def test_patterns_that_hang_the_matcher_do_not_hang(regex):
    pattern = NamePattern(regex)
    found = [name for name in NAMES if pattern.found_in(name)]
    assert found == (["a" * 200] if regex in ("(a+)+$", "(?=(a+)+$).*a$") else [])
    assert pattern.found_in(FOUND[regex])


@pytest.mark.usefixtures("impatient", "promptly")
@pytest.mark.parametrize("regex", CATASTROPHIC)
def test_configurations_and_collections_take_them(regex):
    text = '{"CollectionConfigurations": [{"CollectionName": "x", "CollectionParameters": {"include_regex": ["R"]}}]}'
    settings = load_settings(Source("hook.json", text=text.replace("R", regex.replace("\\", r"\\"))))
    collection = Collection("x", list(settings.collections[0].include_regex))
    assert not any(collection.matches(name + ".") for name in NAMES)


@pytest.mark.usefixtures("impatient", "promptly")
@pytest.mark.parametrize("regex", REFUSED)
def test_what_nothing_can_be_done_about_is_refused_when_it_is_given(regex):
    with pytest.raises(UnfitPattern, match="can take longer to match than a training lasts"):
        NamePattern(regex)
    with pytest.raises(SMDebugValueError, match="of collection x can take longer"):
        Collection("x", regex)
    text = '{"HookParameters": {"include_regex": ["R"]}}'.replace("R", regex.replace("\\", r"\\"))
    with pytest.raises(ConfigError, match=r"^hook\.json: HookParameters\.include_regex is .* can take longer"):
        load_settings(Source("hook.json", text=text))


@pytest.mark.usefixtures("impatient", "promptly")
@pytest.mark.parametrize(
    "regex",
    [
        "x" * (LONGEST_PATTERN + 1),
        "(?i)" + "[^x-\U0010ffff]" * 5000,
        "(" * 5000 + ")" * 5000,
        "a{99999999999999999999}",
    ],
    ids=["long", "classes", "nested", "counted"],
)
def test_what_is_too_large_to_compile_is_refused(regex):
    with pytest.raises(UnfitPattern) as refused:
        NamePattern(regex)
    assert len(str(refused.value)) < 200


@pytest.mark.parametrize("regex", ORDINARY, ids=range(len(ORDINARY)))
def test_ordinary_patterns_answer_as_ever(regex):
    pattern = NamePattern(regex)
    names = [
        *(
            f"encoder.layer.{number}.{part}.{kind}"
            for number in range(30)
            for part in "ab"
            for kind in ("weight", "bias")
        ),
        *(
            "relu_output_0",
            "conv1.weight",
            "gradient/conv1.weight",
            "convconv",
            "loss",
            "Loss_output_0",
            "layer77.weight",
        ),
    ]
    assert [pattern.found_in(name) for name in names] == [re.search(regex, name) is not None for name in names]


LOOKS = (
    "(?=a)",
    "(?!b)",
    "(?<=a)",
    "(?<!b)",
    "(?=.*b)",
    "(?!(?:a|b)*/$)",
    "(?=a(?!b))",
    r"(?=\w+\b)",
    "(?<=ab|a.)",
    "(?<!(?=a)b)",
)
ATOMS = (*"ab./^$A\n", "ab", r"\w", r"\d", r"\.", r"\b", r"\B", r"\A", r"\Z", "[ab]", "[^a]", *LOOKS)
REPEATS = ("*", "+", "?", "*?", "+?", "{2}", "{0,2}", "{1,3}?", "{2,}", "{5,}", "{0}")


def made_up(source, depth):
    kind = source.random()
    if depth == 0 or kind < 0.35:
        return source.choice(ATOMS)
    first = made_up(source, depth - 1)
    if kind < 0.55:
        return first + made_up(source, depth - 1)
    if kind < 0.7:
        return f"(?:{first}|{made_up(source, depth - 1)})"
    if kind < 0.8:
        return f"(?{source.choice(('i', 'm', 's', 'a', '-i', 'i-s'))}:{first})"
    return f"(?:{first}){source.choice(REPEATS)}"


@pytest.mark.parametrize("seed", range(4))
def test_all_ways_at_once_lead_where_pythons_matcher_comes(seed, monkeypatch):
    monkeypatch.setattr(patterns, "_QUICK_STEPS", 0)
    source = random.Random(seed)
    compared = 0
    while compared < 5000:
        regex = source.choice(("", "(?i)", "(?m)", "(?s)")) + made_up(source, 4)
        try:
            plain, pattern = re.compile(regex), NamePattern(regex)
        except (re.error, UnfitPattern):
            continue
        for _ in range(10):
            name = "".join(source.choice("aabbA./\n1é") for _ in range(source.randint(0, 9)))
            assert pattern.found_in(name) == (plain.search(name) is not None), (regex, name)
            compared += 1


@pytest.mark.usefixtures("impatient", "promptly")
def test_a_pattern_too_large_for_a_name_is_left_alone_from_its_length_on():
    pattern = NamePattern("(?:(?:" + "|".join(f"{chr(98 + number % 20)}{number}" for number in range(8000)) + ")?a)+!")
    for length in (250, 10_000):
        with pytest.raises(UnfitPattern, match=f"too long to look for in a name of {length} characters"):
            pattern.found_in("!".rjust(length, "a"))
    assert pattern.found_in("b0aaaa!")


def test_a_name_that_is_too_long_is_told_once_and_not_saved(capsys):
    regex = r"(.+)\1"
    assert NamePattern(regex).found_in("ab" * 100)
    with pytest.raises(UnfitPattern, match="too long to look for in a name of 20000 characters"):
        NamePattern(regex).found_in("ab" * 10_000)
    plan = SavePlan([Collection("doubled", regex)])
    assert [plan.includes(name, 1) for name in ("ab" * 100, "ab" * 10_000, "ba" * 10_000)] == [True, False, False]
    (line,) = capsys.readouterr().err.splitlines()
    assert "is not in doubled: " in line
    assert "can take too long" in line


@pytest.mark.usefixtures("impatient")
def test_names_of_ordinary_length_are_always_matched():
    for regex in (*CATASTROPHIC, *ORDINARY):
        pattern = NamePattern(regex)
        for characters in ("a", "ab", "a/", "conv1.weight", "x\n", "!"):
            pattern.found_in((characters * ORDINARY_NAME)[:ORDINARY_NAME])


def test_a_pattern_is_made_once(monkeypatch):
    Collection("x", "unique[0-9]").matches("unique1")
    monkeypatch.setattr(patterns, "NamePattern", None)
    assert Collection("x", "unique[0-9]").matches("unique2")


def test_a_pattern_that_python_warns_of_is_as_good_as_before():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert NamePattern("[[a]").found_in("[")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(UnfitPattern, match="nested set"):
            NamePattern("[[b]")
