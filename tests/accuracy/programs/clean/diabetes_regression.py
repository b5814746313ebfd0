"""Diabetes: regression by a small net, Huber loss, the learning rate is lowered when the validation stays."""

import numpy as np
import torch
import torch.nn.functional as F
from sklearn.datasets import load_diabetes
from sklearn.model_selection import train_test_split
from torch import nn

torch.manual_seed(1)
np.random.seed(1)
x, y = load_diabetes(return_X_y=True)
x = (x - x.mean(0)) / x.std(0)
y = (y - y.mean()) / y.std()
x_train, x_val, y_train, y_val = (
    torch.tensor(a, dtype=torch.float32) for a in train_test_split(x, y, test_size=0.25, random_state=1)
)
model = nn.Sequential(nn.Linear(10, 32), nn.GELU(), nn.LayerNorm(32), nn.Linear(32, 16), nn.GELU(), nn.Linear(16, 1))
opt = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)
plateau = torch.optim.lr_scheduler.ReduceLROnPlateau(opt, factor=0.5, patience=2)
batch_size = 32
for epoch in range(15):
    order = np.random.permutation(len(x_train))
    model.train()
    for start in range(0, len(order), batch_size):
        index = order[start : start + batch_size]
        prediction = model(x_train[index]).squeeze(1)
        loss = F.huber_loss(prediction, y_train[index])
        opt.zero_grad(set_to_none=False)
        loss.backward()
        opt.step()
    model.eval()
    with torch.no_grad():
        val = F.mse_loss(model(x_val).squeeze(1), y_val)
    plateau.step(val)
    print(epoch, f"{val.item():.4f}", opt.param_groups[0]["lr"])
