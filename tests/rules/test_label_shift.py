"""LabelShift, on language models whose labels are shifted once, twice, and not at all."""

from __future__ import annotations

import pytest
import torch
from harness.padded_rows import TOKENS, WIDTH
from harness.padded_rows import Net as Recurrent
from torch import nn
from torch.nn import functional

from smd_agent.rules import LabelShift
from smd_agent.rules.finding import Severity

LENGTH, SIZE = 9, 6
IGNORED = -100


class Causal(nn.Module):
    """A transformer with a causal mask."""

    def __init__(self):
        super().__init__()
        self.embedding, self.head = nn.Embedding(TOKENS, WIDTH), nn.Linear(WIDTH, TOKENS)
        layer = nn.TransformerEncoderLayer(WIDTH, 2, 16, dropout=0.0, batch_first=True)
        self.blocks = nn.TransformerEncoder(layer, 1, enable_nested_tensor=False)

    def forward(self, x):
        mask = nn.Transformer.generate_square_subsequent_mask(x.shape[1])
        return self.head(self.blocks(self.embedding(x), mask=mask))


class ShiftsItself(Recurrent):
    """Called as the models of transformers are: it shifts the labels itself."""

    def forward(self, input_ids, attention_mask=None, labels=None):
        logits = super().forward(input_ids)
        wanted = functional.pad(labels, (0, 1), value=IGNORED)[..., 1:].contiguous()
        return functional.cross_entropy(logits.view(-1, TOKENS), wanted.view(-1), ignore_index=IGNORED)


class TakesTargets(Recurrent):
    """Called with the targets beside the tokens, which it does not shift."""

    def forward(self, x, targets):
        return functional.cross_entropy(super().forward(x).view(-1, TOKENS), targets.view(-1))


def flat(logits, y):
    return functional.cross_entropy(logits.reshape(-1, TOKENS), y.reshape(-1), ignore_index=IGNORED)


def training_of(step, model=Recurrent, count=4):
    """A training; ``step`` gives the loss of a model and tokens of the shape (SIZE, LENGTH)."""

    def training(capture):
        net = model()
        capture(net)
        optimizer = torch.optim.SGD(net.parameters(), 0.01)
        for _ in range(count):
            optimizer.zero_grad()
            step(net, torch.randint(0, TOKENS, (SIZE, LENGTH))).backward()
            optimizer.step()

    return training


def padded(tokens):
    labels = tokens.clone()
    labels[:2, -3:] = IGNORED
    return labels


TWICE = {
    "cut by two": (Recurrent, lambda net, x: flat(net(x)[:, :-2], x[:, 2:])),
    "by the data and in the loop": (Recurrent, lambda net, x: flat(net(x[:, :-1])[:, :-1], x[:, 2:])),
    "with padding": (Recurrent, lambda net, x: flat(net(x)[:, :-2], padded(x)[:, 2:])),
    "turned": (Recurrent, lambda net, x: functional.cross_entropy(net(x)[:, :-2].transpose(1, 2), x[:, 2:])),
    "under a mask": (Causal, lambda net, x: flat(net(x)[:, :-2], x[:, 2:])),
    "by the data and in the model": (
        ShiftsItself,
        lambda net, x: net(input_ids=x[:, :-1], attention_mask=torch.ones_like(x[:, 1:]), labels=x[:, 1:].clone()),
    ),
    "in two data sets": (TakesTargets, lambda net, x: net(x[:, :-2], x[:, 2:].clone())),
}
ONCE = {
    "cut": (Recurrent, lambda net, x: flat(net(x)[:, :-1], x[:, 1:])),
    "by the data": (Causal, lambda net, x: flat(net(x[:, :-1]), x[:, 1:])),
    "with padding": (Recurrent, lambda net, x: flat(net(x)[:, :-1], padded(x)[:, 1:])),
    "in the model": (ShiftsItself, lambda net, x: net(x, torch.ones_like(x), x)),
    "in the data set": (TakesTargets, lambda net, x: net(x[:, :-1].clone(), x[:, 1:].clone())),
}
NOT_AT_ALL = {
    "alone": (Recurrent, lambda net, x: flat(net(x), x)),
    "both cut": (Recurrent, lambda net, x: flat(net(x)[:, :-1], x[:, :-1])),
    "beside each other": (TakesTargets, lambda net, x: net(x, x.clone())),
    "under a mask": (Causal, lambda net, x: flat(net(x), padded(x))),
}


