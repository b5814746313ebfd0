"""AxesByView, on scores whose axes were swapped by a view, and on views that leave the classes as they are."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn import functional

from smd_agent.rules import AxesByView
from smd_agent.rules.finding import Severity

BATCH, LENGTH, CLASSES, WIDTH, SIDE, BLOCK = 8, 12, 6, 5, 4, 7


class Scores(nn.Module):
    """Scores of each place of a sequence."""

    def __init__(self, bias=True, classes=CLASSES):
        super().__init__()
        self.linear = nn.Linear(WIDTH, classes, bias=bias)

    def forward(self, x):
        return self.linear(x)


class FlatScores(Scores):
    """The same, of places that come one by one."""

    def forward(self, x):
        return self.linear(x.reshape(-1, WIDTH)).view(*x.shape[:-1], -1)


class PlacesLast(Scores):
    """The same, of shape (batch, classes, places)."""

    def forward(self, x):
        return self.linear(x).transpose(1, 2)


class Recurrent(nn.Module):
    """Scores of a recurrent layer, without a head."""

    def __init__(self):
        super().__init__()
        self.layer = nn.GRU(WIDTH, CLASSES, batch_first=True)

    def forward(self, x):
        return self.layer(x)[0]


class Pixels(nn.Module):
    """Scores of each pixel: (batch, classes, side, side + 1)."""

    def __init__(self, channels=CLASSES):
        super().__init__()
        self.conv = nn.Conv2d(WIDTH, channels, 1)

    def forward(self, x):
        return self.conv(x)


def training_of(view, net=Scores, shape=(BATCH, LENGTH, WIDTH), places=(BATCH, LENGTH), loss=None, count=4):
    """A training in whose loss the scores are what ``view`` makes of a model's output."""

    def training(capture):
        model = net()
        capture(model)
        optimizer = torch.optim.SGD(model.parameters(), 0.01)
        for _ in range(count):
            optimizer.zero_grad()
            scores = view(model(torch.randn(shape)))
            target = torch.randint(scores.shape[1], places)
            (loss or functional.cross_entropy)(scores, target).backward()
            optimizer.step()

    return training


def of_logarithms(scores, target):
    return functional.nll_loss(scores.log_softmax(1), target)


