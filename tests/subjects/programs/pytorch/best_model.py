"""Early stopping: the best model is saved whole, loaded again after training, and tested."""

import time

import torch
import torch.nn as nn
from sklearn.datasets import load_digits

torch.manual_seed(1111)
start_time = time.time()


class CNN(nn.Module):
    def __init__(self, classes, dropout=0.2):
        super().__init__()
        self.conv = nn.Conv2d(1, 12, 3, padding=1)
        self.pool = nn.MaxPool2d(2)
        self.drop = nn.Dropout(dropout)
        self.decoder = nn.Linear(12 * 16, classes)

    def forward(self, x):
        return self.decoder(self.drop(self.pool(torch.relu(self.conv(x))).flatten(1)))


digits = load_digits()
images = torch.tensor(digits.images, dtype=torch.float32).unsqueeze(1) / 16
labels = torch.tensor(digits.target)
order = torch.randperm(len(images))
train_data, val_data, test_data = order[:480], order[480:640], order[640:820]

model = CNN(10)
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.5)


def evaluate(rows, batch=90):
    model.eval()
    losses = []
    with torch.no_grad():
        for part in rows.split(batch):
            loss = criterion(model(images[part]), labels[part])
            losses.append(loss.item() * len(part))
    return sum(losses) / len(rows)


def train(epoch):
    model.train()
    for batch, part in enumerate(train_data[torch.randperm(len(train_data))].split(80)):
        optimizer.zero_grad()
        loss = criterion(model(images[part]), labels[part])
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        print(f"| epoch {epoch} | batch {batch} | loss {loss.item():.5f} |")


best_val_loss = None
lr, patience = 0.5, 0
for epoch in range(1, 7):
    train(epoch)
    val_loss = evaluate(val_data, batch=160)
    print(f"| end of epoch {epoch} | valid loss {val_loss:.5f}")
    if not best_val_loss or val_loss < best_val_loss:
        with open("model.pt", "wb") as f:
            torch.save(model, f)
        best_val_loss = val_loss
    else:
        lr /= 4.0
        for group in optimizer.param_groups:
            group["lr"] = lr

# Load the best saved model.
with open("model.pt", "rb") as f:
    model = torch.load(f, weights_only=False)
for part in test_data.split(90):
    print(f"| test batch | loss {evaluate(part):.5f}")
print("| took a while" if time.time() - start_time > 600 else "| done", torch.rand(1).item())
