"""EvaluationInTrainingMode, on evaluations before which eval() was not called."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn import functional

from smd_agent.core.modes import ModeKeys
from smd_agent.rules import EvaluationInTrainingMode
from smd_agent.rules.finding import Severity

LAYERS = {"dropout": nn.Dropout(0.3), "batch_norm": nn.BatchNorm1d(8)}


def evaluated(layer, prepare, with_loss=True, batches=3):
    def training(capture):
        model = nn.Sequential(nn.Linear(6, 8), layer, nn.Linear(8, 4))
        hook = capture(model)
        optimizer = torch.optim.SGD(model.parameters(), 0.1)
        for _ in range(2):
            model.train()
            hook.set_mode(ModeKeys.TRAIN)
            for _ in range(2):
                optimizer.zero_grad()
                functional.cross_entropy(model(torch.randn(16, 6)), torch.randint(0, 4, (16,))).backward()
                optimizer.step()
            hook.set_mode(ModeKeys.EVAL)
            prepare(model)
            with torch.no_grad():
                for _ in range(batches):
                    output = model(torch.randn(16, 6))
                    if with_loss:
                        functional.cross_entropy(output, torch.randint(0, 4, (16,)))

    return training


@pytest.mark.parametrize("kind", LAYERS)
def test_eval_is_never_called(trained, kind):
    (found,) = trained(evaluated(LAYERS[kind], nn.Module.train)).findings(EvaluationInTrainingMode())
    assert (found.severity, found.mode) == (Severity.WARNING, ModeKeys.EVAL)
    assert found.tensor == f"usage/model/Sequential/{kind}"
    assert (found.first_step, found.steps) == (1, 5)
    assert found.evidence == {"in_training_mode": 1}
    assert ("Dropout" if kind == "dropout" else "statistics") in found.cause


def test_without_a_loss_it_is_a_note(trained):
    (found,) = trained(evaluated(LAYERS["dropout"], nn.Module.train, False)).findings(EvaluationInTrainingMode())
    assert found.severity is Severity.NOTE


def test_single_calls_without_a_loss_are_samples(trained):
    run = trained(evaluated(LAYERS["batch_norm"], nn.Module.train, False, batches=1))
    assert run.findings(EvaluationInTrainingMode()) == []


def test_one_step_less_than_it_takes(trained):
    run = trained(evaluated(LAYERS["dropout"], nn.Module.train, batches=1))
    assert len(run.findings(EvaluationInTrainingMode())) == 1
    assert run.findings(EvaluationInTrainingMode(patience=3)) == []


def monte_carlo(model):
    model.eval()
    model[1].train()


@pytest.mark.parametrize("prepare", [nn.Module.eval, monte_carlo])
@pytest.mark.parametrize("kind", LAYERS)
def test_eval_is_called_and_layers_alone_may_be_in_training_mode(trained, kind, prepare):
    assert trained(evaluated(LAYERS[kind], prepare)).findings(EvaluationInTrainingMode()) == []


@pytest.mark.parametrize("layer", [nn.Dropout(0.0), nn.BatchNorm1d(8, track_running_stats=False), nn.LayerNorm(8)])
def test_layers_to_which_it_is_all_the_same(trained, layer):
    assert trained(evaluated(layer, nn.Module.train)).findings(EvaluationInTrainingMode()) == []


def test_samples_of_a_generator_within_each_step_are_no_evaluation(trained):
    def gan(capture):
        makes = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Linear(8, 2))
        judges = nn.Sequential(nn.Linear(2, 8), nn.Dropout(0.1), nn.Linear(8, 1))
        hook = capture(makes, judges)
        hook.recorder.follow_calls()
        of_makes, of_judges = (torch.optim.SGD(model.parameters(), 0.1) for model in (makes, judges))
        loss, ones, zeros = nn.BCEWithLogitsLoss(), torch.ones(8, 1), torch.zeros(8, 1)
        for _ in range(8):
            for _ in range(2):
                with torch.no_grad():
                    made = makes(torch.randn(8, 4))
                of_judges.zero_grad()
                (loss(judges(torch.randn(8, 2)), ones) + loss(judges(made), zeros)).backward()
                of_judges.step()
            of_makes.zero_grad()
            loss(judges(makes(torch.randn(8, 4))), ones).backward()
            of_makes.step()

    assert trained(gan).findings(EvaluationInTrainingMode()) == []


class ByFunction(nn.Module):
    """A layer that drops by a function, in as many ways as there are."""

    def __init__(self, way, p=0.3):
        super().__init__()
        self.way, self.p = way, p

    def forward(self, x):
        return getattr(self, self.way)(x)

    def left_out(self, x):
        return functional.dropout(x, p=self.p)

    def in_place(self, x):
        return functional.dropout(x, self.p)

    def over_lines(self, x):
        return (
            functional.dropout(
                x,
                p=self.p,
            )
            + 0
        )

    def channels(self, x):
        return functional.dropout1d(x[None], p=self.p)[0]

    def by_mode(self, x):
        return functional.dropout(x, p=self.p, training=self.training)

    def by_mode_in_place(self, x):
        return functional.dropout(x, self.p, self.training)

    def always(self, x):
        return functional.dropout(x, self.p, training=True)

    def always_on_one_line(self, x):
        return functional.dropout(x, 0.0) + functional.dropout(x, self.p, training=True)

    def by_settings(self, x):
        return functional.dropout(x, **{"p": self.p, "training": True})

    def by_more(self, x):
        return functional.dropout(x, *(self.p, True))

    def by_another_name(self, x):
        drop = functional.dropout
        return drop(x, self.p)


@pytest.mark.parametrize("way", ["left_out", "in_place", "over_lines", "channels"])
def test_dropout_by_a_function_that_is_not_told_the_mode(trained, way):
    before = {name: getattr(functional._VF, name) for name in ("dropout", "feature_dropout")}
    (found,) = trained(evaluated(ByFunction(way), nn.Module.eval)).findings(EvaluationInTrainingMode())
    assert (found.severity, found.mode) == (Severity.WARNING, ModeKeys.EVAL)
    assert found.tensor == "usage/model/Sequential/functional_dropout"
    assert (found.first_step, found.steps) == (1, 5)
    assert found.evidence == {"dropped": pytest.approx(0.3)}
    assert "F.dropout" in found.cause
    (found,) = trained(evaluated(ByFunction(way), nn.Module.eval, with_loss=False)).findings(EvaluationInTrainingMode())
    assert found.severity is Severity.NOTE
    assert {name: getattr(functional._VF, name) for name in before} == before
    assert not vars(functional._VF).keys() & before.keys()


@pytest.mark.parametrize(
    "way", ["by_mode", "by_mode_in_place", "always", "always_on_one_line", "by_settings", "by_more", "by_another_name"]
)
def test_dropout_by_a_function_that_is_told_the_mode(trained, way):
    assert trained(evaluated(ByFunction(way), nn.Module.eval)).findings(EvaluationInTrainingMode()) == []


def test_dropout_by_a_function_that_drops_nothing(trained):
    assert trained(evaluated(ByFunction("left_out", 0.0), nn.Module.eval)).findings(EvaluationInTrainingMode()) == []


def test_a_layer_in_training_mode_alone_that_drops_by_a_function(trained):
    assert trained(evaluated(ByFunction("left_out"), monte_carlo)).findings(EvaluationInTrainingMode()) == []


def test_dropout_beside_the_model(trained):
    """As of what is given to it on purpose, to see how it bears that."""

    def noise(model):
        model.eval()
        functional.dropout(torch.ones(4), 0.5)

    assert trained(evaluated(nn.Identity(), noise)).findings(EvaluationInTrainingMode()) == []


def test_scripts_compile_while_dropout_is_watched(trained):
    found = []

    def prepare(model):
        model.eval()
        model[1].register_forward_hook(lambda *_: found.append(torch.jit.script(Scripted())(torch.ones(3))))

    trained(evaluated(nn.Dropout(0.3), prepare, batches=1))
    assert [one.shape for one in found] == [(3,)] * len(found)
    assert found


class Scripted(nn.Module):
    """A module that TorchScript compiles, with dropout by a function."""

    def forward(self, x):
        return functional.dropout(x, 0.5)


def test_clean_trainings_are_silent(clean):
    assert clean["evaluation_in_between"].findings(EvaluationInTrainingMode()) == []
    verdicts = {name: run.verdict(EvaluationInTrainingMode()) for name, run in clean.items()}
    assert {name: verdict.findings for name, verdict in verdicts.items() if verdict.findings} == {}
