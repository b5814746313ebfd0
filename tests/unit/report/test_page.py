"""The page as text: what stands in it, without a browser."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from html.parser import HTMLParser
from importlib import resources

import numpy as np
import pytest
from harness.hostile_run import hostile_run
from harness.pages import large_page, opened, page_of
from harness.rule_runs import written
from harness.written_runs import started

from smd_agent.core.collection_manager import CollectionManager
from smd_agent.core.modes import ModeKeys
from smd_agent.report.page import STYLES, island, made_page
from smd_agent.rules.registry import judge

PINNED = {
    "uPlot.iife.min.js": "19c8d4c6ad88929a79f4ae49d6f7161566dfd0ba3d15cc495e974f787eb78f1f",
    "uPlot.min.css": "df630c6a8d6f8eeaff264b50f73ce5b114f646ffd9a0bb74f049b0a00135fa04",
    "uPlot.LICENSE": "8f989229699b4fe2f1a0432d0e9edc338a8a911e250e2d1b01ecd770a5f5b1bd",
}
STATIC = resources.files("smd_agent.report") / "static"


class Parsed(HTMLParser):
    """A page's elements with their attributes, and the text of each script, style and comment."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.tags, self.raw, self.comments, self.texts = [], {"script": [], "style": []}, [], []
        self._inside = None
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        self._inside = tag if tag in self.raw else None
        if self._inside:
            self.raw[tag].append("")

    def handle_endtag(self, tag):
        self._inside = None

    def handle_data(self, data):
        if self._inside:
            self.raw[self._inside][-1] += data
        else:
            self.texts.append(data)

    def handle_comment(self, data):
        self.comments.append(data)


@pytest.fixture
def sick(tmp_path):
    steps = [{"loss": np.float32(value), "gradient/a": np.full(3, value)} for value in (3, 2, np.nan, np.nan)]
    written(tmp_path / "sick", steps)
    return tmp_path / "sick"


@pytest.fixture
def clean(tmp_path):
    steps = [{"loss": np.float32(3 - step / 9), "gradient/a": np.full(3, 1.0)} for step in range(12)]
    written(tmp_path / "clean", steps)
    return tmp_path / "clean"


def words(page):
    return " ".join(" ".join(Parsed(page).texts).split())


def test_the_verdict_is_that_of_check(sick):
    said, page = judge(opened(sick)), page_of(sick)
    text = words(page)
    assert "Loss not finite at step 2 (finite at 1) LossNotFinite, from TRAIN step 2 on" in text
    for finding in said.findings:
        assert finding.rule in text
        assert f"{finding.cause}." in text
        assert f"{finding.advice}." in text
    found = json.loads(Parsed(page).raw["script"][0])["findings"]
    assert [(one["rule"], one["tensor"], one["first"]) for one in found] == [
        (one.rule, one.tensor, one.global_step) for one in said.findings
    ]


def test_a_clean_run(clean):
    text = words(page_of(clean))
    assert "Nothing found" in text
    assert "No NaN and no Inf in 2 tensors at 12 steps." in text


def test_a_run_that_no_rule_could_judge(tmp_path):
    written(tmp_path / "run", [{"x": np.zeros(3)}])
    text = words(page_of(tmp_path / "run"))
    assert "Nothing found" not in text
    assert "Not judged" in text


def test_what_rules_lack_is_said_with_what_saves_it(clean):
    said = judge(opened(clean)).not_judged
    text = words(page_of(clean))
    assert said
    for one in said:
        assert f"rule {one.rule}" in text
        assert one.reason in text
        assert one.option in text


def test_steps_as_their_modes_count_them(tmp_path):
    modes = [ModeKeys.TRAIN, ModeKeys.EVAL, ModeKeys.EVAL, ModeKeys.TRAIN]
    run = started(tmp_path / "run")
    counts = dict.fromkeys(modes, 0)
    for step, mode in enumerate(modes):
        file = run.begin_step(step, mode, counts[mode])
        counts[mode] += 1
        file.add("loss", np.array(1.0))
        run.commit(file)
        assert run.flush()
    manager = CollectionManager()
    manager.get("losses").include("loss")
    run.write_collections(manager.to_json())
    run.close(True)
    page = page_of(tmp_path / "run")
    assert json.loads(Parsed(page).raw["script"][0])["modeSteps"] == {
        "1": ["EVAL", 0],
        "2": ["EVAL", 1],
        "3": ["TRAIN", 1],
    }
    assert "TRAIN 2 steps, 0 to 1; EVAL 2 steps, 0 to 1" in words(page)


