"""An own cross-entropy takes the logarithm of a probability that becomes 0."""

import torch
from sklearn.datasets import load_digits
from torch import nn

torch.manual_seed(0)
x, y = load_digits(return_X_y=True)
x, y = torch.tensor(x, dtype=torch.float32), torch.tensor(y)
model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10), nn.Softmax(dim=1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.5)


class CrossEntropy(nn.Module):
    def forward(self, probabilities, targets):
        one_hot = nn.functional.one_hot(targets, 10)
        return -(one_hot * torch.log(probabilities)).sum(1).mean()


criterion = CrossEntropy()
for epoch in range(3):
    for batch in torch.randperm(len(x)).split(64):
        optimizer.zero_grad()
        loss = criterion(model(x[batch]), y[batch])
        loss.backward()
        optimizer.step()
    print(epoch, loss.item())
