"""Trains a character-level transformer on digits spelled out as text."""

import random

import torch
import torch.nn.functional as F
from torch import nn

random.seed(5)
torch.manual_seed(5)

WORDS = ["nil", "one", "two", "thr", "fou", "fiv", "six", "sev", "eig", "nin"]
CHARS = "".join(sorted(set("".join(WORDS)))) + "0123456789=;"
STOI = {c: i for i, c in enumerate(CHARS)}
CONTEXT = 24


def text(n):
    parts = []
    for _ in range(n):
        digit = random.randint(0, 9)
        parts.append(f"{digit}={WORDS[digit]};")
    return torch.tensor([STOI[c] for c in "".join(parts)])


corpus = text(3000)


def batch(size=32):
    starts = torch.randint(0, len(corpus) - CONTEXT - 1, (size,)).tolist()
    x = torch.stack([corpus[s : s + CONTEXT] for s in starts])
    y = torch.stack([corpus[s + 1 : s + CONTEXT + 1] for s in starts])
    return x, y


class CharModel(nn.Module):
    def __init__(self, dim=32, layers=2):
        super().__init__()
        self.token = nn.Embedding(len(CHARS), dim)
        self.position = nn.Embedding(CONTEXT, dim)
        block = nn.TransformerEncoderLayer(dim, nhead=4, dim_feedforward=64, dropout=0.0, batch_first=True)
        self.blocks = nn.TransformerEncoder(block, layers)
        self.head = nn.Linear(dim, len(CHARS))

    def forward(self, ids):
        h = self.token(ids) + self.position(torch.arange(ids.shape[1]))
        return self.head(self.blocks(h))


model = CharModel()
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)

for step in range(160):
    x, y = batch()
    logits = model(x)
    loss = F.cross_entropy(logits.reshape(-1, len(CHARS)), y.reshape(-1))
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    optimizer.step()
    if step % 25 == 0:
        print(f"step {step} loss {loss.item():.3f}")

model.eval()
right = 0
for digit, word in enumerate(WORDS):
    ids = [STOI[c] for c in f"1=one;4=fou;{digit}="]
    with torch.no_grad():
        for _ in word:
            ids.append(model(torch.tensor([ids]))[0, -1].argmax().item())
    right += "".join(CHARS[i] for i in ids[-3:]) == word
print(f"digits spelled right {right}/10")
