"""A network that solves a differential equation (damped oscillation): first by Adam, then by LBFGS."""

import torch
import torch.nn as nn

torch.manual_seed(123)
torch.set_default_dtype(torch.float64)


class FCN(nn.Module):
    """A fully connected network with sines."""

    def __init__(self, n_hidden=16, n_layers=2):
        super().__init__()
        self.fcs = nn.Linear(1, n_hidden)
        self.fch = nn.ModuleList(nn.Linear(n_hidden, n_hidden) for _ in range(n_layers - 1))
        self.fce = nn.Linear(n_hidden, 1)

    def forward(self, t):
        h = torch.tanh(self.fcs(t))
        for layer in self.fch:
            h = torch.tanh(layer(h))
        return self.fce(h)


d, w0 = 1.0, 4.0
t_boundary = torch.zeros(1, 1, requires_grad=True)
t_physics = torch.linspace(0, 1, 20).view(-1, 1).requires_grad_(True)
pinn = FCN()


def grad(outputs, inputs):
    return torch.autograd.grad(outputs, inputs, torch.ones_like(outputs), create_graph=True)[0]


def physics_loss():
    u = pinn(t_boundary)
    dudt = grad(u, t_boundary)
    boundary = (u.squeeze() - 1) ** 2 + 0.1 * dudt.squeeze() ** 2
    u = pinn(t_physics)
    dudt = grad(u, t_physics)
    residual = grad(dudt, t_physics) + 2 * d * dudt + w0**2 * u
    return boundary + 1e-3 * torch.mean(residual**2)


optimiser = torch.optim.Adam(pinn.parameters(), lr=1e-2)
for i in range(20):
    optimiser.zero_grad()
    loss = physics_loss()
    loss.backward()
    optimiser.step()
    print(f"adam {i}: {loss.item():.8f}")

lbfgs = torch.optim.LBFGS(pinn.parameters(), max_iter=5, history_size=10, line_search_fn="strong_wolfe")
evaluations = 0


def closure():
    global evaluations
    lbfgs.zero_grad()
    loss = physics_loss()
    loss.backward()
    evaluations += 1
    return loss


for i in range(5):
    loss = lbfgs.step(closure)
    print(f"lbfgs {i}: {loss.item():.8f} after {evaluations} evaluations")

with torch.no_grad():
    t = torch.linspace(0, 1, 50).view(-1, 1)
    w = (w0**2 - d**2) ** 0.5
    exact = torch.exp(-d * t) * (torch.cos(w * t) + d / w * torch.sin(w * t))
    print(f"largest error {(pinn(t) - exact).abs().max().item():.6f}")
torch.save(pinn.state_dict(), "pinn.pt")
print(torch.rand(1).item())
