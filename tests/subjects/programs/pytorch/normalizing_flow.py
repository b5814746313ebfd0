"""Density estimation by real NVP: coupling layers in turns, trained by maximum likelihood and then sampled."""

import numpy as np
import torch
from sklearn import datasets
from torch import distributions, nn


def mlp(out):
    return nn.Sequential(nn.Linear(2, 24), nn.LeakyReLU(), nn.Linear(24, 24), nn.LeakyReLU(), nn.Linear(24, 2), *out)


class RealNVP(nn.Module):
    def __init__(self, nets, nett, mask, prior):
        super().__init__()
        self.prior = prior
        self.mask = nn.Parameter(mask, requires_grad=False)
        self.t = nn.ModuleList([nett() for _ in range(len(mask))])
        self.s = nn.ModuleList([nets() for _ in range(len(mask))])

    def g(self, z):
        x = z
        for i in range(len(self.t)):
            x_ = x * self.mask[i]
            s, t = self.s[i](x_) * (1 - self.mask[i]), self.t[i](x_) * (1 - self.mask[i])
            x = x_ + (1 - self.mask[i]) * (x * torch.exp(s) + t)
        return x

    def f(self, x):
        log_det_J, z = x.new_zeros(x.shape[0]), x
        for i in reversed(range(len(self.t))):
            z_ = self.mask[i] * z
            s, t = self.s[i](z_) * (1 - self.mask[i]), self.t[i](z_) * (1 - self.mask[i])
            z = (1 - self.mask[i]) * (z - t) * torch.exp(-s) + z_
            log_det_J -= s.sum(dim=1)
        return z, log_det_J

    def log_prob(self, x):
        z, logp = self.f(x)
        return self.prior.log_prob(z) + logp

    def sample(self, n):
        return self.g(self.prior.sample((n,)))


torch.manual_seed(0)
masks = torch.from_numpy(np.array([[0, 1], [1, 0]] * 2).astype(np.float32))
prior = distributions.MultivariateNormal(torch.zeros(2), torch.eye(2))
flow = RealNVP(lambda: mlp([nn.Tanh()]), lambda: mlp([]), masks, prior)
optimizer = torch.optim.Adam([p for p in flow.parameters() if p.requires_grad], lr=3e-3)
for t in range(24):
    noisy_moons = datasets.make_moons(n_samples=128, noise=0.05, random_state=t)[0].astype(np.float32)
    loss = -flow.log_prob(torch.from_numpy(noisy_moons)).mean()
    optimizer.zero_grad()
    loss.backward(retain_graph=True)
    optimizer.step()
    print(f"iter {t}: loss = {loss.item():.6f}")

with torch.no_grad():
    x = flow.sample(50)
np.save("moons.npy", x.numpy())
torch.save(flow.state_dict(), "flow.pt")
print(x.mean(0).tolist(), torch.rand(1).item())
