"""Three-layer perceptron on the digits data, SGD."""

import time

import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

torch.manual_seed(0)


class MLP(nn.Module):
    def __init__(self, n_in, n_hidden, n_out, p=0.1):
        super().__init__()
        self.fc1 = nn.Linear(n_in, n_hidden)
        self.fc2 = nn.Linear(n_hidden, n_hidden)
        self.fc3 = nn.Linear(n_hidden, n_out)
        self.drop = nn.Dropout(p)

    def forward(self, x):
        x = self.drop(F.relu(self.fc1(x)))
        x = self.drop(F.relu(self.fc2(x)))
        return F.softmax(self.fc3(x), dim=1)


def load():
    data = load_digits()
    xa, xb, ya, yb = train_test_split(data.data, data.target, test_size=0.25, random_state=1, stratify=data.target)
    scaler = StandardScaler().fit(xa)
    to_x = lambda a: torch.tensor(scaler.transform(a), dtype=torch.float32)
    to_y = lambda a: torch.tensor(a, dtype=torch.long)
    return to_x(xa), to_x(xb), to_y(ya), to_y(yb)


def main():
    x_train, x_test, y_train, y_test = load()
    model = MLP(64, 512, 10)
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)

    batch = 64
    start = time.time()
    for epoch in range(15):
        model.train()
        order = torch.randperm(len(x_train))
        total = 0.0
        for i in range(0, len(order), batch):
            idx = order[i : i + batch]
            optimizer.zero_grad()
            out = model(x_train[idx])
            loss = criterion(out, y_train[idx])
            loss.backward()
            optimizer.step()
            total += loss.item() * len(idx)

        model.eval()
        with torch.no_grad():
            out = model(x_test)
            val_loss = criterion(out, y_test).item()
            acc = (out.argmax(1) == y_test).float().mean().item()
        print(
            f"[{epoch + 1:02d}] train {total / len(order):.4f}  "
            f"val {val_loss:.4f}  acc {acc:.4f}  ({time.time() - start:.1f}s)"
        )


if __name__ == "__main__":
    main()
