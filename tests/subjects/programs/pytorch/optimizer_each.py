"""Updates fused with the backward pass: an optimizer for each parameter steps once its gradient is there."""

import argparse

import torch
from sklearn.datasets import load_digits
from torch import nn


class Block(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.norm = nn.LayerNorm(dim)
        self.up, self.down = nn.Linear(dim, 2 * dim), nn.Linear(2 * dim, dim)

    def forward(self, x):
        return x + self.down(torch.relu(self.up(self.norm(x))))


class Net(nn.Module):
    def __init__(self, dim=32, depth=2):
        super().__init__()
        self.embed = nn.Linear(64, dim)
        self.blocks = nn.Sequential(*(Block(dim) for _ in range(depth)))
        self.head = nn.Linear(dim, 10)

    def forward(self, x):
        return self.head(self.blocks(self.embed(x)))


def fuse(model, lr):
    optimizers = {p: torch.optim.AdamW([p], lr=lr, foreach=False) for p in model.parameters()}

    def optimizer_hook(parameter):
        optimizers[parameter].step()
        optimizers[parameter].zero_grad()

    for p in model.parameters():
        p.register_post_accumulate_grad_hook(optimizer_hook)
    return optimizers


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--lr", type=float, default=3e-3)
    parser.add_argument("--steps", type=int, default=16)
    args = parser.parse_args()
    torch.manual_seed(0)
    x, y = load_digits(return_X_y=True)
    x, y = torch.tensor(x, dtype=torch.float32) / 16, torch.tensor(y)
    model = Net()
    optimizers = fuse(model, args.lr)
    for step in range(args.steps):
        rows = torch.randint(1500, (64,))
        loss = nn.functional.cross_entropy(model(x[rows]), y[rows])
        loss.backward()
        print(f"step {step} loss {loss.item():.6f}")
    model.eval()
    with torch.inference_mode():
        accuracy = (model(x[1500:]).argmax(1) == y[1500:]).float().mean()
    print(f"accuracy {accuracy.item():.4f} gradients kept {sum(p.grad is not None for p in model.parameters())}")
    torch.save({"model": model.state_dict(), "optimizers": [o.state_dict() for o in optimizers.values()]}, "fused.pt")
    print(torch.rand(1).item())


if __name__ == "__main__":
    main()