def test_parameters_that_are_not_trained(tmp_path):
    run, manager = started(tmp_path / "run"), CollectionManager()
    manager.get("parameters").include("^parameters/")
    run.write_collections(manager.to_json())
    file = run.begin_step(0, ModeKeys.TRAIN, 0)
    facts = {
        "Net_a": {"requires_grad": True, "optimizer": "Adam/group_0", "gradient": True},
        "Net_<b>": {"requires_grad": True, "optimizer": None, "gradient": True},
        "Net_c": {"requires_grad": False, "optimizer": "Adam/group_0", "gradient": False},
    }
    file.add_text("parameters/Net", [json.dumps(facts)])
    run.commit(file)
    run.close(True)
    text = words(page_of(tmp_path / "run"))
    assert "1 of 3 parameters are trained." in text
    assert "no optimizer 1 Net_<b>" in text
    assert "frozen 1 Net_c" in text


def test_findings_of_two_runs(sick, clean):
    page = page_of(clean, sick)
    assert "Nothing found" in words(page)
    assert "LossNotFinite" in words(page)
    # Links lead into this run alone.
    assert not any(tag == "a" and "place" in attributes.get("class", "") for tag, attributes in Parsed(page).tags)


def test_nothing_is_asked_of_any_network(sick):
    page = page_of(sick)
    parsed = Parsed(page)
    policy = next(found["content"] for tag, found in parsed.tags if tag == "meta" and "http-equiv" in found)
    assert policy.startswith("default-src 'none';")
    assert "unsafe" not in policy
    assert "http" not in policy
    addresses = [value for _, found in parsed.tags for key, value in found.items() if key in ("src", "href")]
    assert all(address.startswith(("data:", "#")) for address in addresses)
    for kind, text in [("script", one) for one in parsed.raw["script"][1:]] + [("style", parsed.raw["style"][0])]:
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert re.search(rf"{kind}-src [^;]*'sha256-{re.escape(digest)}'", policy), kind
    assert not re.search(r"url\((?!data:)|@import", parsed.raw["style"][0])


def test_names_are_text_wherever_they_stand(tmp_path):
    page = page_of(hostile_run(tmp_path / "<b>run"))
    parsed = Parsed(page)
    assert len(parsed.raw["script"]) == 3
    assert not {"svg", "b><"} & {tag for tag, _ in parsed.tags}
    assert [found for _, found in parsed.tags if {"onload", "onerror"} & found.keys()] == []
    assert all(found["src"].startswith("data:image/png") for tag, found in parsed.tags if tag == "img")
    assert "\u202e" not in page
    assert "\u2028" not in page
    data = json.loads(parsed.raw["script"][0])
    assert any("</script>" in name for grid in data["grids"] for name in grid["names"])


def test_an_island_ends_no_script():
    text = island({"</script>": "<!--\u2028&"})
    assert json.loads(text) == {"</script>": "<!--\u2028&"}
    assert not re.search(r"[<>&\u2028]", text)


def test_a_number_that_json_lacks_is_refused():
    with pytest.raises(ValueError, match="JSON"):
        island({"x": float("nan")})


@pytest.mark.parametrize("name", PINNED)
def test_the_library_is_the_one_that_was_looked_at(name):
    assert hashlib.sha256((STATIC / name).read_bytes()).hexdigest() == PINNED[name]


def test_every_page_has_the_licence_of_the_library(clean):
    (comment,) = Parsed(page_of(clean)).comments
    assert (STATIC / "uPlot.LICENSE").read_text().strip() in comment
    assert "Copyright (c) 2022 Leon Sorokin" in comment


def test_parts_that_are_put_into_a_script_or_style_do_not_end_it():
    for part in STATIC.iterdir():
        if part.name.endswith(".js"):
            assert not re.search("</script|<!--", part.read_text("utf-8"), re.I), part.name
    for name in STYLES:
        assert "</style" not in (STATIC / name).read_text("utf-8").lower()


def test_own_scripts_put_texts_in_as_texts():
    acts = r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\b|\bFunction\(|XMLHttp"
    found = re.compile(acts + r"|fetch\((?!\"mark\")")
    own = [part for part in STATIC.iterdir() if part.name.endswith(".js") and not part.name.startswith("uPlot")]
    assert len(own) > 5
    assert [part.name for part in own if found.search(part.read_text("utf-8"))] == []
    # A page that is served asks its own server; that of a file may ask nobody.
    assert [part.name for part in own if "fetch(" in part.read_text("utf-8")] == ["live.js"]


def test_only_a_page_that_is_served_may_connect(clean):
    trial = opened(clean)
    assert "connect-src" not in made_page(trial, judge(trial)).split("<style>")[0]
    served = made_page(trial, judge(trial), live="mark").split("<style>")[0]
    assert "default-src 'none'" in served
    assert served.count("connect-src 'self';") == 1


def test_500_tensors_by_1000_steps_are_5_megabytes_at_most(clean, monkeypatch):
    assert len(large_page(clean, monkeypatch).encode()) <= 5_000_000


def test_a_page_without_scripts_has_a_picture(sick):
    tags = Parsed(page_of(sick)).tags
    (image,) = [found for tag, found in tags if tag == "img"]
    assert "losses" in image["alt"]
    assert base64.b64decode(image["src"].partition(",")[2]).startswith(b"\x89PNG")
