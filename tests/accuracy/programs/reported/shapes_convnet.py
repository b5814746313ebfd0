"""Trains a convolutional network to tell four drawn shapes apart."""

import torch
from torch import nn

torch.manual_seed(3)


def draw(n):
    """Noisy 12x12 pictures: a bar, a column, a cross or a frame at a random place."""
    images = 0.5 * torch.randn(n, 1, 12, 12)
    labels = torch.randint(0, 4, (n,))
    for image, label in zip(images, labels, strict=True):
        r, c = torch.randint(0, 7, (2,)).tolist()
        if label == 0:
            image[0, r + 2, c : c + 5] += 1.5
        elif label == 1:
            image[0, r : r + 5, c + 2] += 1.5
        elif label == 2:
            image[0, r + 2, c : c + 5] += 1.5
            image[0, r : r + 5, c + 2] += 1.5
        else:
            image[0, r : r + 5, [c, c + 4]] += 1.5
            image[0, [r, r + 4], c : c + 5] += 1.5
    return images, labels


def accuracy(net, images, labels):
    net.eval()
    with torch.no_grad():
        hits = (net(images).argmax(1) == labels).float().mean().item()
    net.train()
    return hits


x, y = draw(1200)
x_test, y_test = draw(400)

net = nn.Sequential(
    nn.Conv2d(1, 8, 3, padding=1),
    nn.ReLU(),
    nn.MaxPool2d(2),
    nn.Conv2d(8, 16, 3, padding=1),
    nn.ReLU(),
    nn.MaxPool2d(2),
    nn.Flatten(),
    nn.Linear(144, 32),
    nn.ReLU(),
    nn.Linear(32, 4),
)
optimizer = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
loss_fn = nn.CrossEntropyLoss()

for epoch in range(8):
    for idx in torch.randperm(len(x)).split(50):
        loss = loss_fn(net(x[idx]), y[idx])
        loss.backward()
        optimizer.step()
    print(f"epoch {epoch}: loss {loss.item():.3f}, held out {accuracy(net, x_test, y_test):.3f}")
