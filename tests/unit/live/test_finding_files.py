"""The file of what rules have found while training went on."""

from __future__ import annotations

import json

from smd_agent.core.modes import ModeKeys
from smd_agent.live.finding_files import FINDINGS_FILE, FindingFile
from smd_agent.rules.finding import Finding, Severity


def finding(rule="LossNotFinite", severity=Severity.PROBLEM, mode=ModeKeys.TRAIN, tensor="loss", **others):
    return Finding(rule, severity, tensor, mode, "worker_0", 7, 9, {"share": float("nan")}, "cause", "advice", **others)


def content(folder):
    return json.loads((folder / FINDINGS_FILE).read_text())


def test_each_finding_is_told_once_and_again_where_it_has_become_worse(tmp_path):
    file = FindingFile(tmp_path, "run", goes_on=False)
    warning, note = finding(severity=Severity.WARNING), finding("AllZero", Severity.NOTE)
    assert [told.finding for told in file.news([warning, note])] == [warning]
    assert file.news([warning, finding(severity=Severity.WARNING, tensor="other")]) == []
    assert len(file.news([finding()])) == 1
    assert file.news([warning]) == file.news([finding()]) == []
    assert len(file.news([finding(mode=ModeKeys.EVAL)])) == 1


def test_tensors_of_one_kind_are_one_finding(tmp_path):
    file = FindingFile(tmp_path, "run", goes_on=False)
    (told,) = file.news([finding(tensor=name, short="broken: {}") for name in ("a", "b" * 80, "c")])
    assert (told.tensors, told.words) == (("a", "b" * 80, "c"), "broken: a and 2 more")


def test_the_file_has_all_that_was_told(tmp_path):
    file = FindingFile(tmp_path, "s3://bucket/run", goes_on=False)
    file.write(0, 0, ended=False)
    assert content(tmp_path)["findings"] == []
    file.news([finding(global_step=12)])
    file.write(3, 40, ended=True)
    found = content(tmp_path)
    assert (found["version"], found["saved_steps"], found["losses"], found["ended"]) == (1, 3, 40, True)
    (one,) = found["findings"]
    assert 0 < one.pop("time") <= found["time"]
    assert one == {
        "rule": "LossNotFinite",
        "severity": "problem",
        "step": 7,
        "global_step": 12,
        "mode": "TRAIN",
        "worker": "worker_0",
        "tensors": ["loss"],
        "words": "loss not finite: loss at step 7",
        "evidence": {"share": "nan"},
        "cause": "cause",
        "advice": "advice",
        "run": "s3://bucket/run",
    }
    # Nothing else is left of it.
    assert [path.name for path in tmp_path.iterdir()] == [FINDINGS_FILE]


def test_a_start_that_goes_on_tells_nothing_again(tmp_path):
    before = FindingFile(tmp_path, "run", goes_on=False)
    before.news([finding()])
    before.write(1, 1, ended=False)
    after = FindingFile(tmp_path, "run", goes_on=True)
    assert after.news([finding()]) == []
    assert len(after.news([finding("AllZero")])) == 1
    after.write(2, 2, ended=False)
    assert [one["rule"] for one in content(tmp_path)["findings"]] == ["LossNotFinite", "AllZero"]
    assert len(FindingFile(tmp_path, "run", goes_on=False).news([finding()])) == 1


def test_a_file_that_is_none_is_as_none(tmp_path):
    (tmp_path / FINDINGS_FILE).write_text('{"findings": [1, {"severity": "odd"}]}')
    assert len(FindingFile(tmp_path, "run", goes_on=True).news([finding()])) == 1
