"""Run by an interpreter that has the original library: train a small model with its own PyTorch hook.

usage: python train_with_smdebug.py KIND OUT_DIR
"""

import sys

import numpy as np
import smdebug.pytorch as smd
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 3, 3)
        self.fc = nn.Linear(3 * 4, 5)

    def forward(self, x):
        return self.fc(torch.relu(torch.nn.functional.max_pool2d(self.conv1(x), 3)).flatten(1))


REDUCTIONS = smd.ReductionConfig(
    reductions=["min", "max", "mean", "std", "variance", "sum"],
    abs_reductions=["max", "mean"],
    norms=["l1", "l2"],
    save_raw_tensor=True,
)
KINDS = {
    "raw": {"save_all": True, "save_config": smd.SaveConfig(save_interval=2)},
    "reduced": {
        "include_collections": ["weights", "gradients", "biases", "losses"],
        "reduction_config": REDUCTIONS,
        "save_config": {
            smd.modes.TRAIN: smd.SaveConfigMode(save_interval=3),
            smd.modes.EVAL: smd.SaveConfigMode(save_interval=1),
        },
    },
    "reduced_only": {
        "include_collections": ["weights"],
        "reduction_config": smd.ReductionConfig(reductions=["mean", "max"], norms=["l2"]),
        "save_config": smd.SaveConfig(save_interval=4),
    },
    "shapes": {
        "include_collections": ["weights", "biases"],
        "reduction_config": smd.ReductionConfig(save_raw_tensor=True, save_shape=True),
        "save_config": smd.SaveConfig(save_steps=[0, 3], end_step=0),
    },
}


def main(kind, out_dir):
    torch.manual_seed(0)
    np.random.seed(0)
    model, loss = Net(), nn.CrossEntropyLoss()
    hook = smd.Hook(out_dir=out_dir, **KINDS[kind])
    hook.register_module(model)
    hook.register_loss(loss)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(2):
        hook.set_mode(smd.modes.TRAIN)
        model.train()
        for step in range(7):
            optimizer.zero_grad()
            output = model(torch.randn(4, 1, 8, 8))
            loss(output, torch.randint(0, 5, (4,))).backward()
            optimizer.step()
            if step == 6:
                hook.save_scalar("accuracy", 0.25 + epoch, timestamp=12345.5)
        hook.set_mode(smd.modes.EVAL)
        model.eval()
        with torch.no_grad():
            for _ in range(3):
                loss(model(torch.randn(4, 1, 8, 8)), torch.randint(0, 5, (4,)))
    hook.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
