"""The command check: what it prints, and its exit codes."""

from __future__ import annotations

import json

import numpy as np
import pytest

from smd_agent.core.modes import ModeKeys
from smd_agent.rules.registry import built_in_rules

OWN = """
from smd_agent.rules import Rule

class LossAbove(Rule):
    def __init__(self, base_trial, limit="1.0"):
        super().__init__(base_trial)
        self.limit = float(limit)

    def invoke_at_step(self, step):
        return float(self.base_trial.tensor("loss").value(step)) > self.limit
"""


@pytest.fixture
def losses(run):
    def write(*values, mode=ModeKeys.TRAIN):
        run.collections(losses="loss", optimizer="^optimizer/")
        for step, value in enumerate(values):
            run.step(step, {"loss": np.float32(value)}, mode)
        return run.end()

    return write


def test_a_clean_run(losses, command, run):
    losses(*range(20, 0, -1))
    code, out, err = command("check", "--rules", "LossNotFinite,LossNotDecreasing")
    assert (code, err) == (0, [])
    assert out == [f"Run      {run.root}", "Judged   2 rules over 20 steps: nothing found"]


def test_a_problem(losses, command):
    losses(3, 2, np.nan, np.nan)
    code, out, _ = command("check", "--rules", "LossNotFinite")
    assert code == 1
    assert out[1] == "Judged   1 rule over 4 steps: 1 problem"
    assert out[3:6] == [
        "problem  LossNotFinite: loss",
        "  where     TRAIN steps 2 to 3 (2 saved steps)",
        "  evidence  others 0, others not finite 0, last finite step 1, last finite loss 2",
    ]
    assert [line.split()[0] for line in out[6:]] == ["cause", "try"]


def test_what_could_not_be_judged(losses, command):
    losses(3, 2)
    code, out, _ = command("check", "--rules", "LossNotFinite, LearningRateZero,VanishingGradient")
    assert code == 2
    assert out[2:] == [
        "",
        "Not judged",
        "  LearningRateZero",
        "    no tensor of optimizer was saved",
        "    add optimizer to --save",
        "",
        "Not for this run: VanishingGradient",
    ]


_ASKED = {
    "losses": "loss",
    "optimizer": "^optimizer/",
    "updates": "^update/",
    "gradients": "^gradient/",
    "usage": "^usage/",
}


def test_what_was_asked_for_is_not_to_be_asked_for_again(run, command):
    run.collections(asked=["optimizer", "updates", "gradients"], **_ASKED).step(0, {"loss": np.float32(1)}).end()
    code, out, _ = command("check")
    judged = out.index("Not judged"), out.index("Nothing to judge")
    assert judged[0] < judged[1]
    assert "--save" not in " ".join(out[judged[1] :])
    nothing = out[judged[1] + 1 : out.index("", judged[1])]
    at = nothing.index("    no tensor of optimizer came up")
    assert nothing[at - 1] == "  BatchDividedTwice, LearningRateVanished, LearningRateZero, UpdatesSkipped"
    # Nobody has asked for usage: one sentence for all rules that need it, and what saves it.
    at = out.index("    no tensor of usage was saved")
    assert out[at + 1] == "    add usage to --save"
    assert out.count("    no tensor of usage was saved") == 1
    assert code == 2


def test_what_cannot_come_up_is_no_lack(run, command):
    run.collections(asked=["all"], **_ASKED, all=".*").step(0, {"loss": np.float32(1)}).end()
    code, out, _ = command("check")
    assert "Not judged" not in out
    assert not [line for line in out if "--save" in line]
    assert code == 0


def test_a_rule_that_is_named_has_to_judge(run, command):
    run.collections(asked=["all"], **_ASKED, all=".*").step(0, {"loss": np.float32(1)}).end()
    assert command("check", "--rules", "LossNotFinite")[0] == 0
    code, out, _ = command("check", "--rules", "LossNotFinite,LearningRateZero")
    assert code == 2
    assert out[2:] == ["", "Nothing to judge", "  LearningRateZero", "    no tensor of optimizer came up"]


