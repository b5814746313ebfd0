"""What a scenario is, and the small nets that most of them train."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import torch
from torch import nn

BATCH = 16
INPUTS = 32
HIDDEN = 64
CLASSES = 10

Losses = list[torch.Tensor]


@dataclass
class Scene:
    """A training that can be run iteration by iteration.

    Args:
        step: runs one iteration and returns every loss that it computed.
        models: those that are trained, as the user sees them, by the name that their tensors are to begin with; in the
            order of their first calls.
        gradients: what the iteration notes by itself, by name of the model and name of the parameter, in place of what
            the parameter's ``grad`` says afterwards.
    """

    step: Callable[[], Losses]
    models: Mapping[str, nn.Module]
    gradients: dict[tuple[str, str], torch.Tensor] = field(default_factory=dict)


SCENES: dict[str, Callable[[Path], Scene]] = {}
"""By what the table calls them. They are given an empty folder, and begin with seeds that are set."""


def scene(words: str) -> Callable[[Callable[[Path], Scene]], Callable[[Path], Scene]]:
    """Enter a scenario under the words that describe it."""

    def enter(make: Callable[[Path], Scene]) -> Callable[[Path], Scene]:
        SCENES[words] = make
        return make

    return enter


def note(gradients: dict[tuple[str, str], torch.Tensor], name: str, model: nn.Module) -> None:
    """Note a model's gradients as they stand."""
    for key, parameter in model.named_parameters():
        if parameter.grad is not None:
            gradients[name, key] = parameter.grad.detach().clone()


def batch() -> tuple[torch.Tensor, torch.Tensor]:
    """Draw inputs, (16, 32), and classes, (16)."""
    return torch.randn(BATCH, INPUTS), torch.randint(0, CLASSES, (BATCH,))


class Net(nn.Module):
    """Two layers with dropout between them; gives scores, (batch, 10)."""

    def __init__(self) -> None:
        super().__init__()
        self.fc1 = nn.Linear(INPUTS, HIDDEN)
        self.drop = nn.Dropout(0.2)
        self.fc2 = nn.Linear(HIDDEN, CLASSES)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the scores of a batch, (batch, 32)."""
        scores: torch.Tensor = self.fc2(self.drop(torch.relu(self.fc1(x))))
        return scores


class Embedded(nn.Module):
    """A table of words, whose gradient is sparse if asked for, below a linear layer."""

    def __init__(self, sparse: bool = False) -> None:
        super().__init__()
        self.words = nn.Embedding(100, INPUTS, sparse=sparse)
        self.head = nn.Linear(INPUTS, CLASSES)

    def forward(self, words: torch.Tensor) -> torch.Tensor:
        """Return the scores of sentences, (batch, length)."""
        scores: torch.Tensor = self.head(self.words(words).mean(1))
        return scores
