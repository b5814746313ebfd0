"""Train a small convolutional net on the digits, with a choice of optimizers and schedules."""

import argparse

import torch
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

parser = argparse.ArgumentParser()
parser.add_argument("--optimizer", default="sgd")
parser.add_argument("--schedule", default="none")
parser.add_argument("--width", type=int, default=8)
parser.add_argument("--seed", type=int, default=0)
parser.add_argument("--epochs", type=int, default=4)
args = parser.parse_args()
torch.manual_seed(args.seed)

digits = load_digits()
images = torch.tensor(digits.images / 16, dtype=torch.float32).unsqueeze(1)
labels = torch.tensor(digits.target)
train_x, test_x, train_y, test_y = train_test_split(images, labels, test_size=0.25, random_state=args.seed)
train_loader = DataLoader(TensorDataset(train_x, train_y), batch_size=32, shuffle=True, drop_last=True)
test_loader = DataLoader(TensorDataset(test_x, test_y), batch_size=128)

w = args.width
model = nn.Sequential(
    nn.Conv2d(1, w, 3, padding=1),
    nn.BatchNorm2d(w),
    nn.ReLU(),
    nn.MaxPool2d(2),
    nn.Conv2d(w, 2 * w, 3, padding=1),
    nn.ReLU(),
    nn.MaxPool2d(2),
    nn.Flatten(),
    nn.Dropout(0.2),
    nn.Linear(8 * w, 10),
)
optimizers = {
    "sgd": lambda p: torch.optim.SGD(p, lr=0.05, momentum=0.9, nesterov=True, weight_decay=5e-4),
    "adamw": lambda p: torch.optim.AdamW(p, lr=2e-3),
    "rmsprop": lambda p: torch.optim.RMSprop(p, lr=1e-3),
    "adagrad": lambda p: torch.optim.Adagrad(p, lr=0.03),
}
optimizer = optimizers[args.optimizer](model.parameters())
steps = args.epochs * len(train_loader)
scheduler = None
if args.schedule == "onecycle":
    scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=0.1, total_steps=steps)
elif args.schedule == "restarts":
    scheduler = torch.optim.lr_scheduler.CosineAnnealingWarmRestarts(optimizer, T_0=len(train_loader))
elif args.schedule == "warmup":
    warm = torch.optim.lr_scheduler.LinearLR(optimizer, start_factor=0.01, total_iters=20)
    cosine = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=steps - 20)
    scheduler = torch.optim.lr_scheduler.SequentialLR(optimizer, [warm, cosine], milestones=[20])
criterion = nn.CrossEntropyLoss(label_smoothing=0.05)

for epoch in range(args.epochs):
    model.train()
    running = 0.0
    for x, y in train_loader:
        optimizer.zero_grad()
        loss = criterion(model(x), y)
        loss.backward()
        optimizer.step()
        if scheduler is not None:
            scheduler.step()
        running += loss.item()
    model.eval()
    correct = 0
    with torch.no_grad():
        for x, y in test_loader:
            correct += (model(x).argmax(1) == y).sum().item()
    print(f"epoch {epoch} loss {running / len(train_loader):.4f} accuracy {correct / len(test_x):.3f}")
