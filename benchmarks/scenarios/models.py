"""Trainings of several models, of parts of one, and of nets that are called in ways of their own."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.nn import functional as F
from torch.optim.swa_utils import AveragedModel
from torch.utils.checkpoint import checkpoint

from benchmarks.scenarios.scene import BATCH, CLASSES, HIDDEN, INPUTS, Losses, Net, Scene, batch, note, scene


class Generator(nn.Module):
    """Makes inputs out of noise."""

    def __init__(self) -> None:
        super().__init__()
        self.fc1 = nn.Linear(8, HIDDEN)
        self.fc2 = nn.Linear(HIDDEN, INPUTS)

    def forward(self, noise: torch.Tensor) -> torch.Tensor:
        """Return what noise, (batch, 8), becomes."""
        made: torch.Tensor = self.fc2(torch.relu(self.fc1(noise)))
        return made


class Discriminator(nn.Module):
    """Tells real inputs from made ones."""

    def __init__(self) -> None:
        super().__init__()
        self.fc1 = nn.Linear(INPUTS, HIDDEN)
        self.fc2 = nn.Linear(HIDDEN, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return one score for each input, (batch, 1)."""
        scores: torch.Tensor = self.fc2(F.leaky_relu(self.fc1(x), 0.2))
        return scores


@scene("GAN")
def gan(folder: Path) -> Scene:
    """Train two nets against each other."""
    generator, discriminator, loss_fn = Generator(), Discriminator(), nn.BCEWithLogitsLoss()
    of_d = torch.optim.Adam(discriminator.parameters())
    of_g = torch.optim.Adam(generator.parameters())
    ones, zeros = torch.ones(BATCH, 1), torch.zeros(BATCH, 1)
    made = Scene(lambda: [], {"Discriminator": discriminator, "Generator": generator})

    def step() -> Losses:
        of_d.zero_grad()
        real = loss_fn(discriminator(batch()[0]), ones)
        real.backward()
        fake = generator(torch.randn(BATCH, 8))
        false = loss_fn(discriminator(fake.detach()), zeros)
        false.backward()
        note(made.gradients, "Discriminator", discriminator)
        of_d.step()
        of_g.zero_grad()
        fooled = loss_fn(discriminator(fake), ones)
        fooled.backward()
        note(made.gradients, "Generator", generator)
        of_g.step()
        return [real, false, fooled]

    made.step = step
    return made


@scene("teacher and student, weights averaged")
def distilled(folder: Path) -> Scene:
    """Train a student after a teacher of the same class, and average the student's weights."""
    teacher, student, loss_fn = Net().eval(), Net(), nn.MSELoss()
    optimizer = torch.optim.SGD(student.parameters(), lr=0.1)
    averaged = AveragedModel(student)
    copied = copy.deepcopy(student)

    def step() -> Losses:
        x, _ = batch()
        with torch.no_grad():
            wanted = teacher(x) + copied(x)
        optimizer.zero_grad()
        loss = loss_fn(student(x), wanted)
        loss.backward()
        optimizer.step()
        averaged.update_parameters(student)
        with torch.no_grad():
            for mine, its in zip(copied.parameters(), student.parameters(), strict=True):
                mine.lerp_(its, 0.01)
        return [loss]

    return Scene(step, {"Net": student})


@scene("two nets of one class")
def twins(folder: Path) -> Scene:
    """Train two nets of one class at the same time."""
    first, second, loss_fn = Net(), Net(), nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD([*first.parameters(), *second.parameters()], lr=0.1)

    def step() -> Losses:
        x, y = batch()
        optimizer.zero_grad()
        loss = loss_fn(first(x) + second(x), y)
        loss.backward()
        optimizer.step()
        return [loss]

    return Scene(step, {"Net": first, "Net_2": second})


