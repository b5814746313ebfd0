"""PyTorch trainings whose parameters are not told by their names: what is trained, and what only looks like it.

usage: python roles.py; prints what a run with the agent must leave alike.
"""

import copy
import hashlib
import importlib
import sys
import tempfile
from pathlib import Path

import torch
from torch import nn

digest = hashlib.sha1()


def train(module, parameters, call, steps=3, before=lambda k: None):
    optimizer = torch.optim.SGD(parameters, lr=0.1)
    for k in range(steps):
        before(k)
        loss = call(torch.randn(8, 4))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    for value in module.state_dict().values():
        digest.update(value.numpy().tobytes())


class Norm(nn.Module):
    def __init__(self):
        super().__init__()
        self.gamma, self.beta = nn.Parameter(torch.ones(4)), nn.Parameter(torch.zeros(4))

    def forward(self, x):
        return x * self.gamma + self.beta


class OtherNames(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc, self.norm = nn.Linear(4, 4), Norm()
        self.cls_token, self.kernel = nn.Parameter(torch.zeros(1, 4)), nn.Parameter(torch.eye(4))
        self.b1, self.raw_noise = nn.Parameter(torch.zeros(4)), nn.Parameter(torch.tensor(0.5))

    def forward(self, x):
        return (self.norm(self.fc(x + self.cls_token)) @ self.kernel + self.b1).square().mean() * self.raw_noise


class Distilled(nn.Module):
    """Holds a copy whose values follow, a teacher that is only forgotten by the optimizer, and a frozen part."""

    def __init__(self):
        super().__init__()
        self.student, self.teacher = nn.Linear(4, 4), nn.Linear(4, 4)
        self.ema = copy.deepcopy(self.student).requires_grad_(False)
        self.frozen = nn.Linear(4, 4).requires_grad_(False)

    def forward(self, x):
        wanted = self.teacher(x).detach() + self.ema(x)
        return (self.student(self.frozen(x)) - wanted).square().mean()


class Later(nn.Module):
    """Its second part is trained from the second step on; its third by hand."""

    def __init__(self):
        super().__init__()
        self.first, self.second, self.third = nn.Linear(4, 4), nn.Linear(4, 4), nn.Linear(4, 4)
        self.second.requires_grad_(False)

    def forward(self, x):
        return self.third(self.second(self.first(x))).square().mean()


class WithOwnCall(nn.Module):
    def __call__(self, *args):
        return self.forward(*args)


class OwnCall(WithOwnCall):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 4)

    def forward(self, x):
        return self.fc(x).square().mean()


LIBRARY = """
from torch import nn

class PerSample(nn.Module):
    def __init__(self, module):
        super().__init__()
        self._module = module

    def forward(self, *args):
        return self._module(*args)
"""


class Private(nn.Module):
    """Holds one module too, but is the program's own."""

    def __init__(self):
        super().__init__()
        self._inner = nn.Linear(4, 4)

    def forward(self, x):
        return self._inner(x).square().mean()


class Turns(nn.Module):
    """Its parts take turns; the one whose turn it is not is frozen, as Lightning's ``toggle_optimizer`` has it."""

    def __init__(self):
        super().__init__()
        self.generator, self.critic, self.frozen = nn.Linear(4, 4), nn.Linear(4, 1), nn.Linear(4, 4)
        self.frozen.requires_grad_(False)

    def forward(self, x):
        return self.critic(self.generator(self.frozen(x))).mean()


def other_names():
    model = OtherNames()
    train(model, model.parameters(), model)


def distilled():
    model = Distilled()
    train(model, model.student.parameters(), model)


def later():
    model = Later()
    parts = [*model.first.parameters(), *model.second.parameters()]

    def by_hand(k):
        model.second.requires_grad_(k > 0)
        with torch.no_grad():
            for parameter in model.third.parameters():
                if parameter.grad is not None:
                    parameter -= 0.1 * parameter.grad
                    parameter.grad = None

    train(model, parts, model, before=by_hand)


def own_call():
    model = OwnCall()
    train(model, model.parameters(), model)


def wrapped_by_a_library():
    with tempfile.TemporaryDirectory() as folder:
        library = Path(folder) / "site-packages" / "wrapping_library.py"
        library.parent.mkdir()
        library.write_text(LIBRARY)
        sys.path.insert(0, str(library.parent))
        per_sample = importlib.import_module("wrapping_library").PerSample
        sys.path.pop(0)
    model = per_sample(Private())
    train(model, model.parameters(), model)


def turns():
    model = Turns()
    optimizers = [torch.optim.SGD(part.parameters(), lr=0.1) for part in (model.generator, model.critic)]
    optimizers[0].add_param_group({"params": [*model.frozen.parameters()]})
    for _ in range(3):
        for mine, other in ((0, 1), (1, 0)):
            parts = (model.generator, model.critic)
            parts[other].requires_grad_(False)
            model(torch.randn(5, 4)).backward()
            optimizers[mine].step()
            optimizers[mine].zero_grad()
            parts[other].requires_grad_(True)
    for parameter in model.parameters():
        digest.update(parameter.detach().numpy().tobytes())


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    for scene in (other_names, distilled, later, own_call, wrapped_by_a_library, turns):
        scene()
    print(digest.hexdigest())


main()
