"""The page has what is so of a sample of its cases, and the rules are as right as they shall be."""

from __future__ import annotations

import dataclasses
import subprocess
import sys

import pytest

from accuracy import page
from accuracy.case import FRAMEWORKS, TESTS, Case
from accuracy.cases import CASES
from accuracy.running import DEFAULT, EVERY_STEP, LAUNCHES, CaseFailed, Result, Said, interpreter, run
from smd_agent.rules.registry import built_in_rules

PAGE = (TESTS.parent / "docs" / "rules-measured.md").read_text()
RESULTS = page.read(PAGE)
MEASURED = [launch for launch in LAUNCHES if RESULTS[launch]]
KINDS = {
    kind: {name for name, case in CASES.items() if case.kind == kind}
    for kind in ("clean", "planted", "reported", "held_out")
}
# Parts of the faults of those who know the rules, and of those who do not, that are found: no change may find fewer.
KNOWN, BLIND, HELD_OUT = 0.97, 0.91, 0.75
# As many of all faults are found by the default launch.
BY_DEFAULT = 80
SAMPLE = (
    "small-all_data_in_one_batch",
    "head-after-optimizer",
    "log-of-zero",
    "keras-fine-tuning",
    "tape-forgotten-layer",
    "gluon-wine",
    "gluon-forgotten-block",
    "xgboost-folds",
    "xgboost-leak",
    "held-out-deep-tabular",
    "held-out-wine-net",
)


def test_every_case_is_on_the_page_and_the_page_is_made_of_them():
    for launch in MEASURED:
        assert [*RESULTS[launch]] == [*CASES], launch
    assert EVERY_STEP in MEASURED
    assert page.text(RESULTS) == PAGE


def test_cases_are_scripts_that_exist_and_rules_that_there_are():
    rules = built_in_rules()
    for case in CASES.values():
        assert case.path.is_file(), case.name
        assert case.framework in FRAMEWORKS, case.name
        assert {*case.rules} <= {*rules}, case.name
        assert not (case.kind == "clean" and case.rules), case.name
    of_programs = {*(TESTS / "accuracy" / "programs").rglob("*.py")}
    assert of_programs <= {case.path for case in CASES.values()}


def test_there_are_as_many_cases_as_the_figures_need():
    assert len(KINDS["clean"]) >= 40
    assert len(KINDS["planted"] | KINDS["held_out"]) >= 40
    for framework in FRAMEWORKS:
        for kinds in (["clean"], ["planted", "reported"]):
            of = [case for case in CASES.values() if case.kind in kinds and case.framework == framework]
            assert len(of) >= 4, (framework, kinds)


@pytest.mark.parametrize("launch", MEASURED)
def test_a_clean_training_in_forty_has_a_problem_at_most(launch):
    problems = [name for name in KINDS["clean"] if RESULTS[launch][name].by("problem")]
    assert len(problems) <= len(KINDS["clean"]) / 40, problems


@pytest.mark.parametrize("kind, least", [("planted", KNOWN), ("reported", BLIND), ("held_out", HELD_OUT)])
def test_faults_are_found_by_a_rule_that_describes_them(kind, least):
    missed = not_found(EVERY_STEP, KINDS[kind])
    assert len(missed) <= (1 - least) * len(KINDS[kind]), missed


def test_eighty_faults_are_found_by_the_default_launch():
    faults = CASES.keys() - KINDS["clean"]
    missed = not_found(DEFAULT, faults)
    assert len(faults) - len(missed) >= BY_DEFAULT, missed


def not_found(launch, names):
    """The faults of which no rule that describes them is among the first findings."""
    return [name for name in names if not 0 < RESULTS[launch][name].rank(CASES[name].rules) <= page.FIRST]


@pytest.mark.parametrize("name", SAMPLE)
def test_a_case_gives_what_the_page_says(name):
    case = CASES[name]
    if interpreter(case) is None:
        pytest.skip(f"no interpreter with {case.framework} is named")
    result = run(case)
    assert result == RESULTS[EVERY_STEP][name]


