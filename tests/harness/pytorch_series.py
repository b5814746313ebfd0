"""A small PyTorch model, its loss, and a hook that saves it seldom, for tests of the series."""

from __future__ import annotations

import torch
from torch import nn

import smd_agent.pytorch as smd

SELDOM = smd.SaveConfig(save_interval=1000)


def small():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(5, 4), nn.Tanh(), nn.Linear(4, 3))


def hook_for(out, *models):
    hook = smd.Hook(out, save_config=SELDOM)
    for model in models:
        hook.register_module(model)
    return hook


def loss_of(model, size=6):
    return nn.CrossEntropyLoss()(model(torch.randn(size, 5)), torch.randint(0, 3, (size,)))
