"""PyTorch training loops that compile; knows nothing of the agent. Prints what was compiled.

usage: python compile_scenes.py [NOTES.npz]
"""

import copy
import logging

import torch
import torch._dynamo
import torch.nn.functional as F
from notes import note, note_model, noting, play
from torch import nn
from torch._dynamo.utils import counters

BACKEND = "aot_eager"
torch._logging.set_logs(dynamo=logging.ERROR)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(5, 4)
        self.bn = nn.BatchNorm1d(4)
        self.relu = nn.ReLU(inplace=True)
        self.drop = nn.Dropout(0.4)
        self.fc2 = nn.Linear(4, 3)

    def forward(self, x):
        return self.fc2(self.drop(self.relu(self.bn(self.fc1(x)))))


class Noisy(Net):
    def __init__(self):
        super().__init__()
        self.calls = 0

    def forward(self, x):
        self.calls += 1
        print("forward", self.calls)
        return super().forward(x)


class Counting(Net):
    def __init__(self):
        super().__init__()
        self.calls = 0

    def forward(self, x):
        self.calls += 1
        return super().forward(x)


class Branching(Net):
    def forward(self, x):
        if not torch.compiler.is_compiling():
            print("not compiled")
            return self.fc2(self.fc1(x))
        return super().forward(x)


class Overwriting(Net):
    def forward(self, x):
        return super().forward(x.mul_(2))


class Remembering(Net):
    def __init__(self):
        super().__init__()
        self.seen = [torch.zeros(4)]

    def forward(self, x):
        hidden = self.fc1(x)
        self.seen[0].add_(hidden.detach().mean(0))
        return self.fc2(self.relu(hidden))


class Part(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(5, 4)
        self.inner = torch.compile(Counterless(), backend=BACKEND, fullgraph=True)
        self.other = Counterless()
        self.other.compile(backend=BACKEND, fullgraph=True)
        self.last = nn.Linear(4, 3)

    def forward(self, x):
        return self.last(self.other(self.inner(self.first(x))))


class Counterless(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(4, 4)
        self.d = nn.Dropout(0.4)

    def forward(self, x):
        return self.d(self.a(x).relu())


def note_layers(model, step, x, mode="TRAIN"):
    """Note what the layers of a copy of a model give for an input."""
    if not noting:
        return
    twin = copy.deepcopy(model)

    def noted(name):
        return lambda layer, args, out: note(f"{name}_output_0", step, out.clone(), mode)

    with torch.random.fork_rng(), torch.no_grad():
        for name, layer in twin.named_modules():
            if name:
                layer.register_forward_hook(noted(name))
        twin.forward(x.clone())


def train(model, call, steps=4, evaluated=2, loss_function=F.cross_entropy, step=None, layers=True, name="Net"):
    """Train, note everything, and print what has been compiled on the way."""
    torch._dynamo.reset()
    counters.clear()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    compiles_step = step is not None
    step = step(optimizer) if compiles_step else optimizer.step
    for k in range(steps):
        x, y = torch.randn(8 + k, 5) if name == "Dynamic" else torch.randn(8, 5), torch.randint(0, 3, (8,))
        y = torch.arange(len(x)) % 3
        note_model(name, k, model)
        if layers:
            note_layers(model, k, x)
        optimizer.zero_grad()
        loss = loss_function(call(x), y)
        loss.backward()
        note(f"{name}_input_0", k, x)
        note_model(name, k, model, gradients=True)
        step()
    model.eval()
    for k in range(evaluated):
        x = torch.randn(8, 5)
        if layers:
            note_layers(model, k, x, "EVAL")
        with torch.no_grad():
            note(f"{name}_output_0", k, call(x), "EVAL")
    # How many functions of an optimizer are compiled depends on whether any optimizer has hooks.
    report(frames=not compiles_step)
    return [model], steps, evaluated


def report(frames=True):
    print(counters["stats"].get("unique_graphs", 0), sum(counters["graph_break"].values()))
    if frames:
        print(dict(counters["frames"]))


def compiled_model():
    model = Net()
    return train(model, torch.compile(model, backend=BACKEND, fullgraph=True))


def compiled_in_place():
    model = Net()
    model.compile(backend=BACKEND, fullgraph=True)
    return train(model, model)


def compiled_parts():
    model = Part()
    return train(model, model, layers=False, name="Part")


class Dynamic(Net):
    pass


def dynamic_shapes():
    model = Dynamic()
    return train(model, torch.compile(model, backend=BACKEND, fullgraph=True, dynamic=True), name="Dynamic")


def compiled_losses():
    model, criterion = Net(), nn.CrossEntropyLoss()
    compiled = torch.compile(lambda out, y: criterion(out, y) + F.cross_entropy(out, y), backend=BACKEND)
    return train(model, model, loss_function=compiled)


def compiled_optimizer():
    model = Net()
    return train(model, model, step=lambda optimizer: torch.compile(lambda: optimizer.step(), backend=BACKEND))


def no_recompiling_at_all():
    model = Net()
    compiled = torch.compile(model, backend=BACKEND, fullgraph=True)
    with torch._dynamo.config.patch(error_on_recompile=True):
        return train(model, compiled, steps=6, evaluated=0)


def prints_and_counts():
    model = Noisy()
    result = train(model, torch.compile(model, backend=BACKEND), layers=False, name="Noisy")
    print(model.calls)
    return result


def counts():
    model = Counting()
    result = train(model, torch.compile(model, backend=BACKEND), layers=False, name="Counting")
    print(model.calls)
    return result


def asks_whether_it_is_compiled():
    model = Branching()
    return train(model, torch.compile(model, backend=BACKEND), layers=False, name="Branching")


def overwrites_its_input():
    model = Overwriting()
    x = torch.ones(4, 5)
    compiled = torch.compile(model, backend=BACKEND)
    for _ in range(3):
        compiled(x).sum().backward()
    print(x.sum().item())
    torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(3):
        compiled(x).sum().backward()
    print(x.sum().item())
    # Each pass is a step; the first one is not saved.
    return [model], 6, 0


def remembers():
    model = Remembering()
    result = train(model, torch.compile(model, backend=BACKEND), layers=False, name="Remembering")
    print(model.seen[0].tolist())
    return result


class Adversary(nn.Linear):
    def forward(self, x):
        return super().forward(x).tanh()


class Maker(Adversary):
    pass


def compiled_adversaries():
    torch._dynamo.reset()
    counters.clear()
    d, g = Adversary(5, 1), Maker(3, 5)
    optimizers = [torch.optim.SGD(model.parameters(), lr=0.1) for model in (d, g)]
    judge, make = (torch.compile(model, backend=BACKEND, fullgraph=True) for model in (d, g))
    for k in range(3):
        fake = make(torch.randn(8, 3))
        judge(fake.detach()).mean().backward()
        note("gradient/Adversary_weight", k, d.weight.grad)
        optimizers[0].step()
        optimizers[0].zero_grad()
        judge(fake).mean().backward()
        note("gradient/Maker_weight", k, g.weight.grad)
        optimizers[1].step()
        optimizers[1].zero_grad()
    report()
    return [d, g], 3, 0


SCENES = [compiled_adversaries]
SCENES += [compiled_model, compiled_in_place, compiled_parts, dynamic_shapes, compiled_losses, compiled_optimizer]
SCENES += [no_recompiling_at_all, prints_and_counts, counts, asks_whether_it_is_compiled, overwrites_its_input]
SCENES += [remembers]

if __name__ == "__main__":
    play(SCENES)