def test_a_run_that_is_kept_is_judged_again(tmp_path):
    case = CASES["xgboost-folds"]
    first = run(case, kept=tmp_path)
    gone = dataclasses.replace(case, script="accuracy/programs/there_is_none.py")
    assert run(gone, kept=tmp_path) == first


def test_a_case_that_leaves_no_run_is_a_failure(tmp_path):
    gone = Case("clean", "gone", "PyTorch", "accuracy/programs/there_is_none.py", "nothing")
    with pytest.raises(CaseFailed, match="there_is_none"):
        run(gone)


def test_findings_are_ranked_by_the_place_of_the_right_one():
    said = (Said("problem", "LossNotFinite"), Said("warning", "DeadRelu"), Said("note", "DeadRelu"))
    result = Result(10, said)
    assert result.rank(["DeadRelu"]) == 2
    assert result.rank(["DeadRelu", "LossNotFinite"]) == 1
    assert result.rank(["Overfit"]) == result.rank([]) == 0
    assert result.by("warning", "note") == ["DeadRelu"]


def test_the_figures_count_false_alarms_and_faults_that_are_missed():
    results = {
        "digits-sgd": Result(9, (Said("warning", "DeadRelu"), Said("note", "RepeatedBatch"))),
        "diabetes": Result(9, ()),
        "units-that-die": Result(9, (Said("problem", "LossNotFinite"), Said("warning", "DeadRelu"))),
        "first-batch-only": Result(9, ()),
    }
    text = page.text({EVERY_STEP: results})
    assert page.read(text) == {DEFAULT: {}, EVERY_STEP: results}
    assert "| all | `--every 1` | 2 | 0 | 1 | 1 |" in text
    assert "| all | `--every 1` | 2 | 0 | 1 | 0 | 1 |" in text
    assert "| all | default | – | – | – | – | – |" in text
    assert "| `DeadRelu` | 1 | 1 of 1 | 0 | 1 | 1 of 2 |" in text
    assert "| `LossNotFinite` | 0 | – | 1 | 0 | – |" in text
    assert "| `RepeatedBatch` | 0 | 0 of 1 | 0 | 0 | – |" in text
    assert page.told(CASES["digits-sgd"], results["digits-sgd"]).endswith("FALSE ALARM")
    assert page.told(CASES["first-batch-only"], results["first-batch-only"]).endswith("NOT FOUND")


def test_launches_stand_beside_each_other():
    dead, leak = Said("warning", "DeadRelu"), Said("problem", "LossNotFinite")
    measured = {
        DEFAULT: {"digits-sgd": Result(9, (dead,)), "units-that-die": Result(9, ()), "diabetes": Result(9, ())},
        EVERY_STEP: {"digits-sgd": Result(70, (dead,)), "units-that-die": Result(70, (leak, dead))},
    }
    text = page.text(measured)
    assert page.read(text) == measured
    assert "| 9 | 70 | warning DeadRelu | the same |\n" in text
    assert "| not found | 2 | 9 | 70 | nothing | problem LossNotFinite, warning DeadRelu |\n" in text
    assert "| 9 | – | nothing | – |\n" in text
    assert "| `units-that-die` | Faults planted with the rules in mind | not found | 2 |\n" in text
    assert "### By rule, default" in text


def test_a_launch_that_is_measured_alone_leaves_the_other_on_the_page(tmp_path):
    before = {
        DEFAULT: {"xgboost-folds": Result(1, ())},
        EVERY_STEP: {"xgboost-folds": Result(7, (Said("note", "Overfit"),))},
    }
    file = tmp_path / "page.md"
    file.write_text(page.text(before))
    command = [sys.executable, "-m", "accuracy", "--cases", "xgboost-folds", "--every", "0", "--page", str(file)]
    subprocess.run(command, cwd=TESTS, check=True)
    after = page.read(file.read_text())
    assert after[EVERY_STEP] == before[EVERY_STEP]
    assert after[DEFAULT]["xgboost-folds"].steps > 1
