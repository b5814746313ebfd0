"""Momentum contrast on digits: a queue of keys, and an encoder that follows the trained one slowly."""

import math
import random

import numpy as np
import torch
import torch.nn as nn
from sklearn.datasets import load_digits
from torch.utils.data import DataLoader, Dataset


class TwoCrops(Dataset):
    def __init__(self, images):
        self.images = images

    def __len__(self):
        return len(self.images)

    def transform(self, image):
        image = np.roll(image, (random.randint(-1, 1), random.randint(-1, 1)), (0, 1))
        image = image * random.uniform(0.7, 1.3) + np.random.normal(0, 0.05, image.shape)
        return torch.from_numpy(image[None].astype(np.float32))

    def __getitem__(self, index):
        image = self.images[index]
        return [self.transform(image), self.transform(image)], index


class Encoder(nn.Module):
    def __init__(self, num_classes=128):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 8, 3, stride=2, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(8)
        self.relu = nn.ReLU(inplace=True)
        self.fc = nn.Linear(8 * 16, num_classes)

    def forward(self, x):
        return self.fc(self.relu(self.bn1(self.conv1(x))).flatten(1))


class MoCo(nn.Module):
    def __init__(self, base_encoder, dim=16, K=128, m=0.99, T=0.1):
        super().__init__()
        self.K, self.m, self.T = K, m, T
        self.encoder_q = base_encoder(num_classes=dim)
        self.encoder_k = base_encoder(num_classes=dim)
        dim_mlp = self.encoder_q.fc.weight.shape[1]
        for encoder in (self.encoder_q, self.encoder_k):
            encoder.fc = nn.Sequential(nn.Linear(dim_mlp, 32), nn.ReLU(), nn.Linear(32, dim))
        for param_q, param_k in zip(self.encoder_q.parameters(), self.encoder_k.parameters()):
            param_k.data.copy_(param_q.data)
            param_k.requires_grad = False
        self.register_buffer("queue", nn.functional.normalize(torch.randn(dim, K), dim=0))
        self.register_buffer("queue_ptr", torch.zeros(1, dtype=torch.long))

    @torch.no_grad()
    def _momentum_update_key_encoder(self):
        for param_q, param_k in zip(self.encoder_q.parameters(), self.encoder_k.parameters()):
            param_k.data = param_k.data * self.m + param_q.data * (1.0 - self.m)

    @torch.no_grad()
    def _dequeue_and_enqueue(self, keys):
        ptr = int(self.queue_ptr)
        self.queue[:, ptr : ptr + len(keys)] = keys.T
        self.queue_ptr[0] = (ptr + len(keys)) % self.K

    def forward(self, im_q, im_k):
        q = nn.functional.normalize(self.encoder_q(im_q), dim=1)
        with torch.no_grad():
            self._momentum_update_key_encoder()
            shuffle = torch.randperm(len(im_k))
            k = nn.functional.normalize(self.encoder_k(im_k[shuffle]), dim=1)[torch.argsort(shuffle)]
        l_pos = torch.einsum("nc,nc->n", [q, k]).unsqueeze(-1)
        l_neg = torch.einsum("nc,ck->nk", [q, self.queue.clone().detach()])
        logits = torch.cat([l_pos, l_neg], dim=1) / self.T
        labels = torch.zeros(logits.shape[0], dtype=torch.long)
        self._dequeue_and_enqueue(k)
        return logits, labels


class AverageMeter:
    def __init__(self, name):
        self.name, self.val, self.sum, self.count = name, 0, 0, 0

    def update(self, val, n=1):
        self.val, self.sum, self.count = val, self.sum + val * n, self.count + n

    def __str__(self):
        return f"{self.name} {self.val:.4f} ({self.sum / self.count:.4f})"


def adjust_learning_rate(optimizer, epoch, epochs, lr):
    for group in optimizer.param_groups:
        group["lr"] = lr * 0.5 * (1.0 + math.cos(math.pi * epoch / epochs))


def train(loader, model, criterion, optimizer, epoch):
    losses, top1 = AverageMeter("Loss"), AverageMeter("Acc@1")
    model.train()
    for i, (images, _) in enumerate(loader):
        output, target = model(im_q=images[0], im_k=images[1])
        loss = criterion(output, target)
        losses.update(loss.item(), len(output))
        top1.update((output.argmax(1) == target).float().mean().item() * 100, len(output))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(f"Epoch: [{epoch}][{i}/{len(loader)}]\t{losses}\t{top1}")


def main():
    random.seed(0), np.random.seed(0), torch.manual_seed(0)
    loader = DataLoader(TwoCrops(load_digits().images[:200] / 16), batch_size=32, shuffle=True, drop_last=True)
    model = MoCo(Encoder)
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), 0.05, momentum=0.9, weight_decay=1e-4)
    for epoch in range(4):
        adjust_learning_rate(optimizer, epoch, 4, 0.05)
        train(loader, model, criterion, optimizer, epoch)
        state = {"epoch": epoch + 1, "state_dict": model.state_dict(), "optimizer": optimizer.state_dict()}
        torch.save(state, f"checkpoint_{epoch:04d}.pth.tar")
    print(random.random(), np.random.rand(), torch.rand(1).item())


if __name__ == "__main__":
    main()
