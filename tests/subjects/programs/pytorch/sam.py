"""Sharpness-aware minimization: the gradient is taken a second time, where the loss is highest nearby."""

import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.datasets import load_wine
from sklearn.model_selection import train_test_split
from torch.utils.data import DataLoader, TensorDataset


class SAM(torch.optim.Optimizer):
    def __init__(self, params, base_optimizer, rho=0.05, adaptive=False, **kwargs):
        assert rho >= 0.0, f"Invalid rho, should be non-negative: {rho}"
        super().__init__(params, dict(rho=rho, adaptive=adaptive, **kwargs))
        self.base_optimizer = base_optimizer(self.param_groups, **kwargs)
        self.param_groups = self.base_optimizer.param_groups
        self.defaults.update(self.base_optimizer.defaults)

    @torch.no_grad()
    def first_step(self, zero_grad=False):
        grad_norm = self._grad_norm()
        for group in self.param_groups:
            scale = group["rho"] / (grad_norm + 1e-12)
            for p in group["params"]:
                if p.grad is None:
                    continue
                self.state[p]["old_p"] = p.data.clone()
                p.add_((torch.pow(p, 2) if group["adaptive"] else 1.0) * p.grad * scale)
        if zero_grad:
            self.zero_grad()

    @torch.no_grad()
    def second_step(self, zero_grad=False):
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    p.data = self.state[p]["old_p"]
        self.base_optimizer.step()
        if zero_grad:
            self.zero_grad()

    @torch.no_grad()
    def step(self, closure=None):
        assert closure is not None, "Sharpness Aware Minimization requires closure, but it was not provided"
        closure = torch.enable_grad()(closure)
        self.first_step(zero_grad=True)
        closure()
        self.second_step()

    def _grad_norm(self):
        norms = [
            ((torch.abs(p) if group["adaptive"] else 1.0) * p.grad).norm(p=2)
            for group in self.param_groups
            for p in group["params"]
            if p.grad is not None
        ]
        return torch.norm(torch.stack(norms), p=2)


def smooth_crossentropy(pred, gold, smoothing=0.1):
    n_class = pred.size(1)
    one_hot = torch.full_like(pred, fill_value=smoothing / (n_class - 1))
    one_hot.scatter_(dim=1, index=gold.unsqueeze(1), value=1.0 - smoothing)
    return F.kl_div(input=F.log_softmax(pred, dim=1), target=one_hot, reduction="none").sum(-1)


def disable_running_stats(model):
    for module in model.modules():
        if isinstance(module, nn.BatchNorm1d):
            module.backup_momentum, module.momentum = module.momentum, 0


def enable_running_stats(model):
    for module in model.modules():
        if isinstance(module, nn.BatchNorm1d) and hasattr(module, "backup_momentum"):
            module.momentum = module.backup_momentum


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--adaptive", default=True, type=bool)
    parser.add_argument("--batch_size", default=32, type=int)
    parser.add_argument("--epochs", default=5, type=int)
    parser.add_argument("--learning_rate", default=0.1, type=float)
    parser.add_argument("--rho", default=0.5, type=float)
    args = parser.parse_args()

    torch.manual_seed(42)
    x, y = load_wine(return_X_y=True)
    x = (x - x.mean(0)) / x.std(0)
    sides = train_test_split(torch.tensor(x, dtype=torch.float32), torch.tensor(y), test_size=0.28, random_state=42)
    train = DataLoader(TensorDataset(sides[0], sides[2]), args.batch_size, shuffle=True)
    test = DataLoader(TensorDataset(sides[1], sides[3]), args.batch_size)
    model = nn.Sequential(nn.Linear(13, 24), nn.BatchNorm1d(24), nn.ReLU(), nn.Linear(24, 3))
    optimizer = SAM(
        model.parameters(), torch.optim.SGD, rho=args.rho, adaptive=args.adaptive, lr=args.learning_rate, momentum=0.9
    )
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer.base_optimizer, 3, gamma=0.2)

    for epoch in range(args.epochs):
        model.train()
        for inputs, targets in train:
            # first forward-backward step
            enable_running_stats(model)
            predictions = model(inputs)
            loss = smooth_crossentropy(predictions, targets)
            loss.mean().backward()
            optimizer.first_step(zero_grad=True)
            # second forward-backward step
            disable_running_stats(model)
            second = smooth_crossentropy(model(inputs), targets).mean()
            second.backward()
            optimizer.second_step(zero_grad=True)
            print(f"epoch {epoch}: loss {loss.mean().item():.6f} loss at the edge {second.item():.6f}")
        scheduler.step()
        model.eval()
        with torch.no_grad():
            hits = sum((model(inputs).argmax(1) == targets).sum().item() for inputs, targets in test)
        print(f"epoch {epoch}: accuracy {hits / len(sides[1]):.3f}")
    torch.save(model.state_dict(), "sam.pt")
    print(torch.rand(2).tolist())