def test_where_nothing_comes_up_at_all_nothing_is_judged(run, command):
    run.collections(asked=["all"], **_ASKED).step(0, {"other": np.float32(1)}).end()
    code, out, _ = command("check")
    assert (code, out[1]) == (2, "Judged   0 rules over 1 step: nothing found")


def test_the_run_says_why_something_cannot_come_up(run, command):
    why = {"optimizer": "the loop updates by itself"}
    run.collections(asked=[], cannot=why, losses="loss", optimizer="^optimizer/").step(0, {"loss": np.float32(1)}).end()
    told = json.loads("\n".join(command("check", "--json")[1]))
    assert {
        "rule": "LearningRateZero",
        "reason": "no tensor of optimizer came up: the loop updates by itself",
        "option": "",
        "too_few_steps": False,
        "never_came_up": True,
    } in told["not_judged"]


def test_one_reason_of_several_collections_is_said_once(run, command):
    why = dict.fromkeys(("updates", "optimizer", "gradients"), "the loop updates by itself")
    run.collections(asked=["all"], cannot=why, **_ASKED, all=".*").step(0, {"loss": np.float32(1)}).end()
    out = command("check", "--rules", "NotMoving")[1]
    assert out[-1] == "    no tensor of updates or gradients or optimizer came up: the loop updates by itself"


def test_evaluations_alone_have_no_training_steps(run, command):
    run.collections(asked=["all"], **_ASKED).step(0, {"loss": np.float32(1), "usage/a/b": np.float32(1)}, ModeKeys.EVAL)
    run.end()
    told = json.loads("\n".join(command("check", "--json")[1]))
    reasons = {one["rule"]: (one["reason"], one["option"]) for one in told["not_judged"]}
    assert reasons["LossExploding"] == ("no step of TRAIN or GLOBAL was saved", "")


def test_a_statistic_that_was_not_saved_can_be(run, command):
    run.collections(asked=["gradients"], losses="loss", weights="weight", gradients="^gradient/")
    run.step(0, {"loss": np.float32(1), "smdebug/reductions/max/gradient/a": np.float64(1)}).end()
    told = json.loads("\n".join(command("check", "--rules", "VanishingGradient", "--json")[1]))
    (lacks,) = told["not_judged"]
    assert lacks["option"] == "add gradients to --save, with --reductions statistics or --raw"
    assert not lacks["never_came_up"]


def test_too_few_steps_are_no_lack(losses, command):
    losses(3, 2)
    code, out, _ = command("check", "--rules", "LossNotFinite,LossNotDecreasing")
    assert code == 0
    assert out[2:] == [
        "",
        "Too few steps",
        "  LossNotDecreasing",
        "    it takes 10 steps to judge, and there are 2",
        "    save more steps, such as by --every 1",
    ]


def test_too_few_steps_for_all_rules_are(losses, command):
    losses(3, 2)
    code, out, _ = command("check", "--rules", "LossNotDecreasing", "--json")
    assert code == 2
    assert [one["too_few_steps"] for one in json.loads("\n".join(out))["not_judged"]] == [True]


def test_too_few_steps_beside_what_was_not_saved(losses, command):
    losses(3, 2)
    code, out, _ = command("check", "--rules", "LossNotFinite,LossNotDecreasing,LearningRateZero", "--json")
    assert code == 2
    told = {one["rule"]: one["too_few_steps"] for one in json.loads("\n".join(out))["not_judged"]}
    assert told == {"LossNotDecreasing": True, "LearningRateZero": False}


def test_a_problem_counts_more_than_what_could_not_be_judged(losses, command):
    losses(np.inf)
    assert command("check")[0] == 1


def test_a_warning_is_no_problem(losses, command):
    losses(3, np.inf, 2)
    code, out, _ = command("check", "--rules", "LossNotFinite")
    assert (code, out[1]) == (0, "Judged   1 rule over 3 steps: 1 warning")


