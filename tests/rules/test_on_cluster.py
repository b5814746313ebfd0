"""Rules asked by a Dask cluster say what they say in one process, however the work is split."""

from __future__ import annotations

import json
import pickle
import sys

import numpy as np
import pytest
import torch
from harness.written_runs import started
from torch import nn

from smd_agent import create_trial, guard
from smd_agent.cli import main
from smd_agent.core.collection_manager import CollectionManager
from smd_agent.core.modes import ModeKeys
from smd_agent.errors import SMDebugRuntimeError, SMDebugValueError
from smd_agent.rules import Rule
from smd_agent.rules.built_in import Split
from smd_agent.rules.judging import Judging, Verdict
from smd_agent.rules.on_cluster import answer_of, judge_on_cluster, merged, tasks_of
from smd_agent.rules.registry import built_in_rules

RULES = built_in_rules()
OWN = """
from smd_agent.rules import Rule

class Always(Rule):
    def invoke_at_step(self, step):
        return True
"""


class Net(nn.Module):
    """A model of which one layer is never used."""

    def __init__(self):
        super().__init__()
        self.first, self.relu, self.last = nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 1)
        self.unused = nn.Linear(3, 3)

    def forward(self, x):
        return self.last(self.relu(self.first(x)))


def broken(capture):
    """A training on one batch that breaks at half of its steps."""
    model = Net()
    capture(model)
    optimizer = torch.optim.SGD(model.parameters(), 0.05)
    batch = torch.randn(16, 6)
    for step in range(24):
        optimizer.zero_grad()
        if step == 12:
            model.first.weight.register_hook(lambda gradient: gradient * float("nan"))
        nn.functional.mse_loss(model(batch), torch.zeros(16, 1)).backward()
        optimizer.step()


def judged(trial, rules):
    judging = Judging(trial, rules)
    judging.take_new(incomplete=True)
    return judging.verdict()


def in_tasks(trial, rules, slots):
    """What the tasks for so many processes say, done one after the other and sent as to a process."""
    tasks = tasks_of(trial, dict(enumerate(rules)), slots)
    answers = [pickle.loads(pickle.dumps(answer_of(pickle.loads(pickle.dumps(task))))) for task in tasks]
    verdict = merged(Verdict(), trial, dict(enumerate(rules)), answers)
    # The process that has asked adds the lines of the program, see the test of the command.
    judging = Judging(trial, [])
    judging.take_new(incomplete=True)
    judging.add_lines(verdict.findings)
    return verdict, tasks


def documented():
    others = ("SimilarAcrossRuns", "StalledTrainingRule")
    return [rule.as_documented({}) for name, rule in RULES.items() if name not in others]


@pytest.fixture
def workers(tmp_path):
    """A run of three workers, of which the last begins late."""
    manager = CollectionManager()
    manager.get("losses").include("loss")
    manager.get("weights").include("weight")
    manager.set_num_workers(3)
    for number in range(3):
        run = started(tmp_path / "run", f"worker_{number}", False)
        run.write_collections(manager.to_json())
        for step in range(20 * (number == 2), 60):
            file = run.begin_step(step, ModeKeys.TRAIN, step)
            file.add("loss", np.float32(number + 1 if step < 50 else np.nan))
            for name in ("a", "b", "c", "d"):
                file.add(f"{name}.weight", np.full(4, 1 + (step if name == "a" else 0), np.float32))
            run.commit(file)
        run.close(number == 2)
    return create_trial(str(tmp_path / "run"))


@pytest.mark.parametrize("slots", [1, 2, 5])
def test_tasks_find_what_one_process_finds(slots, trained, workers):
    for trial in (trained(broken).trial(), workers):
        for rules in ([rule() for rule in RULES.values()], documented()):
            alone = judged(trial, rules)
            together, tasks = in_tasks(trial, rules, slots)
            assert together.to_json() == alone.to_json()
            assert alone.findings
            assert {made.place for task in tasks for made in task.rules} == {*range(len(rules))}


@pytest.mark.parametrize("name", [name for name, rule in RULES.items() if rule.split is Split.TENSOR])
@pytest.mark.parametrize("slots", [2, 3, 7])
def test_a_rule_about_single_tensors_is_asked_about_parts_of_them(name, slots, trained):
    run = trained(broken)
    told = {
        "NLPSequenceRatio": {"tensor_regex": "output", "token_values": "0", "token_thresholds_percent": "1"},
        "TensorVariance": {"min_threshold": "0.5", "collection_names": "weights,gradients,biases"},
        "UnchangedTensor": {"collection_names": "losses,biases", "never_moved": "false"},
        "RepeatedBatch": {},
    }[name]
    rule = RULES[name](**told)
    alone = judged(run.trial(), [rule])
    together, tasks = in_tasks(run.trial(), [rule], slots)
    assert len(tasks) == slots, "alone it is more than a fair share"
    assert together.to_json() == alone.to_json()
    assert alone.findings


