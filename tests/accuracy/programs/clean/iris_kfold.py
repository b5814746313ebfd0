"""Five-fold cross-validation on iris, a fresh net and optimizer for each fold."""

import numpy as np
import torch
from sklearn.datasets import load_iris
from sklearn.model_selection import StratifiedKFold
from torch import nn

torch.manual_seed(0)
x, y = load_iris(return_X_y=True)
scores = []
for fold, (train, test) in enumerate(StratifiedKFold(5, shuffle=True, random_state=0).split(x, y)):
    mean, std = x[train].mean(0), x[train].std(0)
    inputs = torch.tensor((x - mean) / std, dtype=torch.float32)
    targets = torch.tensor(y)
    net = nn.Sequential(nn.Linear(4, 16), nn.ELU(), nn.Linear(16, 3), nn.LogSoftmax(dim=1))
    optimizer = torch.optim.NAdam(net.parameters(), lr=0.01)
    nll = nn.NLLLoss()
    for epoch in range(8):
        for batch in torch.tensor(np.random.permutation(train)).split(16):
            optimizer.zero_grad()
            loss = nll(net(inputs[batch]), targets[batch])
            loss.backward()
            optimizer.step()
    with torch.no_grad():
        scores.append((net(inputs[test]).argmax(1) == targets[test]).float().mean().item())
print(f"{np.mean(scores):.3f} +- {np.std(scores):.3f}")
