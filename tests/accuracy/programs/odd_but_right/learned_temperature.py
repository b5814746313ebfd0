"""Trains two encoders to match pictures with captions; the temperature is learned with them."""

import math

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(73)


def tower(inputs):
    return nn.Sequential(nn.Linear(inputs, 64), nn.GELU(), nn.Linear(64, 16))


world = torch.randn(10, 30), torch.randn(10, 18)


def pairs(n):
    thing = torch.randn(n, 10)
    return tuple(torch.tanh(thing @ w / 3) + 0.1 * torch.randn(n, w.shape[1]) for w in world)


picture_net, caption_net = tower(30), tower(18)
log_scale = torch.tensor(math.log(1 / 0.07), requires_grad=True)
optimizer = torch.optim.AdamW(
    [
        {"params": [*picture_net.parameters(), *caption_net.parameters()], "weight_decay": 0.01},
        {"params": [log_scale], "weight_decay": 0.0, "lr": 1e-2},
    ],
    lr=2e-3,
)

target = torch.arange(64)
for step in range(200):
    pictures, captions = pairs(64)
    a, b = F.normalize(picture_net(pictures), dim=1), F.normalize(caption_net(captions), dim=1)
    logits = log_scale.exp() * a @ b.T
    loss = 0.5 * (F.cross_entropy(logits, target) + F.cross_entropy(logits.T, target))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    with torch.no_grad():
        log_scale.clamp_(0, math.log(100))
    if step % 50 == 49:
        print(f"step {step + 1} loss {loss.item():.3f} scale {log_scale.exp().item():.1f}")
