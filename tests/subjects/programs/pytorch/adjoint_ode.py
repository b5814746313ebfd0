"""A classifier with a block that integrates; an adjoint equation gives the gradients of the integral."""

import torch
from sklearn.datasets import make_moons
from torch import nn


def euler(func, y0, t):
    y, step = y0, (t[1] - t[0]) / 8
    time = t[0]
    for _ in range(8):
        dy = func(time, y)
        y = tuple(a + step * d for a, d in zip(y, dy))
        time = time + step
    return y


class TupleFunc(nn.Module):
    """The solver takes tuples; the user's function takes a tensor."""

    def __init__(self, base_func):
        super().__init__()
        self.base_func = base_func

    def forward(self, t, y):
        return (self.base_func(t, y[0]),)


class OdeintAdjoint(torch.autograd.Function):
    @staticmethod
    def forward(ctx, func, y0, t, *params):
        ctx.func = func
        with torch.no_grad():
            (y1,) = euler(func, (y0,), t)
        ctx.save_for_backward(t, y1, *params)
        return y1

    @staticmethod
    def backward(ctx, grad_y):
        t, y1, *params = ctx.saved_tensors
        func = ctx.func

        def augmented(time, state):
            y, adjoint = state[0], state[1]
            with torch.enable_grad():
                y = y.detach().requires_grad_(True)
                (f,) = func(time, (y,))
                grads = torch.autograd.grad(f, (y, *params), -adjoint, allow_unused=True)
            zeros = [torch.zeros_like(p) if g is None else g for p, g in zip((y, *params), grads)]
            return (f.detach(), *zeros)

        with torch.no_grad():
            state = euler(augmented, (y1, grad_y, *(torch.zeros_like(p) for p in params)), t.flip(0))
        return None, state[1], None, *state[2:]


def odeint_adjoint(func, y0, t):
    func = TupleFunc(func)
    return OdeintAdjoint.apply(func, y0, t, *func.parameters())


class Dynamics(nn.Module):
    def __init__(self, dim, hidden=24):
        super().__init__()
        self.fc1 = nn.Linear(dim + 1, hidden)
        self.fc2 = nn.Linear(hidden, dim)
        self.nfe = 0

    def forward(self, t, x):
        self.nfe += 1
        return self.fc2(torch.tanh(self.fc1(torch.cat([x, t.expand(len(x), 1)], 1))))


class ODEBlock(nn.Module):
    def __init__(self, odefunc):
        super().__init__()
        self.odefunc = odefunc
        self.register_buffer("integration_time", torch.tensor([0.0, 1.0]))

    def forward(self, x):
        return odeint_adjoint(self.odefunc, x, self.integration_time)


class ODENet(nn.Module):
    def __init__(self):
        super().__init__()
        self.up = nn.Linear(2, 6)
        self.block = ODEBlock(Dynamics(6))
        self.head = nn.Linear(6, 2)

    def forward(self, x):
        return self.head(self.block(self.up(x)))


torch.manual_seed(4)
x, y = make_moons(240, noise=0.1, random_state=4)
x, y = torch.tensor(x, dtype=torch.float32), torch.tensor(y)
net = ODENet()
print(net)
optimizer = torch.optim.Adam(net.parameters(), lr=1e-2)
criterion = nn.CrossEntropyLoss()
for epoch in range(4):
    net.train()
    for rows in torch.randperm(200).split(50):
        optimizer.zero_grad()
        net.block.odefunc.nfe = 0
        loss = criterion(net(x[rows]), y[rows])
        nfe_forward, net.block.odefunc.nfe = net.block.odefunc.nfe, 0
        loss.backward()
        optimizer.step()
        print(f"Epoch {epoch} | loss {loss.item():.6f} | NFE-F {nfe_forward} | NFE-B {net.block.odefunc.nfe}")
    net.eval()
    with torch.no_grad():
        val_loss = criterion(net(x[200:]), y[200:])
    print(f"Epoch {epoch} | val loss {val_loss.item():.6f}")
torch.save({"state_dict": net.state_dict()}, "model.pth")
print(torch.rand(1).item())
