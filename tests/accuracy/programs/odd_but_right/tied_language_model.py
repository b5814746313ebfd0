"""Trains a small language model with tied embeddings, a warm-up from zero and an averaged copy of its weights."""

import copy

import torch
from torch import nn

torch.manual_seed(76)
VOCAB, CONTEXT, WARMUP, STEPS, ACCUMULATE = 24, 16, 30, 150, 2

following = torch.softmax(3 * torch.randn(VOCAB, VOCAB), dim=1)


def batch(n=24):
    ids = torch.randint(0, VOCAB, (n, 1))
    for _ in range(CONTEXT):
        ids = torch.cat([ids, torch.multinomial(following[ids[:, -1]], 1)], dim=1)
    return ids[:, :-1], ids[:, 1:]


class TiedModel(nn.Module):
    def __init__(self, dim=32):
        super().__init__()
        self.embed = nn.Embedding(VOCAB, dim)
        nn.init.normal_(self.embed.weight, std=0.2)
        self.gru = nn.GRU(dim, dim, batch_first=True)
        self.out = nn.Linear(dim, VOCAB, bias=False)
        self.out.weight = self.embed.weight

    def forward(self, ids):
        return self.out(self.gru(self.embed(ids))[0])


model = TiedModel()
average = copy.deepcopy(model).requires_grad_(False).eval()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
scheduler = torch.optim.lr_scheduler.LambdaLR(
    optimizer, lambda step: step / WARMUP if step < WARMUP else (STEPS - step) / (STEPS - WARMUP)
)
loss_fn = nn.CrossEntropyLoss()

for step in range(STEPS):
    for _ in range(ACCUMULATE):
        x, y = batch()
        loss = loss_fn(model(x).flatten(0, 1), y.flatten()) / ACCUMULATE
        loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    optimizer.zero_grad()
    scheduler.step()
    with torch.no_grad():
        for slow, fast in zip(average.parameters(), model.parameters(), strict=True):
            slow.lerp_(fast, 0.05)
    if step % 30 == 29:
        with torch.no_grad():
            x, y = batch(100)
            held_out = loss_fn(average(x).flatten(0, 1), y.flatten())
        print(f"step {step + 1} loss {loss.item() * ACCUMULATE:.3f} averaged {held_out.item():.3f}")