def test_as_json(losses, command, run):
    losses(3, np.nan)
    code, out, _ = command("check", "--rules", "LossNotFinite,LearningRateZero", "--json")
    told = json.loads("\n".join(out))
    assert (code, told["run"], told["steps"], told["judged"]) == (1, str(run.root), 2, ["LossNotFinite"])
    (found,) = told["findings"]
    assert (found["rule"], found["severity"], found["tensor"], found["mode"]) == (
        "LossNotFinite",
        "problem",
        "loss",
        "TRAIN",
    )
    assert told["not_judged"][0]["option"] == "add optimizer to --save"


def test_rules_of_layers_are_not_for_trees(command, run):
    run.collections(metrics="rmse", trees="trees").step(0, {"rmse": np.float32(1)}).end()
    told = json.loads("\n".join(command("check", "--json")[1]))
    assert {"DeadRelu", "SaturatedActivation", "AllZero", "WeightUpdateRatio"} <= {*told["not_for_it"]}


def test_rules_that_are_applied_only_by_name(losses, command, run):
    losses(3, 2)
    run.step(2, {"loss": np.float32(1)})
    only_by_name = {name for name, rule in built_in_rules().items() if rule.only_by_name}
    told = json.loads("\n".join(command("check", "--json")[1]))
    named = {*told["judged"], *told["not_for_it"], *(one["rule"] for one in told["not_judged"])}
    assert named == {*built_in_rules()} - only_by_name
    assert "StalledTrainingRule" in only_by_name
    told = json.loads("\n".join(command("check", "--rules", "StalledTrainingRule", "--json")[1]))
    assert told["judged"] == ["StalledTrainingRule"]


def test_rules_of_a_file(losses, command, tmp_path):
    losses(3, 2, 0.5)
    file = tmp_path / "own.py"
    file.write_text(OWN)
    code, out, _ = command("check", "--rules", f"{file},LossNotFinite")
    assert (code, out[1]) == (1, "Judged   2 rules over 3 steps: 1 problem")
    assert out[3:] == ["problem  LossAbove", "  where     GLOBAL steps 0 to 1 (2 saved steps)"]


@pytest.mark.parametrize(
    "rules, said",
    [
        ("Nothing", "there is no rule Nothing: there are AccumulationWeights, ActivationMissing, "),
        (" , ", "--rules names none"),
        ("missing.py", "missing.py cannot be read"),
        ("empty.py", "defines no rule"),
        ("demanding.py", "the rule Demanding cannot be made for a trial alone"),
    ],
)
def test_rules_that_there_are_not(rules, said, losses, command, tmp_path, monkeypatch):
    losses(1)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty.py").write_text("from smd_agent.rules import Rule\n")
    demanding = OWN.replace("LossAbove", "Demanding").replace('limit="1.0"', "limit")
    (tmp_path / "demanding.py").write_text(demanding)
    code, out, (line,) = command("check", "--rules", rules)
    assert (code, out) == (2, [])
    assert said in line


def test_a_damaged_value_is_told(losses, command, run):
    losses(3, 2, 1)
    file = next(run.root.rglob("*1_worker_0.tfevents"))
    file.write_bytes(file.read_bytes()[:-1] + b"\0")
    code, _, (line,) = command("check", "--rules", "LossNotFinite")
    assert code == 2
    assert "loss at step 1 is damaged" in line


def test_the_list(run, capsys):
    from smd_agent.cli import main

    assert main(["check", "--list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == [*built_in_rules()]
    by_name = {name for name, rule in built_in_rules().items() if rule.only_by_name}
    assert {line.split()[0] for line in lines if "(only by --rules" in line} == by_name
    assert main(["check", "--list", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told.keys() == built_in_rules().keys()
    assert {name for name, rule in told.items() if rule["only_by_name"]} == by_name
    assert main(["check"]) == 2
