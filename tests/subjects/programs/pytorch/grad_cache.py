"""Contrastive training in chunks: embeddings without gradients, the loss over all of them, then each chunk again."""

import contextlib

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.checkpoint import get_device_states, set_device_states


class RandContext:
    """Dropout is the same in the second pass."""

    def __init__(self):
        self.fwd_cpu_state = torch.get_rng_state()
        self.fwd_devices, self.fwd_states = get_device_states()

    def __enter__(self):
        self._fork = torch.random.fork_rng(devices=self.fwd_devices, enabled=True)
        self._fork.__enter__()
        torch.set_rng_state(self.fwd_cpu_state)
        set_device_states(self.fwd_devices, self.fwd_states)

    def __exit__(self, *exc):
        self._fork.__exit__(*exc)


class GradCache:
    def __init__(self, models, chunk_size, loss_fn):
        self.models, self.chunk_size, self.loss_fn = models, chunk_size, loss_fn

    def forward_no_grad(self, model, chunks):
        states, reps = [], []
        with torch.no_grad():
            for chunk in chunks:
                states.append(RandContext())
                reps.append(model(chunk))
        return torch.cat(reps), states

    def build_cache(self, *reps):
        reps = [r.detach().requires_grad_() for r in reps]
        loss = self.loss_fn(*reps)
        loss.backward()
        return [r.grad for r in reps], loss.detach()

    def forward_backward(self, model, chunks, cached, states):
        for chunk, gradient, state in zip(chunks, cached.split(self.chunk_size), states):
            with state, contextlib.nullcontext():
                surrogate = torch.dot(model(chunk).flatten(), gradient.flatten())
            surrogate.backward()

    def __call__(self, *inputs):
        chunks = [each.split(self.chunk_size) for each in inputs]
        found = [self.forward_no_grad(model, part) for model, part in zip(self.models, chunks)]
        caches, loss = self.build_cache(*(reps for reps, _ in found))
        for model, part, cache, (_, states) in zip(self.models, chunks, caches, found):
            self.forward_backward(model, part, cache, states)
        return loss


def contrastive(x, y):
    return F.cross_entropy(F.normalize(x) @ F.normalize(y).t() / 0.1, torch.arange(len(x)))


class Tower(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(width, 32), nn.ReLU(), nn.Dropout(0.1), nn.Linear(32, 8))

    def forward(self, x):
        return self.net(x)


if __name__ == "__main__":
    torch.manual_seed(2)
    queries, passages = Tower(10), Tower(14)
    optimizer = torch.optim.AdamW([*queries.parameters(), *passages.parameters()], lr=5e-3)
    cached_step = GradCache([queries, passages], chunk_size=16, loss_fn=contrastive)
    mixing = torch.randn(6, 24)
    for step in range(15):
        both = torch.randn(48, 6) @ mixing + 0.1 * torch.randn(48, 24)
        optimizer.zero_grad()
        loss = cached_step(both[:, :10], both[:, 10:])
        optimizer.step()
        print(f"step {step} loss {loss.item():.6f}")
    torch.save([queries.state_dict(), passages.state_dict()], "towers.pt")
    print(torch.rand(1).item())
