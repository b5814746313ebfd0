"""A neural ordinary differential equation fitted to a spiral; the integrator calls the network four times a step."""

import argparse

import torch
import torch.nn as nn
import torch.optim as optim

parser = argparse.ArgumentParser("ODE demo")
parser.add_argument("--data_size", type=int, default=50)
parser.add_argument("--batch_time", type=int, default=8)
parser.add_argument("--batch_size", type=int, default=16)
parser.add_argument("--niters", type=int, default=20)
parser.add_argument("--test_freq", type=int, default=20)
args = parser.parse_args()

torch.manual_seed(0)
true_y0 = torch.tensor([[2.0, 0.0]])
t = torch.linspace(0.0, 10.0, args.data_size)
true_A = torch.tensor([[-0.1, 2.0], [-2.0, -0.1]])


def rk4_step(func, t, dt, y):
    k1 = func(t, y)
    k2 = func(t + dt / 2, y + dt * k1 / 2)
    k3 = func(t + dt / 2, y + dt * k2 / 2)
    k4 = func(t + dt, y + dt * k3)
    return y + (k1 + 2 * k2 + 2 * k3 + k4) * dt / 6


def odeint(func, y0, times):
    solution = [y0]
    for start, end in zip(times[:-1], times[1:]):
        solution.append(rk4_step(func, start, end - start, solution[-1]))
    return torch.stack(solution)


class Lambda(nn.Module):
    def forward(self, t, y):
        return torch.mm(y**3, true_A)


with torch.no_grad():
    true_y = odeint(Lambda(), true_y0, t)


def get_batch():
    s = torch.randperm(args.data_size - args.batch_time)[: args.batch_size]
    return true_y[s], t[: args.batch_time], torch.stack([true_y[s + i] for i in range(args.batch_time)])


class ODEFunc(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(2, 24), nn.Tanh(), nn.Linear(24, 2))
        for m in self.net.modules():
            if isinstance(m, nn.Linear):
                nn.init.normal_(m.weight, mean=0, std=0.1)
                nn.init.constant_(m.bias, val=0)

    def forward(self, t, y):
        return self.net(y**3)


class RunningAverageMeter:
    def __init__(self, momentum=0.9):
        self.momentum, self.avg = momentum, None

    def update(self, val):
        self.avg = val if self.avg is None else self.avg * self.momentum + val * (1 - self.momentum)


if __name__ == "__main__":
    func = ODEFunc()
    optimizer = optim.RMSprop(func.parameters(), lr=1e-3)
    loss_meter = RunningAverageMeter()
    for itr in range(1, args.niters + 1):
        optimizer.zero_grad()
        batch_y0, batch_t, batch_y = get_batch()
        pred_y = odeint(func, batch_y0, batch_t)
        loss = torch.mean(torch.abs(pred_y - batch_y))
        loss.backward()
        optimizer.step()
        loss_meter.update(loss.item())
        print(f"Iter {itr:04d} | Loss {loss.item():.6f} | Running {loss_meter.avg:.6f}")
        if itr % args.test_freq == 0:
            with torch.no_grad():
                total = torch.mean(torch.abs(odeint(func, true_y0, t) - true_y))
            print(f"Iter {itr:04d} | Total Loss {total.item():.6f}")
    torch.save(func.state_dict(), "odefunc.pth")
    print(torch.randperm(5).tolist())
