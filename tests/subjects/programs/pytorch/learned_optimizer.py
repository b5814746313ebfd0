"""Learning to optimize: an LSTM proposes the updates of small regressions, and is trained through twenty of them."""

import torch
from torch import nn


class QuadraticLoss:
    def __init__(self, generator):
        self.W = torch.randn(6, 6, generator=generator)
        self.y = torch.randn(6, generator=generator)

    def __call__(self, theta):
        return ((self.W @ theta - self.y) ** 2).sum()


class LSTMOptimizer(nn.Module):
    def __init__(self, hidden=12):
        super().__init__()
        self.hidden = hidden
        self.recurs = nn.LSTMCell(2, hidden)
        self.output = nn.Linear(hidden, 1)
        self.p = 10.0

    def preprocess(self, gradient):
        log = torch.log(gradient.abs() + 1e-8) / self.p
        return torch.stack([log.clamp(min=-1), gradient.sign()], 1)

    def forward(self, gradient, state):
        h, c = self.recurs(self.preprocess(gradient), state)
        return self.output(h).squeeze(1) * 0.1, (h, c)


def unroll(optimizer, target, generator, meta_opt=None, steps=20, truncation=10):
    theta = torch.randn(6, generator=generator).requires_grad_()
    state = (torch.zeros(6, optimizer.hidden), torch.zeros(6, optimizer.hidden))
    all_losses, meta_losses, total = [], [], 0.0
    for t in range(steps):
        loss = target(theta)
        all_losses.append(loss.item())
        total = total + loss
        (gradient,) = torch.autograd.grad(loss, theta, retain_graph=meta_opt is not None)
        update, state = optimizer(gradient.detach(), state)
        theta = theta + update
        if meta_opt is None or (t + 1) % truncation == 0:
            if meta_opt is not None:
                meta_opt.zero_grad()
                total.backward()
                meta_opt.step()
                meta_losses.append(total.item())
            theta = theta.detach().requires_grad_()
            state = tuple(part.detach() for part in state)
            total = 0.0
    return all_losses, meta_losses


def main(tasks=8):
    torch.manual_seed(0)
    generator = torch.Generator().manual_seed(1)
    optimizer = LSTMOptimizer()
    meta_opt = torch.optim.Adam(optimizer.parameters(), lr=1e-2)
    for task in range(tasks):
        _, meta_losses = unroll(optimizer, QuadraticLoss(generator), generator, meta_opt)
        for number, meta_loss in enumerate(meta_losses):
            print(f"task {task} part {number} meta loss {meta_loss:.5f}")
    optimizer.eval()
    losses, _ = unroll(optimizer, QuadraticLoss(generator), generator)
    print(f"a new task from {losses[0]:.4f} to {losses[-1]:.4f}")
    torch.save(optimizer.state_dict(), "learned_optimizer.pt")
    print(torch.rand(1).item(), torch.rand(1, generator=generator).item())


if __name__ == "__main__":
    main()
