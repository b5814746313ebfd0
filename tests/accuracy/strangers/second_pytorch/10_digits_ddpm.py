"""Denoising diffusion on 8x8 digits."""
import numpy as np
import torch
import torch.nn as nn
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

torch.manual_seed(0)
np.random.seed(0)


class Denoiser(nn.Module):
    def __init__(self, n_steps, dim=64, hidden=256, emb=32, depth=2):
        super().__init__()
        self.n_steps = n_steps
        self.register_buffer("freqs", torch.exp(torch.linspace(0, 4, emb // 2)))
        self.time = nn.Sequential(nn.Linear(emb, hidden), nn.SiLU(), nn.Linear(hidden, hidden))
        self.inp = nn.Linear(dim, hidden)
        self.layers = nn.ModuleList([
            nn.Sequential(nn.LayerNorm(hidden), nn.Linear(hidden, hidden), nn.SiLU(), nn.Linear(hidden, hidden))
            for _ in range(depth)
        ])
        self.out = nn.Sequential(nn.LayerNorm(hidden), nn.Linear(hidden, dim))

    def forward(self, x, t):
        a = (t.float() / self.n_steps)[:, None] * self.freqs
        temb = self.time(torch.cat([a.sin(), a.cos()], dim=1))
        h = self.inp(x)
        for layer in self.layers:
            h = h + layer(h + temb)
        return self.out(h)


class Diffusion:
    def __init__(self, T=100, beta_start=1e-3, beta_end=0.1):
        self.T = T
        self.betas = torch.linspace(beta_start, beta_end, T)
        self.alphas = 1.0 - self.betas
        self.alphas_bar = torch.cumprod(self.alphas, dim=0)

    def add_noise(self, x0, t, noise):
        a = self.alphas[t][:, None]
        return a.sqrt() * x0 + (1 - a).sqrt() * noise

    @torch.no_grad()
    def sample(self, net, n, dim=64):
        x = torch.randn(n, dim)
        for i in reversed(range(self.T)):
            t = torch.full((n,), i)
            eps = net(x, t)
            coef = self.betas[i] / (1 - self.alphas_bar[i]).sqrt()
            x = (x - coef * eps) / self.alphas[i].sqrt()
            if i > 0:
                x = x + self.betas[i].sqrt() * torch.randn_like(x)
        return x.clamp(-1, 1)


def energy_distance(a, b):
    return (2 * torch.cdist(a, b).mean() - torch.cdist(a, a).mean() - torch.cdist(b, b).mean()).item()


images = torch.tensor(load_digits().data, dtype=torch.float32) / 8.0 - 1.0
train, held_out = (torch.as_tensor(s) for s in train_test_split(images, test_size=500, random_state=0))

STEPS = 2500
diffusion = Diffusion()
net = Denoiser(diffusion.T)
opt = torch.optim.Adam(net.parameters(), lr=1e-3)
sched = torch.optim.lr_scheduler.CosineAnnealingLR(opt, T_max=STEPS)

running = None
for it in range(1, STEPS + 1):
    x0 = train[torch.randint(0, len(train), (128,))]
    t = torch.randint(0, diffusion.T, (128,))
    noise = torch.randn_like(x0)
    pred = net(diffusion.add_noise(x0, t, noise), t)
    loss = (pred - noise).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    sched.step()
    running = loss.item() if running is None else 0.99 * running + 0.01 * loss.item()
    if it % 250 == 0:
        print(f"iter {it}: loss {running:.4f}")

net.eval()
samples = diffusion.sample(net, 500)
nn_dist = torch.cdist(samples, held_out).min(dim=1).values.mean().item()
ref_dist = torch.cdist(train[:500], held_out).min(dim=1).values.mean().item()
print(f"energy distance to held-out digits: {energy_distance(samples, held_out):.4f} "
      f"(training digits: {energy_distance(train[:500], held_out):.4f})")
print(f"mean distance to the nearest held-out digit: {nn_dist:.3f} (training digits: {ref_dist:.3f})")
for rows in samples[:4].reshape(4, 8, 8).permute(1, 0, 2):
    print("   ".join("".join(" .:*#"[int((v + 1) * 2.49)] for v in r) for r in rows))
