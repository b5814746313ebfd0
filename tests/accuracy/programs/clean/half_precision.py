"""Wine and digits in mixed precision on the CPU: bfloat16 autocast, or float16 with a gradient scaler."""

import sys

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

kind = sys.argv[1] if len(sys.argv) > 1 else "bfloat16"
torch.manual_seed(0)
x, y = load_digits(return_X_y=True)
x, y = torch.tensor((x - 5) / 6, dtype=torch.float32), torch.tensor(y)
loader = DataLoader(TensorDataset(x, y), batch_size=64, shuffle=True, drop_last=True)
model = nn.Sequential(nn.Linear(64, 96), nn.ReLU(), nn.Linear(96, 48), nn.ReLU(), nn.Linear(48, 10))
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
scaler = torch.amp.GradScaler("cpu", enabled=kind == "float16")
for epoch in range(5):
    for inputs, targets in loader:
        optimizer.zero_grad()
        with torch.autocast("cpu", dtype=getattr(torch, kind)):
            logits = model(inputs)
            loss = nn.functional.cross_entropy(logits, targets)
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        torch.nn.utils.clip_grad_norm_(model.parameters(), 5.0)
        scaler.step(optimizer)
        scaler.update()
    print(epoch, f"{loss.item():.4f}", scaler.get_scale())
