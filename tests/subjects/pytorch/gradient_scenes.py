"""PyTorch training loops in which gradients come about in different ways; knows nothing of the agent.

usage: python gradient_scenes.py [NOTES.npz]
"""

import copy

import torch
import torch.nn.functional as F
from notes import note, note_model, noting, play
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(5, 4)
        self.fc2 = nn.Linear(4, 3)

    def forward(self, x):
        return self.fc2(torch.relu(self.fc1(x)))


class Critic(Net):
    def __init__(self):
        super().__init__()
        self.fc2 = nn.Linear(4, 1)


def data():
    return torch.randn(8, 5), torch.randint(0, 3, (8,))


def note_true(model, loss_of, step, name="Net", sums=None):
    """Note the gradients of a loss of a copy of the model, added to those in ``sums`` if there is one."""
    if not noting:
        return
    twin = copy.deepcopy(model)
    gradients = torch.autograd.grad(loss_of(twin), list(twin.parameters()), allow_unused=True)
    for (key, _), gradient in zip(twin.named_parameters(), gradients, strict=True):
        if gradient is None:
            continue
        if sums is not None:
            gradient = sums[key] = sums.get(key, 0) + gradient
        note(f"gradient/{name}_{key}", step, gradient)


def grad_scaler():
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scaler = torch.amp.GradScaler("cpu", init_scale=8.0, growth_interval=2)
    for k in range(6):
        note_model("Net", k, model)
        x, y = data()
        x[0, 0] = float("inf") if k == 3 else 0.0
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        note_true(model, lambda m, x=x, y=y: F.cross_entropy(m(x), y), k)
        note("Loss_output_0", k, loss)
        scaler.scale(loss).backward()
        if k % 2:
            scaler.unscale_(optimizer)
            nn.utils.clip_grad_norm_(model.parameters(), 0.01)
        scaler.step(optimizer)
        scaler.update()
        print(scaler.get_scale())
    return [model], 6, 0


