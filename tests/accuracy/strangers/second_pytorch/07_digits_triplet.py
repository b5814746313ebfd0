"""Embedding of handwritten digits with a batch-hard triplet loss; 1-NN retrieval at the end."""
import logging

import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

logging.basicConfig(format="%(levelname)s %(message)s", level=logging.INFO)
log = logging.getLogger("triplet")
torch.manual_seed(42)

digits = load_digits()
xtr, xte, ytr, yte = train_test_split(
    digits.data / 16.0, digits.target, test_size=0.3, stratify=digits.target, random_state=42)
xtr, xte = torch.tensor(xtr).float(), torch.tensor(xte).float()
ytr, yte = torch.tensor(ytr), torch.tensor(yte)
mean = xtr.mean()
std = xtr.std()
xtr, xte = (xtr - mean) / std, (xte - mean) / std

P, K = 10, 6          # classes per batch, samples per class
by_class = [torch.nonzero(ytr == c).flatten() for c in range(10)]


def sample_batch():
    idx = torch.cat([members[torch.randperm(len(members))[:K]] for members in by_class[:P]])
    noisy = xtr[idx] + 0.4 * torch.randn(len(idx), 64)
    return noisy, ytr[idx]


class EmbeddingNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(
            nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 64), nn.ReLU(), nn.Linear(64, 16))

    def forward(self, x):
        return F.normalize(self.body(x), dim=1)


def pairwise_dist(e):
    diff = e.unsqueeze(1) - e.unsqueeze(0)
    return diff.pow(2).sum(-1).sqrt()


def batch_hard_triplet(e, y, margin=0.3):
    d = pairwise_dist(e)
    same = y.unsqueeze(0) == y.unsqueeze(1)
    hardest_pos = (d * same.float()).max(dim=1).values
    hardest_neg = d.masked_fill(same, float("inf")).min(dim=1).values
    return F.relu(hardest_pos - hardest_neg + margin).mean()


@torch.no_grad()
def retrieval_at_1(net):
    net.eval()
    gallery, query = net(xtr), net(xte)
    nearest = torch.cdist(query, gallery).argmin(dim=1)
    net.train()
    return (ytr[nearest] == yte).float().mean().item()


net = EmbeddingNet()
optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3, weight_decay=1e-4)
log.info("retrieval@1 before training: %.4f", retrieval_at_1(net))

avg = 0.0
for it in range(1, 1201):
    x, y = sample_batch()
    loss = batch_hard_triplet(net(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    avg = loss.item() if it == 1 else 0.98 * avg + 0.02 * loss.item()
    if it % 150 == 0:
        log.info("iter %4d  triplet loss %.4f", it, avg)

log.info("retrieval@1 after training: %.4f", retrieval_at_1(net))
