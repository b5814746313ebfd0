"""A denoising diffusion model of points on two moons, with a moving average of its weights, and samples drawn."""

import copy
import math

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

TIMESTEPS = 50


def moons(n, generator):
    angle = math.pi * torch.rand(n, generator=generator)
    upper = torch.arange(n) % 2 == 0
    x = torch.where(upper, angle.cos(), 1 - angle.cos())
    y = torch.where(upper, angle.sin(), 0.5 - angle.sin())
    return torch.stack([x, y], 1) + 0.05 * torch.randn(n, 2, generator=generator)


class SinusoidalEmbedding(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.register_buffer("frequencies", torch.exp(-math.log(1e4) * torch.arange(size // 2) / (size // 2)))

    def forward(self, t):
        angles = t[:, None] * self.frequencies[None]
        return torch.cat([angles.sin(), angles.cos()], dim=-1)


class Block(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.norm = nn.LayerNorm(size)
        self.ff = nn.Linear(size, size)
        self.act = nn.GELU()

    def forward(self, x):
        return x + self.act(self.ff(self.norm(x)))


class Denoiser(nn.Module):
    def __init__(self, hidden=32, blocks=3):
        super().__init__()
        self.time = nn.Sequential(SinusoidalEmbedding(16), nn.Linear(16, hidden), nn.SiLU())
        self.enter = nn.Linear(2, hidden)
        self.blocks = nn.ModuleList(Block(hidden) for _ in range(blocks))
        self.leave = nn.Linear(hidden, 2)

    def forward(self, x, t):
        h = self.enter(x) + self.time(t)
        for block in self.blocks:
            h = block(h)
        return self.leave(h)


class Diffusion(nn.Module):
    """The noise schedule; its forward is the training loss."""

    def __init__(self, net, timesteps=TIMESTEPS):
        super().__init__()
        self.net = net
        betas = torch.linspace(1e-4, 0.2, timesteps)
        self.register_buffer("betas", betas)
        self.register_buffer("alpha_bar", torch.cumprod(1 - betas, 0))

    def forward(self, x):
        t = torch.randint(0, TIMESTEPS, (len(x),))
        noise = torch.randn_like(x)
        scale = self.alpha_bar[t][:, None]
        noisy = scale.sqrt() * x + (1 - scale).sqrt() * noise
        return nn.functional.mse_loss(self.net(noisy, t), noise)

    @torch.no_grad()
    def sample(self, n):
        x = torch.randn(n, 2)
        for t in reversed(range(TIMESTEPS)):
            beta, bar = self.betas[t], self.alpha_bar[t]
            predicted = self.net(x, torch.full((n,), t))
            x = (x - beta / (1 - bar).sqrt() * predicted) / (1 - beta).sqrt()
            if t:
                x = x + beta.sqrt() * torch.randn_like(x)
        return x


class EMA:
    def __init__(self, model, decay=0.9):
        self.decay = decay
        self.model = copy.deepcopy(model).eval().requires_grad_(False)

    @torch.no_grad()
    def update(self, model):
        for mine, theirs in zip(self.model.parameters(), model.parameters()):
            mine.lerp_(theirs, 1 - self.decay)


def train(epochs=6):
    torch.manual_seed(42)
    data = TensorDataset(moons(320, torch.Generator().manual_seed(0)))
    loader = DataLoader(data, batch_size=64, shuffle=True, drop_last=True)
    diffusion = Diffusion(Denoiser())
    ema = EMA(diffusion)
    optimizer = torch.optim.AdamW(diffusion.parameters(), lr=2e-3)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 4e-3, total_steps=epochs * len(loader))
    for epoch in range(epochs):
        total = 0.0
        for (x,) in loader:
            optimizer.zero_grad(set_to_none=True)
            loss = diffusion(x)
            loss.backward()
            nn.utils.clip_grad_norm_(diffusion.parameters(), 1.0)
            optimizer.step()
            schedule.step()
            ema.update(diffusion)
            total += loss.item()
        print(f"[{epoch + 1}/{epochs}] loss {total / len(loader):.5f}  lr {schedule.get_last_lr()[0]:.6f}")
    samples = ema.model.sample(64)
    torch.save({"model": diffusion.state_dict(), "ema": ema.model.state_dict(), "samples": samples}, "diffusion.ckpt")
    print("samples: mean", samples.mean(0).tolist(), "std", samples.std(0).tolist())
    print("random state:", torch.get_rng_state().sum().item())


if __name__ == "__main__":
    train()