def grad_scaler_accumulation():
    model = Net()
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.1, fused=True)
    scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
    criterion = nn.CrossEntropyLoss()
    for k in range(6):
        sums = {} if k % 3 == 0 else sums  # noqa: F821
        x, y = data()
        loss = criterion(model(x), y) / 3
        note_true(model, lambda m, x=x, y=y: criterion(m(x), y) / 3, k // 3, sums=sums)
        scaler.scale(loss).backward()
        if k % 3 == 2:
            scaler.step(optimizer)
            scaler.update()
            optimizer.zero_grad()
    return [model], 2, 0


def several_scalers():
    first, second = Net(), Critic()
    optimizers = [torch.optim.SGD(m.parameters(), lr=0.1) for m in (first, second)]
    scalers = [torch.amp.GradScaler("cpu", init_scale=s) for s in (4.0, 512.0)]
    for k in range(3):
        x, y = data()
        losses = [F.cross_entropy(first(x), y), second(x).square().mean()]
        note_true(first, lambda m, x=x, y=y: F.cross_entropy(m(x), y), k)
        note_true(second, lambda m, x=x: m(x).square().mean(), k, "Critic")
        note("Loss_output_0", k, losses[1])
        note("Loss_output_1", k, losses[0])
        scaled = [scaler.scale(loss) for scaler, loss in zip(scalers, losses, strict=True)]
        scaled[1].backward()
        scaled[0].backward()
        for scaler, optimizer in zip(scalers, optimizers, strict=True):
            scaler.step(optimizer)
            scaler.update()
            optimizer.zero_grad()
    return [first, second], 3, 0


def scaled_and_not():
    first, second = Net(), Critic()
    optimizers = [torch.optim.SGD(m.parameters(), lr=0.1) for m in (first, second)]
    scaler = torch.amp.GradScaler("cpu", init_scale=64.0)
    for k in range(2):
        x, y = data()
        out, score = first(x), second(x)
        note_true(first, lambda m, x=x, y=y: F.cross_entropy(m(x), y) + m(x).square().mean(), k)
        note_true(second, lambda m, x=x: m(x).square().mean(), k, "Critic")
        note("Loss_output_0", k, F.cross_entropy(out, y) + out.square().mean())
        (scaler.scale(F.cross_entropy(out, y)) + scaler.scale(out.square().mean())).backward()
        score.square().mean().backward()
        scaler.step(optimizers[0])
        optimizers[1].step()
        scaler.update()
        for optimizer in optimizers:
            optimizer.zero_grad()
    return [first, second], 2, 0


def lbfgs():
    model = Net()
    optimizer = torch.optim.LBFGS(model.parameters(), lr=0.1, max_iter=3)
    x, y = data()
    for k in range(2):

        def closure(k=k):
            optimizer.zero_grad()
            loss = F.cross_entropy(model(x), y)
            note_true(model, lambda m: F.cross_entropy(m(x), y), k)
            loss.backward()
            return loss

        optimizer.step(closure)
    return [model], 2, 0


def closure_that_assigns():
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for k in range(2):
        x, y = data()

        def closure(x=x, y=y, k=k):
            loss = F.cross_entropy(model(x), y)
            note_true(model, lambda m: F.cross_entropy(m(x), y), k)
            for p, g in zip(model.parameters(), torch.autograd.grad(loss, model.parameters()), strict=True):
                p.grad = g
            return loss

        optimizer.step(closure)
    return [model], 2, 0


def optimizer_in_backward():
    model = Net()
    optimizers = {p: torch.optim.SGD([p], lr=0.1) for p in model.parameters()}

    def step(parameter):
        optimizers[parameter].step()
        parameter.grad = None

    handles = [parameter.register_post_accumulate_grad_hook(step) for parameter in model.parameters()]
    for k in range(3):
        x, y = data()
        note_true(model, lambda m, x=x, y=y: F.cross_entropy(m(x), y), k)
        F.cross_entropy(model(x), y).backward()
    for handle in handles:
        handle.remove()
    return [model], 3, 0


def assigned_gradients():
    model = Net()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.1, fused=True)
    scaler = torch.amp.GradScaler("cpu", init_scale=32.0)
    for k in range(4):
        x, y = data()
        loss = F.cross_entropy(model(x), y)
        note_true(model, lambda m, x=x, y=y: F.cross_entropy(m(x), y), k)
        scaled = k >= 2
        if scaled:
            loss = scaler.scale(loss)
        for p, g in zip(model.parameters(), torch.autograd.grad(loss, model.parameters()), strict=True):
            p.grad = g
        if scaled:
            scaler.step(optimizer)
            scaler.update()
        else:
            optimizer.step()
    return [model], 4, 0


def updates_by_hand():
    model = Net()
    torch.optim.SGD(model.parameters(), lr=0.1)
    for k in range(3):
        x, y = data()
        parameters = dict(model.named_parameters())
        loss = F.cross_entropy(model(x), y)
        note_true(model, lambda m, x=x, y=y: F.cross_entropy(m(x), y), k)
        gradients = torch.autograd.grad(loss, parameters.values())
        with torch.no_grad():
            for parameter, gradient in zip(parameters.values(), gradients, strict=True):
                parameter -= gradient.mul_(0.1)
    return [model], 3, 0


def diagnosed_and_trained():
    model = Net()
    optimizer = torch.optim.SGD([model.fc2.weight, model.fc2.bias], lr=0.1)
    for k in range(2):
        x, y = data()
        model.fc1.requires_grad_(True)
        out = model(x)
        torch.autograd.grad(out.sum(), model.fc1.parameters(), retain_graph=True)
        loss = F.cross_entropy(out, y)
        gradients = torch.autograd.grad(loss, [model.fc2.weight, model.fc2.bias], retain_graph=True)
        note("gradient/Net_fc2.weight", k, gradients[0])
        note("gradient/Net_fc2.bias", k, gradients[1])
        optimizer.zero_grad()
        loss.backward(inputs=[model.fc2.weight, model.fc2.bias])
        optimizer.step()
    return [model], 2, 0


SCENES = [grad_scaler, grad_scaler_accumulation, several_scalers, scaled_and_not, lbfgs, closure_that_assigns]
SCENES += [optimizer_in_backward, assigned_gradients, updates_by_hand, diagnosed_and_trained]

if __name__ == "__main__":
    play(SCENES)
