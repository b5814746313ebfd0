import numpy as np
import torch
import torch.nn as nn


def spirals(n_per_arm, arms=3, noise=0.12, seed=0):
    rs = np.random.RandomState(seed)
    xs, ys = [], []
    for k in range(arms):
        r = np.sqrt(rs.rand(n_per_arm)) * 2
        th = 2.6 * r + 2 * np.pi * k / arms
        pts = np.c_[r * np.cos(th), r * np.sin(th)] + rs.randn(n_per_arm, 2) * noise * 0.5
        xs.append(pts)
        ys += [k] * n_per_arm
    return torch.tensor(np.concatenate(xs), dtype=torch.float32), torch.tensor(ys)


class DeepMLP(nn.Module):
    def __init__(self, in_dim, hidden, n_hidden, out_dim):
        super().__init__()
        self.input_layer = nn.Linear(in_dim, hidden)
        self.hidden_layers = []
        for _ in range(n_hidden):
            self.hidden_layers.append(nn.Linear(hidden, hidden))
        self.output_layer = nn.Linear(hidden, out_dim)
        self.act = nn.ReLU()

    def forward(self, x):
        x = self.act(self.input_layer(x))
        for layer in self.hidden_layers:
            x = self.act(layer(x))
        return self.output_layer(x)


torch.manual_seed(123)
X_train, y_train = spirals(400, seed=0)
X_test, y_test = spirals(200, seed=1)

net = DeepMLP(2, 32, 3, 3)
optimizer = torch.optim.Adam(net.parameters(), lr=2e-3)
loss_fn = nn.CrossEntropyLoss()
batch_size = 50

for epoch in range(20):
    net.train()
    perm = torch.randperm(X_train.size(0))
    epoch_loss, correct = 0.0, 0
    for i in range(0, X_train.size(0), batch_size):
        idx = perm[i:i + batch_size]
        bx, by = X_train[idx], y_train[idx]
        out = net(bx)
        loss = loss_fn(out, by)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        epoch_loss += loss.item() * bx.size(0)
        correct += (out.argmax(1) == by).sum().item()
    if (epoch + 1) % 4 == 0:
        net.eval()
        with torch.no_grad():
            acc = (net(X_test).argmax(1) == y_test).float().mean().item()
        print(f"Epoch {epoch + 1}: loss={epoch_loss / len(X_train):.4f} "
              f"train_acc={correct / len(X_train):.4f} test_acc={acc:.4f}")
