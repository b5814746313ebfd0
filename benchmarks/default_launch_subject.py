"""Training script that nobody edited, of a small CNN or of a model of GPT-2 small's size: what the launcher is given.

It writes the seconds from the start of its interpreter to the end of each step to a file, as JSON.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path

import torch
from torch import nn
from torch.nn import functional

START = float(os.environ["BENCHMARK_START"])


class Block(nn.Module):
    """One layer of a language model."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.norm1 = nn.LayerNorm(width)
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)
        self.norm2 = nn.LayerNorm(width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))
        self.heads = heads

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the layer's output, (batch, length, width)."""
        batch, length, width = x.shape
        q, k, v = self.qkv(self.norm1(x)).view(batch, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        found = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(found.transpose(1, 2).reshape(batch, length, width))
        result: torch.Tensor = x + self.mlp(self.norm2(x))
        return result


class LanguageModel(nn.Module):
    """124 million parameters, as GPT-2 small: 12 layers of width 768, the head sharing the embedding's weight."""

    def __init__(self, words: int = 50257, places: int = 1024, width: int = 768) -> None:
        super().__init__()
        self.words = nn.Embedding(words, width)
        self.places = nn.Embedding(places, width)
        self.blocks = nn.Sequential(*(Block(width, 12) for _ in range(12)))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, words, bias=False)
        self.head.weight = self.words.weight

    def forward(self, text: torch.Tensor) -> torch.Tensor:
        """Return the scores of each place's next word, (batch, length, words)."""
        places = torch.arange(text.shape[1])
        scores: torch.Tensor = self.head(self.norm(self.blocks(self.words(text) + self.places(places))))
        return scores


class CNN(nn.Module):
    """Three convolutions with batch norm, and two linear layers."""

    def __init__(self) -> None:
        super().__init__()
        layers: list[nn.Module] = []
        for inputs, outputs in ((3, 32), (32, 64), (64, 128)):
            convolution = nn.Conv2d(inputs, outputs, 3, stride=2, padding=1, bias=False)
            layers += [convolution, nn.BatchNorm2d(outputs), nn.ReLU()]
        self.features = nn.Sequential(*layers)
        self.fc1 = nn.Linear(128 * 4 * 4, 256)
        self.fc2 = nn.Linear(256, 10)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """Return the scores of images, (batch, 10)."""
        scores: torch.Tensor = self.fc2(torch.relu(self.fc1(self.features(images).flatten(1))))
        return scores


def train(model: nn.Module, batch: torch.Tensor, labels: torch.Tensor, steps: int) -> list[float]:
    """Train with AdamW; return the seconds after each step."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    times = []
    for _ in range(steps):
        optimizer.zero_grad()
        loss = functional.cross_entropy(model(batch).flatten(0, -2), labels.flatten())
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        loss.item()
        times.append(time.time() - START)
    return times


def main() -> None:
    """Train the model of this name for so many steps, and write the times."""
    name, steps, file = sys.argv[1:]
    torch.manual_seed(0)
    if name == "cnn":
        times = train(CNN(), torch.randn(64, 3, 32, 32), torch.randint(10, (64,)), int(steps))
    else:
        text = torch.randint(50257, (2, 65))
        times = train(LanguageModel(), text[:, :-1], text[:, 1:], int(steps))
    Path(file).write_text(json.dumps(times))


if __name__ == "__main__":
    main()
