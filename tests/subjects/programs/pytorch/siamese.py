"""A siamese network tells by a distance whether two digits are the same; the loss of contrast has a margin."""

import random

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch.utils.data import DataLoader, Dataset


class SiameseNetworkDataset(Dataset):
    def __init__(self, images, labels, size):
        self.images, self.labels, self.size = images, labels, size
        self.by_label = [np.flatnonzero(labels == label) for label in range(10)]

    def __getitem__(self, index):
        first = random.randrange(len(self.images))
        if random.randint(0, 1):
            second = random.choice(self.by_label[self.labels[first]])
        else:
            second = random.choice([i for i in range(len(self.images)) if self.labels[i] != self.labels[first]])
        different = np.array([int(self.labels[first] != self.labels[second])], dtype=np.float32)
        return self.images[first], self.images[second], torch.from_numpy(different)

    def __len__(self):
        return self.size


class SiameseNetwork(nn.Module):
    def __init__(self):
        super().__init__()
        self.cnn1 = nn.Sequential(
            nn.ReflectionPad2d(1),
            nn.Conv2d(1, 6, kernel_size=3),
            nn.ReLU(inplace=True),
            nn.BatchNorm2d(6),
            nn.MaxPool2d(2),
        )
        self.fc1 = nn.Sequential(nn.Linear(6 * 16, 24), nn.ReLU(inplace=True), nn.Linear(24, 4))

    def forward_once(self, x):
        output = self.cnn1(x)
        return self.fc1(output.view(output.size()[0], -1))

    def forward(self, input1, input2):
        return self.forward_once(input1), self.forward_once(input2)


class ContrastiveLoss(torch.nn.Module):
    def __init__(self, margin=2.0):
        super().__init__()
        self.margin = margin

    def forward(self, output1, output2, label):
        distance = F.pairwise_distance(output1, output2, keepdim=True)
        return torch.mean(
            (1 - label) * torch.pow(distance, 2) + label * torch.pow(torch.clamp(self.margin - distance, min=0.0), 2)
        )


random.seed(0)
torch.manual_seed(0)
digits = load_digits()
images = torch.tensor(digits.images, dtype=torch.float32).unsqueeze(1) / 16
train_dataloader = DataLoader(SiameseNetworkDataset(images[:500], digits.target[:500], 256), batch_size=64)
test_dataloader = DataLoader(SiameseNetworkDataset(images[1500:], digits.target[1500:], 60), batch_size=20)

net = SiameseNetwork()
criterion = ContrastiveLoss()
optimizer = torch.optim.Adam(net.parameters(), lr=5e-3)
counter, loss_history = [], []
for epoch in range(4):
    for i, (img0, img1, label) in enumerate(train_dataloader):
        optimizer.zero_grad()
        output1, output2 = net(img0, img1)
        loss_contrastive = criterion(output1, output2, label)
        loss_contrastive.backward()
        optimizer.step()
        print(f"Epoch number {epoch}\n Current loss {loss_contrastive.item():.6f}")
        loss_history.append(loss_contrastive.item())

net.eval()
distances = []
for x0, x1, label in test_dataloader:
    output1, output2 = net(x0, x1)
    distances.append(F.pairwise_distance(output1, output2).detach())
print(f"Dissimilarity: {torch.cat(distances).mean().item():.4f}")
np.savetxt("loss.txt", loss_history, fmt="%.6f")
torch.save(net.state_dict(), "siamese.pt")
print(random.random(), torch.rand(1).item())