@pytest.mark.parametrize("how", TWICE)
def test_labels_that_are_shifted_twice(trained, how):
    model, step = TWICE[how]
    (found,) = trained(training_of(step, model)).findings(LabelShift())
    assert (found.severity, found.first_step, found.steps) == (Severity.PROBLEM, 2, 2)
    assert found.tensor == "usage/target/cross_entropy_loss_0/second_1"
    assert found.evidence["offset"] == 2
    assert found.evidence["compared"] >= 15
    assert "shifted twice" in found.cause


@pytest.mark.parametrize("how", ONCE)
def test_labels_that_are_shifted_once(trained, how):
    model, step = ONCE[how]
    verdict = trained(training_of(step, model)).verdict(LabelShift())
    assert verdict.findings == []


@pytest.mark.parametrize("how", NOT_AT_ALL)
def test_labels_that_are_not_shifted(trained, how):
    model, step = NOT_AT_ALL[how]
    (found,) = trained(training_of(step, model)).findings(LabelShift())
    assert found.severity is (Severity.WARNING if model is Causal else Severity.NOTE)
    assert found.tensor == "usage/target/cross_entropy_loss_0/same_1"
    assert found.evidence["offset"] == 0


def test_sequences_along_the_first_axis(trained):
    def step(net, x):
        return flat(net(x)[:, :-2].transpose(0, 1), x[:, 2:].t())

    class InTime(Recurrent):
        def forward(self, x):
            return super().forward(x.t())

    (found,) = trained(training_of(lambda net, x: step(lambda x: net(x.t()), x), InTime)).findings(LabelShift())
    assert found.tensor == "usage/target/cross_entropy_loss_0/second_0"


def masked(net, x):
    """A model that predicts some tokens that it does not see."""
    hidden = torch.rand(x.shape) < 0.3
    hidden[0, 0] = True
    return flat(net(x.masked_fill(hidden, 0)), x.where(hidden, torch.tensor(IGNORED)))


def two_heads(net, x):
    """A model that predicts the next token and, by the same logits, the one after it."""
    logits = net(x)
    return flat(logits[:, :-1], x[:, 1:]) + flat(logits[:, :-2], x[:, 2:])


def one_differs(net, x):
    wanted = x[:, 2:].clone()
    place = next(place for place in range(LENGTH - 2) if len({*x[0, place : place + 3].tolist()}) == 3)
    wanted[0, place] = next(one for one in range(TOKENS) if one not in x[0, place : place + 3].tolist())
    return flat(net(x)[:, :-2], wanted)


def repeats(net, x):
    """Sequences in which the token after the next one is the same again."""
    x = x[:, :2].repeat(1, LENGTH // 2)
    return flat(net(x)[:, :-2], x[:, 2:])


def other(net, x):
    return flat(net(x), torch.randint(0, TOKENS, x.shape))


class Teaches(nn.Module):
    """A decoder that is given its targets, each of which it looks at once it has predicted it."""

    def __init__(self):
        super().__init__()
        self.net = Recurrent()

    def forward(self, hidden, target_tensor):
        return self.net(functional.pad(target_tensor[:, :-1], (1, 0)))


def test_targets_that_are_given_under_their_name(trained):
    run = trained(training_of(lambda net, x: flat(net(torch.ones(2), x), x.clone()), Teaches))
    assert run.verdict(LabelShift()).findings == []


@pytest.mark.parametrize("step", [masked, two_heads, one_differs, repeats, other])
def test_other_targets(trained, step):
    assert trained(training_of(step)).findings(LabelShift()) == []


def test_several_sequences(trained):
    class Two(Recurrent):
        def forward(self, source, target):
            return super().forward(target) + super().forward(source).mean()

    run = trained(training_of(lambda net, x: flat(net(x, x.clone())[:, :-2], x[:, 2:]), Two))
    assert run.verdict(LabelShift()).findings == []


def test_as_much_as_it_takes(trained):
    run = trained(training_of(TWICE["cut by two"][1], count=3))
    (found,) = run.findings(LabelShift())
    assert run.findings(LabelShift(patience=4)) == []
    assert len(run.findings(LabelShift(tokens=int(found.evidence["compared"]) - 12, patience=1))) == 1
    assert run.findings(LabelShift(tokens=SIZE * LENGTH)) == []


def test_clean_trainings_are_silent(clean):
    found = {name: run.verdict(LabelShift()).findings for name, run in clean.items()}
    assert {name: findings for name, findings in found.items() if findings} == {}