class Tuned(nn.Module):
    """A backbone that is not trained, and a head that is."""

    def __init__(self) -> None:
        super().__init__()
        self.backbone = nn.Sequential(nn.Linear(INPUTS, HIDDEN), nn.ReLU(), nn.Linear(HIDDEN, HIDDEN), nn.ReLU())
        self.head = nn.Linear(HIDDEN, CLASSES)
        self.backbone.requires_grad_(False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the scores of a batch."""
        scores: torch.Tensor = self.head(self.backbone(x))
        return scores


@scene("frozen backbone")
def frozen(folder: Path) -> Scene:
    """Train the head alone."""
    model, loss_fn = Tuned(), nn.CrossEntropyLoss()
    optimizer = torch.optim.Adam(model.head.parameters())

    def step() -> Losses:
        x, y = batch()
        optimizer.zero_grad()
        loss = loss_fn(model(x), y)
        loss.backward()
        optimizer.step()
        return [loss]

    return Scene(step, {"Tuned": model})


@scene("contrastive: the net is called twice a step")
def contrastive(folder: Path) -> Scene:
    """Compare what a net makes of two views of one batch."""
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def step() -> Losses:
        x, _ = batch()
        optimizer.zero_grad()
        one, other = model(x), model(x + 0.1 * torch.randn_like(x))
        loss: Any = F.cross_entropy(one @ other.T, torch.arange(BATCH))
        loss.backward()
        optimizer.step()
        return [loss]

    return Scene(step, {"Net": model})


class Rematerialised(nn.Module):
    """A block whose inside is computed again in the backward pass, between two layers."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(INPUTS, HIDDEN)
        self.block = nn.Sequential(nn.Linear(HIDDEN, HIDDEN), nn.Tanh(), nn.Dropout(0.2), nn.Linear(HIDDEN, HIDDEN))
        self.last = nn.Linear(HIDDEN, CLASSES)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the scores of a batch."""
        scores: torch.Tensor = self.last(checkpoint(self.block, self.first(x), use_reentrant=False))
        return scores


@scene("activation checkpointing")
def checkpointed(folder: Path) -> Scene:
    """Train a net that computes its inside twice."""
    model, loss_fn = Rematerialised(), nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def step() -> Losses:
        x, y = batch()
        optimizer.zero_grad()
        loss = loss_fn(model(x), y)
        loss.backward()
        optimizer.step()
        return [loss]

    return Scene(step, {"Rematerialised": model})


class Tied(nn.Module):
    """A transformer layer whose embedding is also its output layer."""

    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(50, INPUTS)
        self.encoder = nn.TransformerEncoderLayer(INPUTS, 4, HIDDEN, batch_first=True)
        self.head = nn.Linear(INPUTS, 50, bias=False)
        self.head.weight = self.words.weight

    def forward(self, words: torch.Tensor) -> torch.Tensor:
        """Return scores for each place, (batch, length, 50)."""
        scores: torch.Tensor = self.head(self.encoder(self.words(words)))
        return scores


@scene("transformer layer, tied weights, evaluated")
def tied(folder: Path) -> Scene:
    """Train a language model of one layer, which takes its fast path in evaluation."""
    model, loss_fn = Tied(), nn.CrossEntropyLoss()
    optimizer = torch.optim.AdamW(model.parameters())

    def step() -> Losses:
        words = torch.randint(0, 50, (8, 9))
        optimizer.zero_grad()
        loss = loss_fn(model(words[:, :-1]).flatten(0, 1), words[:, 1:].flatten())
        loss.backward()
        optimizer.step()
        model.eval()
        with torch.no_grad():
            model(words[:, :-1])
        model.train()
        return [loss]

    return Scene(step, {"Tied": model})


class Recurrent(nn.Module):
    """An LSTM, which returns a tuple of tuples, and what is made of its last state."""

    def __init__(self) -> None:
        super().__init__()
        self.lstm = nn.LSTM(INPUTS, HIDDEN, batch_first=True)
        self.head = nn.Linear(HIDDEN, CLASSES)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the scores of sequences, (batch, length, 32)."""
        scores: torch.Tensor = self.head(self.lstm(x)[1][0][-1])
        return scores


@scene("LSTM")
def recurrent(folder: Path) -> Scene:
    """Train a recurrent net."""
    model, loss_fn = Recurrent(), nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def step() -> Losses:
        optimizer.zero_grad()
        loss = loss_fn(model(torch.randn(BATCH, 5, INPUTS)), batch()[1])
        loss.backward()
        optimizer.step()
        return [loss]

    return Scene(step, {"Recurrent": model})
