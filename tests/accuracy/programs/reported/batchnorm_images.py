"""Trains a convolutional network with batch normalisation on textures."""

import torch
from torch import nn

torch.manual_seed(14)
CLASSES = 6


def textures(n):
    """Gratings of six directions with another brightness, contrast and phase in every picture."""
    labels = torch.randint(0, CLASSES, (n,))
    angle = labels * torch.pi / CLASSES
    rows, cols = torch.meshgrid(torch.arange(10.0), torch.arange(10.0), indexing="ij")
    wave = angle.cos()[:, None, None] * cols + angle.sin()[:, None, None] * rows
    image = torch.sin(1.6 * wave + 6.28 * torch.rand(n, 1, 1)) + 0.6 * torch.randn(n, 10, 10)
    return (0.3 * image + 0.5).unsqueeze(1), labels


def block(inputs, outputs, *more):
    conv = nn.Conv2d(inputs, outputs, 3, padding=1)
    return nn.Sequential(conv, nn.BatchNorm2d(outputs), nn.ReLU(), *more)


model = nn.Sequential(
    block(1, 8),
    block(8, 8, nn.MaxPool2d(2)),
    block(8, 16),
    block(16, 16, nn.MaxPool2d(2)),
    nn.Flatten(),
    nn.Dropout(0.3),
    nn.Linear(64, CLASSES),
)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
loss_fn = nn.CrossEntropyLoss()
x_train, y_train = textures(960)
x_val, y_val = textures(300)


def validate():
    model.eval()
    with torch.no_grad():
        out = model(x_val)
        return loss_fn(out, y_val).item(), (out.argmax(1) == y_val).float().mean().item()


model.train()
print("before training: loss {:.3f}, accuracy {:.3f}".format(*validate()))
for epoch in range(7):
    for idx in torch.randperm(len(x_train)).split(48):
        optimizer.zero_grad()
        loss = loss_fn(model(x_train[idx]), y_train[idx])
        loss.backward()
        optimizer.step()
    val_loss, val_acc = validate()
    print(f"epoch {epoch}: train {loss.item():.3f}, val {val_loss:.3f}, accuracy {val_acc:.3f}")