PIXELS = {"shape": (BATCH, WIDTH, SIDE, SIDE + 1), "net": Pixels}
ON_GRID = {"shape": (BATCH, SIDE, BLOCK, WIDTH), "places": (BATCH, SIDE, BLOCK)}
WRONG = {
    "view": training_of(lambda x: x.view(BATCH, CLASSES, LENGTH)),
    "reshape": training_of(lambda x: x.reshape(BATCH, CLASSES, LENGTH)),
    "by flat ones": training_of(lambda x: x.view(-1, CLASSES).view(BATCH, CLASSES, LENGTH)),
    "and cloned": training_of(lambda x: x.view(BATCH, CLASSES, LENGTH).clone()),
    "module": training_of(lambda x: x.view(BATCH, CLASSES, LENGTH), loss=nn.CrossEntropyLoss()),
    "logarithms": training_of(lambda x: x.view(BATCH, CLASSES, LENGTH), loss=of_logarithms),
    "without a bias": training_of(lambda x: x.view(BATCH, CLASSES, LENGTH), net=lambda: Scores(bias=False)),
    "places one by one": training_of(lambda x: x.view(BATCH, CLASSES, LENGTH), net=FlatScores),
    "recurrent": training_of(lambda x: x.contiguous().view(BATCH, CLASSES, LENGTH), net=Recurrent),
    "as many as the batch": training_of(
        lambda x: x.view(BATCH, BATCH, LENGTH), net=lambda: Scores(classes=BATCH), places=(BATCH, LENGTH)
    ),
    "grid": training_of(lambda x: x.view(BATCH, CLASSES, SIDE, BLOCK), **ON_GRID),
    "parts of an image": training_of(lambda x: x.view(BATCH, CLASSES, 3, 4), places=(BATCH, 3, 4)),
    "pixels made flat": training_of(lambda x: x.view(-1, CLASSES), places=(BATCH * SIDE * (SIDE + 1),), **PIXELS),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_view_in_the_place_of_a_transpose(trained, name):
    (found,) = trained(WRONG[name]).findings(AxesByView())
    assert (found.severity, found.first_step, found.steps) == (Severity.PROBLEM, 2, 2)
    assert found.tensor.startswith("usage/loss/")
    assert found.tensor.endswith("_0/classes_mixed")


RIGHT = {
    "transposed": training_of(lambda x: x.transpose(1, 2)),
    "transposed and made whole": training_of(lambda x: x.transpose(1, 2).contiguous().view(BATCH, CLASSES, LENGTH)),
    "flat": training_of(lambda x: x.view(-1, CLASSES), places=(BATCH * LENGTH,)),
    "flat, with time in front": training_of(lambda x: x.transpose(0, 1).reshape(-1, CLASSES), places=(BATCH * LENGTH,)),
    "there and back": training_of(
        lambda x: x.view(BATCH, CLASSES, LENGTH).view(BATCH, LENGTH, CLASSES).flatten(0, 1), places=(BATCH * LENGTH,)
    ),
    "one place": training_of(lambda x: x.view(BATCH, CLASSES, 1), shape=(BATCH, 1, WIDTH), places=(BATCH, 1)),
    "head for all places": training_of(lambda x: x.view(BATCH, 2, 3), shape=(BATCH, WIDTH), places=(BATCH, 3)),
    "blocks of a head": training_of(
        lambda x: x.view(BATCH, 2, 3, LENGTH).permute(0, 3, 1, 2).flatten(0, 1),
        places=(BATCH * LENGTH, 3),
        net=PlacesLast,
    ),
    "pixels in a row": training_of(lambda x: x.flatten(2), places=(BATCH, SIDE * (SIDE + 1)), **PIXELS),
    "pixels turned": training_of(
        lambda x: x.view(BATCH, CLASSES, SIDE + 1, SIDE), places=(BATCH, SIDE + 1, SIDE), **PIXELS
    ),
    "pixels as they are": training_of(lambda x: x, places=(BATCH, SIDE, SIDE + 1), **PIXELS),
    "pixels with classes last": training_of(
        lambda x: x.permute(0, 2, 3, 1).reshape(-1, CLASSES), places=(BATCH * SIDE * (SIDE + 1),), **PIXELS
    ),
    # As in PixelCNN: as many levels as an image is wide.
    "levels of channels": training_of(
        lambda x: x.view(BATCH, SIDE + 1, 3, SIDE, SIDE + 1),
        places=(BATCH, 3, SIDE, SIDE + 1),
        shape=PIXELS["shape"],
        net=lambda: Pixels(3 * (SIDE + 1)),
    ),
    # Two channels for each class, and as many classes as an image is wide.
    "channels by class": training_of(
        lambda x: x.view(BATCH, SIDE + 1, SIDE, 2 * (SIDE + 1)),
        places=(BATCH, SIDE, 2 * (SIDE + 1)),
        shape=PIXELS["shape"],
        net=lambda: Pixels(2 * (SIDE + 1)),
    ),
    "one pixel": training_of(lambda x: x.view(-1, CLASSES), places=(BATCH,), net=Pixels, shape=(BATCH, WIDTH, 1, 1)),
}


@pytest.mark.parametrize("name", RIGHT)
def test_views_that_leave_the_classes_as_they_are(trained, name):
    verdict = trained(RIGHT[name]).verdict(AxesByView())
    assert (verdict.findings, verdict.problems) == ([], [])


HEADS, TOKENS = 3, 9


def by_product(q, k, v):
    """Attention as programs write it, causal."""
    length = q.shape[-2]
    scores = q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5
    hidden = torch.ones(length, length, dtype=torch.bool).triu(1)
    return scores.masked_fill(hidden, -torch.inf).softmax(-1) @ v


def by_function(q, k, v):
    return functional.scaled_dot_product_attention(q, k, v, is_causal=True)


class Attention(nn.Module):
    """A model of tokens, or of numbers, whose heads ``split`` makes of (batch, length, width)."""

    def __init__(self, split, attend=by_product, of_tokens=True, heads=HEADS):
        super().__init__()
        self.width = 2 * heads
        self.first = nn.Embedding(TOKENS, self.width) if of_tokens else nn.Linear(WIDTH, self.width)
        self.qkv, self.head = nn.Linear(self.width, 3 * self.width), nn.Linear(self.width, TOKENS)
        self.split, self.attend = split, attend

    def forward(self, x):
        q, k, v = (self.split(one) for one in self.qkv(self.first(x)).chunk(3, -1))
        out = self.attend(q, k, v)
        return self.head(out.transpose(1, 2).reshape(BATCH, -1, self.width))


def attention_trained(split, length=LENGTH, of_tokens=True, count=4, **told):
    def training(capture):
        model = Attention(split, of_tokens=of_tokens, **told)
        capture(model)
        optimizer = torch.optim.SGD(model.parameters(), 0.01)
        for _ in range(count):
            optimizer.zero_grad()
            x = torch.randint(TOKENS, (BATCH, length)) if of_tokens else torch.randn(BATCH, length, WIDTH)
            wanted = torch.randint(TOKENS, (BATCH, length))
            functional.cross_entropy(model(x).transpose(1, 2), wanted).backward()
            optimizer.step()

    return training


def cut_anew(x):
    return x.reshape(BATCH, HEADS, -1, 2)


MIXED_HEADS = {
    "reshape": attention_trained(cut_anew),
    "view": attention_trained(lambda x: x.contiguous().view(BATCH, HEADS, LENGTH, 2)),
    "scaled": attention_trained(lambda x: cut_anew(x) * 2**-0.5),
    "function": attention_trained(cut_anew, attend=by_function),
    "numbers": attention_trained(cut_anew, of_tokens=False),
}


@pytest.mark.parametrize("name", MIXED_HEADS)
def test_heads_by_a_view(trained, name):
    (found,) = trained(MIXED_HEADS[name]).findings(AxesByView())
    assert (found.tensor, found.steps) == ("usage/attention/0/heads_mixed", 2)
    assert found.evidence == {"length": LENGTH}
    assert "heads" in found.cause


def moved(x):
    return x.reshape(BATCH, -1, HEADS, 2).transpose(1, 2)


RIGHT_HEADS = {
    "moved": attention_trained(moved),
    "moved and made whole": attention_trained(lambda x: moved(x).contiguous() * 2**-0.5),
    "function": attention_trained(moved, attend=by_function),
    "permuted": attention_trained(lambda x: x.unflatten(-1, (HEADS, 2)).permute(0, 2, 1, 3).clone()),
    "numbers": attention_trained(moved, of_tokens=False),
    "one head": attention_trained(lambda x: x.reshape(BATCH, 1, LENGTH, 2), heads=1),
    # Windows of a sequence, each of which attends to itself.
    "windows": attention_trained(lambda x: x.reshape(BATCH, 4, 3, 2 * HEADS)),
    "as many heads as places": attention_trained(moved, length=HEADS),
}


@pytest.mark.parametrize("name", RIGHT_HEADS)
def test_heads_that_are_moved(trained, name):
    verdict = trained(RIGHT_HEADS[name]).verdict(AxesByView())
    assert (verdict.findings, verdict.problems) == ([], [])


def test_probabilities_for_labels_are_not_looked_at(trained):
    def soft(scores, target):
        return functional.cross_entropy(scores, torch.rand(scores.shape))

    run = trained(training_of(lambda x: x.view(BATCH, CLASSES, LENGTH), loss=soft))
    assert run.verdict(AxesByView()).findings == []


def test_one_step_less_than_it_takes(trained):
    run = trained(training_of(lambda x: x.view(BATCH, CLASSES, LENGTH), count=3))
    assert len(run.findings(AxesByView())) == 1
    assert run.findings(AxesByView(patience=4)) == []


def test_clean_trainings_are_silent(clean):
    found = {name: run.verdict(AxesByView()).findings for name, run in clean.items()}
    assert {name: findings for name, findings in found.items() if findings} == {}