def test_steps_are_those_at_which_any_part_was_looked_at(written):
    run = written(losses="loss")
    for step in range(12):
        run.step(**{f"loss{step % 4}": np.float32(step)})
    run.ended()
    rule = RULES["UnchangedTensor"](num_steps="10", collection_names="losses")
    # No tensor has ten steps.
    alone, (together, _) = judged(run.trial(), [rule]), in_tasks(run.trial(), [rule], 4)
    assert alone.judged == together.judged == ["UnchangedTensor"]
    rule = RULES["UnchangedTensor"](num_steps="13", collection_names="losses")
    alone, (together, _) = judged(run.trial(), [rule]), in_tasks(run.trial(), [rule], 4)
    assert together.to_json() == alone.to_json()
    assert "there are 12" in together.not_judged[0].reason


def test_a_run_without_a_step_has_no_task(written):
    run = written(losses="loss").ended()
    rules = [RULES["LossNotFinite"]()]
    together, tasks = in_tasks(run.trial(), rules, 2)
    assert (tasks, together.to_json()) == ([], judged(run.trial(), rules).to_json())


def test_rules_that_read_the_same_are_asked_together(trained):
    trial = trained(broken).trial()
    names = ("SaturatedActivation", "VanishingGradient", "DeadRelu", "NotMoving")
    _, tasks = in_tasks(trial, [RULES[name]() for name in names], 2)
    groups = {frozenset(made.kind.__name__ for made in task.rules) for task in tasks}
    assert groups == {
        frozenset({"NotMoving", "VanishingGradient"}),
        frozenset({"DeadRelu", "SaturatedActivation"}),
    }


@pytest.fixture(scope="module")
def client():
    distributed = pytest.importorskip("distributed")
    options = {"threads_per_worker": 1, "dashboard_address": None}
    with distributed.LocalCluster(2, **options) as cluster, distributed.Client(cluster) as client:
        yield client


class Above(Rule):
    """A rule of a program's own."""

    def invoke_at_step(self, step):
        return step > 20


def test_a_cluster_of_two_processes_finds_what_one_process_finds(client, trained, workers):
    for trial in (trained(broken).trial(), workers):
        rules = [*(rule() for rule in RULES.values()), Above(trial)]
        together = judge_on_cluster(trial, rules, client).to_json()
        alone = judged(trial, [*(rule() for rule in RULES.values()), Above(trial)]).to_json()
        assert {*together.pop("judged")} == {*alone.pop("judged")}
        together["findings"].sort(key=json.dumps)
        alone["findings"].sort(key=json.dumps)
        assert together == alone
        assert judge_on_cluster(trial, rules[:3], client.scheduler.address).steps == alone["steps"]


def test_the_command_has_a_cluster_judge(client, trained, tmp_path, capsys):
    folder = trained(broken).folder
    own = tmp_path / "own.py"
    own.write_text(OWN)
    words = ["check", folder, "--json", "--rules", f"all,{own}"]
    codes = main(words), main([*words, "--dask", client.scheduler.address])
    out = capsys.readouterr().out
    split = out.index("\n{") + 1
    alone, together = json.loads(out[:split]), json.loads(out[split:])
    assert codes == (1, 1)
    assert {*together.pop("judged")} == {*alone.pop("judged")}
    for verdict in (alone, together):
        verdict["findings"].sort(key=json.dumps)
    assert together == alone


@pytest.mark.parametrize("text", ["local:", "local:0", "local:x", "local:-1"])
def test_a_local_cluster_has_a_number_of_processes(text, written):
    pytest.importorskip("distributed")
    trial = written(losses="loss").ended().trial()
    with pytest.raises(SMDebugValueError, match=r"allowed is local:N with N of 1 or more"):
        judge_on_cluster(trial, [], text)


def test_without_a_scheduler_there_one_line_says_so(written, monkeypatch):
    pytest.importorskip("distributed")
    monkeypatch.setattr("smd_agent.rules.on_cluster._CONNECT_SECONDS", 0.5)
    trial = written(losses="loss").ended().trial()
    with pytest.raises(SMDebugRuntimeError, match=r"^there is no Dask scheduler at tcp://127.0.0.1:9: "):
        judge_on_cluster(trial, [], "tcp://127.0.0.1:9")


def test_without_the_package_one_line_names_the_extra(written, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "distributed", None)
    guard.lines.said.clear()
    folder = written(losses="loss").ended().folder
    assert main(["check", folder, "--dask", "local:2"]) != 0
    line = "smd_agent: a cluster needs the package distributed: pip install 'smd-agent[dask]'\n"
    assert capsys.readouterr().err == line
