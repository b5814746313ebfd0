"""Classify pen gestures of different lengths with a GRU."""
import math
import random

import torch
import torch.nn as nn
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader, Dataset

torch.manual_seed(0)
random.seed(0)

CLASSES = ["circle", "zigzag", "spiral", "line", "eight"]


def draw(kind, n):
    t = torch.linspace(0, 1, n)
    phase = random.uniform(0, 2 * math.pi)
    if kind == "circle":
        xy = torch.stack([torch.cos(2 * math.pi * t + phase), torch.sin(2 * math.pi * t + phase)], 1)
    elif kind == "zigzag":
        xy = torch.stack([2 * t - 1, torch.sign(torch.sin(8 * math.pi * t + phase)) * 0.5], 1)
    elif kind == "spiral":
        xy = torch.stack([t * torch.cos(4 * math.pi * t + phase), t * torch.sin(4 * math.pi * t + phase)], 1)
    elif kind == "line":
        xy = torch.stack([(2 * t - 1) * math.cos(phase), (2 * t - 1) * math.sin(phase)], 1)
    else:
        xy = torch.stack([torch.sin(2 * math.pi * t + phase), torch.sin(4 * math.pi * t + phase) / 2], 1)
    return xy + 0.25 * torch.randn(n, 2)


class Gestures(Dataset):
    def __init__(self, n):
        self.items = []
        for _ in range(n):
            label = random.randrange(len(CLASSES))
            # most gestures are quick, some people draw slowly
            length = min(120, 12 + int(random.expovariate(1 / 15)))
            self.items.append((draw(CLASSES[label], length), label))

    def __len__(self):
        return len(self.items)

    def __getitem__(self, idx):
        return self.items[idx]


def collate(batch):
    seqs, labels = zip(*batch)
    lengths = torch.tensor([len(s) for s in seqs])
    return pad_sequence(seqs, batch_first=True), lengths, torch.tensor(labels)


class GestureGRU(nn.Module):
    def __init__(self, hidden=48):
        super().__init__()
        self.gru = nn.GRU(2, hidden, batch_first=True)
        self.out = nn.Linear(hidden, len(CLASSES))

    def forward(self, x, lengths):
        h, _ = self.gru(x)
        last = h[:, -1]
        return self.out(last)


def accuracy(model, loader):
    model.eval()
    hits = total = 0
    with torch.no_grad():
        for x, lengths, y in loader:
            hits += (model(x, lengths).argmax(-1) == y).sum().item()
            total += len(y)
    return hits / total


train_loader = DataLoader(Gestures(1500), batch_size=64, shuffle=True, collate_fn=collate)
test_loader = DataLoader(Gestures(600), batch_size=64, collate_fn=collate)

model = GestureGRU()
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)

for epoch in range(12):
    model.train()
    epoch_loss = 0.0
    for x, lengths, y in train_loader:
        optimizer.zero_grad()
        loss = criterion(model(x, lengths), y)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        epoch_loss += loss.item()
    print(f"epoch {epoch + 1}: loss {epoch_loss / len(train_loader):.4f}, "
          f"test accuracy {accuracy(model, test_loader):.3f}")
