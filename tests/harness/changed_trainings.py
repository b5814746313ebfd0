"""A small training on PyTorch with one thing changed, which is captured as a run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

import smd_agent.pytorch as smd
from smd_agent import guard, session

STEPS = 60
FORMS = {
    "statistics": smd.ReductionConfig(["statistics"], save_shape=True, save_raw_up_to=64),
    "median": smd.ReductionConfig(["p5", "p50", "p95", "histogram"], norms=["l2"], save_raw_up_to=64),
    "raw": None,
}


class _InBlocks(torch.nn.Linear):
    """The same layer, which adds up its products in another order."""

    def __init__(self, like: torch.nn.Linear) -> None:
        super().__init__(like.in_features, like.out_features)
        self.load_state_dict(like.state_dict())

    def forward(self, batch):
        parts = [b @ w.T for b, w in zip(batch.split(8, 1), self.weight.split(8, 1), strict=True)]
        return sum(reversed(parts), self.bias)


def train(folder: Path, form: str, every: int, change: dict[str, Any]) -> None:
    """Train for 60 steps and save all of it.

    Args:
        folder: of the run.
        form: in which tensors are saved, of ``FORMS``.
        every: how many steps lie between two that are saved.
        change: what is not as it is by default: seed, order (of the batches), dtype, optimizer, sums_in_blocks; and
            from a step on: sample_at (another sample in one batch), lr_at, flip_at (one bit of a weight), loss_at.
    """
    torch.manual_seed(change.get("seed", 0))
    layers = [torch.nn.Linear(64, 32), torch.nn.ReLU(), torch.nn.Linear(32, 32), torch.nn.Tanh()]
    net = torch.nn.Sequential(*layers, torch.nn.Linear(32, 4))
    if change.get("sums_in_blocks"):
        net[0] = _InBlocks(net[0])
    net = net.to(getattr(torch, change.get("dtype", "float32")))
    guard.lines.said.clear()
    hook = smd.Hook(
        str(folder),
        save_config=smd.SaveConfig(save_interval=every),
        save_all=True,
        reduction_config=FORMS[form],
    )
    try:
        _steps(hook, net, change)
        hook.close()
    finally:
        hook.disable()
        session.forget()


def _steps(hook: smd.Hook, net: torch.nn.Sequential, change: dict[str, Any]) -> None:
    optimizer = getattr(torch.optim, change.get("optimizer", "SGD"))(net.parameters(), lr=0.01)
    data = torch.Generator().manual_seed(1)
    inputs = torch.randn(512, 64, generator=data)
    labels = inputs[:, :4].argmax(1)
    order = torch.Generator().manual_seed(change.get("order", 1))
    loss_of = torch.nn.CrossEntropyLoss()
    hook.register_module(net)
    hook.set_mode(smd.modes.TRAIN)
    for step in range(STEPS):
        rows = torch.randperm(512, generator=order)[:32]
        batch = inputs[rows].to(next(net.parameters()).dtype)
        if step == change.get("sample_at"):
            batch[7] += 1
        if step == change.get("lr_at"):
            optimizer.param_groups[0]["lr"] = 0.001
        if step == change.get("flip_at"):
            net[0].weight.data.view(torch.int32)[3, 5] ^= 1 << change["bit"]
        if step == change.get("loss_at"):
            loss_of = torch.nn.CrossEntropyLoss(label_smoothing=0.1)
        optimizer.zero_grad()
        loss_of(net(batch), labels[rows]).backward()
        optimizer.step()
