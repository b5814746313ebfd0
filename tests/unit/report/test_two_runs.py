"""Two runs on one page: their losses in one chart, and with what each ran."""

from __future__ import annotations

import json

import numpy as np
from harness.pages import opened, page_of
from harness.rule_runs import written
from harness.written_runs import started

from smd_agent.core.collection_manager import CollectionManager
from smd_agent.core.modes import ModeKeys
from smd_agent.formats.notes import about_text
from smd_agent.report.line_charts import Overlay
from smd_agent.rules.registry import judge

TRAIN, EVAL = ModeKeys.TRAIN, ModeKeys.EVAL


def data_of(page):
    text = page.split('<script type="application/json" id="data">')[1].split("</script>")[0]
    return json.loads(text)


def losses(*values):
    return [{"loss": np.float32(value)} for value in values]


def told(folder, **versions):
    (folder / "about").mkdir()
    (folder / "about/worker_0.json").write_text(about_text({"versions": versions}, (0.5, 10.0)))


def test_losses_of_both_are_in_one_chart(tmp_path):
    written(tmp_path / "slow", losses(3, 2, 1))
    written(tmp_path / "fast", losses(3, 1, 0.5, 0.25))
    data = data_of(page_of(tmp_path / "slow", tmp_path / "fast"))
    (chart,) = data["charts"]["losses"]
    assert [(line["label"], line["run"], line["steps"]) for line in chart["lines"]] == [
        ("slow: TRAIN", 0, [0, 1, 2]),
        ("fast: TRAIN", 1, [0, 1, 2, 3]),
    ]
    assert chart["lines"][1]["values"] == [3, 1, 0.5, 0.25]
    assert data["last"] == 3


def test_runs_of_one_name_are_called_by_their_folders(tmp_path):
    for folder in ("a", "b"):
        written(tmp_path / folder / "run", losses(1, 2))
    overlay = Overlay(opened(tmp_path / "b/run"), opened(tmp_path / "a/run"))
    assert overlay.names == (str(tmp_path / "a/run"), str(tmp_path / "b/run"))


def test_what_the_second_run_alone_has_is_shown_too(tmp_path):
    written(tmp_path / "one", [{"a.weight": np.ones(2)}] * 2)
    written(tmp_path / "two", losses(1, 2))
    page = page_of(tmp_path / "one", tmp_path / "two")
    assert [line["label"] for line in data_of(page)["charts"]["losses"][0]["lines"]] == ["two: TRAIN"]
    assert '<section id="losses">' in page


def test_a_step_stands_where_the_first_run_has_it(tmp_path):
    def run(name, *modes):
        run = started(tmp_path / name)
        manager = CollectionManager()
        manager.get("losses").include("loss")
        run.write_collections(manager.to_json())
        counts = dict.fromkeys(modes, 0)
        for step, mode in enumerate(modes):
            file = run.begin_step(step, mode, counts[mode])
            file.add("loss", np.array(float(step)))
            run.commit(file)
            counts[mode] += 1
        run.close(True)
        return opened(tmp_path / name)

    first = run("one", TRAIN, TRAIN, EVAL, TRAIN, TRAIN, EVAL)
    overlay = Overlay(run("two", TRAIN, TRAIN, TRAIN, TRAIN, TRAIN, EVAL), first)
    steps = {line["mode"]: line["steps"] for line in overlay.charts("losses", [])[0]["lines"]}
    # The fifth step of training is none of the first run's, nor is an evaluation before it.
    assert steps == {"TRAIN": [0, 1, 3, 4, 5], "EVAL": [6]}
    assert overlay.told == {5: ("TRAIN", 4), 6: ("EVAL", 0)}


def test_with_what_both_ran(tmp_path):
    for name, release in (("one", "2.12"), ("two", "2.13")):
        written(tmp_path / name, losses(1, 2))
        told(tmp_path / name, Python="3.11", PyTorch=release)
    page = page_of(tmp_path / "one", tmp_path / "two")
    assert '<b class="differs">2.12</b>' in page
    assert '<b class="differs">2.13</b>' in page
    assert '<b class="differs">3.11</b>' not in page
    assert "<span>3.11</span>" in page


def test_the_first_finding_says_at_the_top_what_to_do(tmp_path):
    nan = np.nan
    written(tmp_path / "run", [{"loss": np.float32(x), "a.weight": np.full(2, x)} for x in (3, 2, nan, nan)])
    first, second = judge(opened(tmp_path / "run")).findings[:2]
    top = page_of(tmp_path / "run").split('class="verdict problem"')[1].split("</ul>")[0]
    assert top.count("Try:") == 1
    assert first.advice in top
    assert second.advice not in top
    assert "Not finite from step 2 on: a.weight" in top


def test_what_saving_took(tmp_path):
    written(tmp_path / "run", losses(1, 2, 3))
    told(tmp_path / "run", Python="3.11")
    size = sum(path.stat().st_size for path in (tmp_path / "run").rglob("*") if path.is_file())
    page = page_of(tmp_path / "run")
    assert "<dt>saving took</dt><dd>5.0% of the process&#x27;s time (0.5 of 10 s)</dd>" in page
    assert f"<dt>on disk</dt><dd>3 steps, 3 values, {size / 1000:.3g} kB</dd>" in page


def test_a_run_that_has_noted_nothing(tmp_path):
    written(tmp_path / "run", losses(1, 2))
    page = page_of(tmp_path / "run")
    assert "saving took" not in page
    assert "The run has noted nothing of it" in page
