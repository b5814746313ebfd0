"""The larger nets that are measured; they also run on the torch that the old smdebug came with."""

from __future__ import annotations

import torch
from torch import nn


class CNN(nn.Module):
    """Three convolutions with batch norm, and two linear layers."""

    def __init__(self) -> None:
        super().__init__()
        layers: list[nn.Module] = []
        for inputs, outputs in ((3, 16), (16, 32), (32, 64)):
            convolution = nn.Conv2d(inputs, outputs, 3, stride=2, padding=1, bias=False)
            layers += [convolution, nn.BatchNorm2d(outputs), nn.ReLU()]
        self.features = nn.Sequential(*layers)
        self.fc1 = nn.Linear(64 * 4 * 4, 128)
        self.fc2 = nn.Linear(128, 10)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """Return the scores of images, (batch, 3, 32, 32)."""
        scores: torch.Tensor = self.fc2(torch.relu(self.fc1(self.features(images).flatten(1))))
        return scores


class Attention(nn.Module):
    """Self-attention with four heads."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return what each place gathers from all, (batch, length, width)."""
        batch, length, width = x.shape
        parts = self.qkv(x).view(batch, length, 3, 4, width // 4).permute(2, 0, 3, 1, 4)
        weights = torch.softmax(parts[0] @ parts[1].transpose(-2, -1) * (width // 4) ** -0.5, dim=-1)
        gathered: torch.Tensor = self.out((weights @ parts[2]).transpose(1, 2).reshape(batch, length, width))
        return gathered


class Block(nn.Module):
    """One layer of a transformer: ten modules."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm1 = nn.LayerNorm(width)
        self.attention = Attention(width)
        self.norm2 = nn.LayerNorm(width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the layer's output, (batch, length, width)."""
        x = x + self.attention(self.norm1(x))
        result: torch.Tensor = x + self.mlp(self.norm2(x))
        return result


class Transformer(nn.Module):
    """Twelve layers between an embedding and a head: 125 modules."""

    def __init__(self, width: int = 64) -> None:
        super().__init__()
        self.words = nn.Embedding(1000, width)
        self.places = nn.Parameter(torch.zeros(32, width))
        self.blocks = nn.Sequential(*(Block(width) for _ in range(12)))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, 10)

    def forward(self, words: torch.Tensor) -> torch.Tensor:
        """Return the scores of texts, (batch, 32)."""
        scores: torch.Tensor = self.head(self.norm(self.blocks(self.words(words) + self.places)).mean(1))
        return scores


class Ballast(nn.Module):
    """A tiny trained layer beside 100 MB of frozen weights, so that a step costs next to nothing but its saving."""

    def __init__(self) -> None:
        super().__init__()
        self.frozen = nn.ModuleList(nn.Linear(500, 500, bias=False) for _ in range(100))
        self.head = nn.Linear(16, 10)
        self.frozen.requires_grad_(False)

    def forward(self, batch: torch.Tensor) -> torch.Tensor:
        """Return the scores of the tiny layer."""
        scores: torch.Tensor = self.head(batch)
        return scores
