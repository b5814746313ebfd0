"""Embeddings learned with an angular margin, whose class centres have their own optimizer; tested by retrieval."""

import json
import logging
import math
import sys

import torch
import torch.nn.functional as F
from torch import nn

logging.basicConfig(level=logging.INFO, format="%(name)s %(levelname)s %(message)s", stream=sys.stderr)
log = logging.getLogger("metric")


class ArcFaceLoss(nn.Module):
    def __init__(self, num_classes, embedding_size, margin=0.3, scale=16):
        super().__init__()
        self.W = nn.Parameter(torch.empty(embedding_size, num_classes))
        nn.init.normal_(self.W)
        self.margin, self.scale = margin, scale

    def forward(self, embeddings, labels):
        cosine = F.normalize(embeddings) @ F.normalize(self.W, dim=0)
        angle = torch.acos(cosine.clamp(-1 + 1e-6, 1 - 1e-6))
        target = F.one_hot(labels, cosine.shape[1]).bool()
        logits = torch.where(target & (angle < math.pi - self.margin), torch.cos(angle + self.margin), cosine)
        return F.cross_entropy(self.scale * logits, labels)


class EmbeddingNet(nn.Module):
    def __init__(self, inputs=16, size=8):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(inputs, 32), nn.BatchNorm1d(32), nn.PReLU())
        self.embedder = nn.Linear(32, size)

    def forward(self, x):
        return self.embedder(self.trunk(x))


class Recall:
    """How often the nearest neighbour is of the same class."""

    def __init__(self, k):
        self.k = k

    @torch.no_grad()
    def __call__(self, model, x, y):
        model.eval()
        z = F.normalize(model(x))
        near = (z @ z.T - 2 * torch.eye(len(z))).topk(self.k).indices
        model.train()
        return (y[near] == y[:, None]).any(1).float().mean().item()


def data(n, generator):
    centres = torch.randn(6, 16, generator=torch.Generator().manual_seed(99))
    y = torch.randint(6, (n,), generator=generator)
    return centres[y] + 1.2 * torch.randn(n, 16, generator=generator), y


def run():
    torch.manual_seed(5)
    generator = torch.Generator().manual_seed(6)
    x, y = data(192, generator)
    x_test, y_test = data(60, generator)
    model, loss_func, recall = EmbeddingNet(), ArcFaceLoss(6, 8), Recall(1)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    loss_optimizer = torch.optim.SGD(loss_func.parameters(), lr=0.1)
    history = []
    for epoch in range(4):
        for i, rows in enumerate(torch.randperm(len(x), generator=generator).split(32)):
            optimizer.zero_grad()
            loss_optimizer.zero_grad()
            loss = loss_func(model(x[rows]), y[rows])
            loss.backward()
            optimizer.step()
            loss_optimizer.step()
            history.append(loss.item())
            log.info("epoch %d iteration %d: loss = %.5f", epoch, i, loss)
        print(f"epoch {epoch}: mean loss {sum(history[-6:]) / 6:.5f}, recall@1 {recall(model, x_test, y_test):.3f}")
    with open("history.json", "w") as file:
        json.dump(history, file)
    torch.save((model.state_dict(), loss_func.state_dict()), "embedder.pt")
    print(torch.rand(1).item(), torch.rand(1, generator=generator).item())


run()
