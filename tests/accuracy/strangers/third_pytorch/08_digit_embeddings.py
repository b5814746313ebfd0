"""
Metric learning: embed digit images so that images of the same class are neighbours.
Trained on the classes 0-5 with in-batch negatives, judged on the unseen classes 6-9.
"""
import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.datasets import load_digits

torch.manual_seed(21)

EMB = 32
PAIRS_PER_CLASS = 8
TEMPERATURE = 0.1

digits = load_digits()
X = torch.tensor(digits.images, dtype=torch.float32).unsqueeze(1) / 16.0
y = torch.tensor(digits.target)

seen = y < 6
X_train, y_train = X[seen], y[seen]
X_new, y_new = X[~seen], y[~seen]
by_class = [torch.where(y_train == c)[0] for c in range(6)]


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, 24, 3, padding=1), nn.ReLU(),
            nn.Conv2d(24, 48, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
            nn.Flatten(), nn.Linear(48 * 16, 96), nn.ReLU(),
        )
        self.embed = nn.Linear(96, EMB)

    def forward(self, x):
        z = self.embed(self.features(x))
        return F.normalize(z, dim=0)


def augment(x):
    """shift by at most a pixel, a little noise"""
    dx, dy = torch.randint(-1, 2, (2,)).tolist()
    return torch.roll(x, (dx, dy), dims=(2, 3)) + 0.1 * torch.randn_like(x)


def sample_batch():
    anchors, positives, labels = [], [], []
    for c, idx in enumerate(by_class):
        pick = idx[torch.randperm(len(idx))[: 2 * PAIRS_PER_CLASS]]
        anchors.append(pick[:PAIRS_PER_CLASS])
        positives.append(pick[PAIRS_PER_CLASS:])
        labels += [c] * PAIRS_PER_CLASS
    a, p = torch.cat(anchors), torch.cat(positives)
    return augment(X_train[a]), augment(X_train[p]), torch.tensor(labels)


def contrastive_loss(za, zp, labels):
    logits = za @ zp.T / TEMPERATURE
    same = (labels[:, None] == labels[None, :]).float()
    target = same / same.sum(1, keepdim=True)
    return -(target * F.log_softmax(logits, dim=1)).sum(1).mean()


@torch.no_grad()
def retrieval(model, x, labels, k=10):
    model.eval()
    z = model(x)
    sim = z @ z.T
    sim.fill_diagonal_(float("-inf"))
    nn_idx = sim.topk(k, dim=1).indices
    hit = labels[nn_idx] == labels[:, None]
    model.train()
    return hit[:, 0].float().mean().item(), hit.float().mean().item()


encoder = Encoder()
opt = torch.optim.Adam(encoder.parameters(), lr=1e-3)

for step in range(1, 401):
    xa, xp, labels = sample_batch()
    loss = contrastive_loss(encoder(xa), encoder(xp), labels)
    opt.zero_grad()
    loss.backward()
    opt.step()
    if step % 50 == 0:
        r1, p10 = retrieval(encoder, X_new, y_new)
        s1, s10 = retrieval(encoder, X_train, y_train)
        print(f"step {step:3d} loss {loss.item():.4f} | new classes: R@1 {r1:.3f} P@10 {p10:.3f} "
              f"| seen classes: R@1 {s1:.3f} P@10 {s10:.3f}")
