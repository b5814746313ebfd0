"""Networks of a library that has its own base class, whose call takes lists and returns named results."""

import inspect
from collections import OrderedDict

import torch
from torch import nn


class Component(nn.Module):
    """A part of a pipeline: called with plain lists or tensors, it returns a dictionary."""

    registry = OrderedDict()

    def __init_subclass__(cls, **kwargs):
        super().__init_subclass__(**kwargs)
        Component.registry[cls.__name__.lower()] = cls

    def __call__(self, *inputs, **kwargs):
        tensors = [torch.as_tensor(each, dtype=torch.float32) for each in inputs]
        names = list(inspect.signature(self.forward).parameters)
        assert len(tensors) <= len(names), names
        result = super().__call__(*tensors, **kwargs)
        return result if isinstance(result, dict) else {"output": result}

    @property
    def n_parameters(self):
        return sum(p.numel() for p in self.parameters() if p.requires_grad)


class Encoder(Component):
    def __init__(self, size):
        super().__init__()
        self.lin = nn.Linear(4, size)
        self.scale = nn.Parameter(torch.ones(size))

    def forward(self, x):
        return {"mean": self.lin(x) * self.scale, "norm": x.norm(dim=-1)}


class Head(Component):
    def __init__(self, size):
        super().__init__()
        self.out = nn.Linear(size + 1, 1)

    def forward(self, hidden, norm):
        return self.out(torch.cat([hidden.tanh(), norm[:, None]], -1)).squeeze(-1)


class Pipeline(Component):
    def __init__(self, config):
        super().__init__()
        for name, arguments in config.items():
            setattr(self, name, Component.registry[name](**arguments))

    def forward(self, x):
        found = self.encoder(x)
        return {"prediction": self.head(found["mean"], found["norm"])["output"], **found}


def batches(n, size, seed):
    generator = torch.Generator().manual_seed(seed)
    for _ in range(n):
        rows = torch.randn(size, 4, generator=generator)
        yield rows.tolist(), (rows[:, 0] * 2 - rows[:, 1].abs()).tolist()


if __name__ == "__main__":
    torch.manual_seed(14)
    model = Pipeline({"encoder": {"size": 6}, "head": {"size": 6}})
    print(model)
    print(model.n_parameters, "parameters")
    criterion = nn.MSELoss()
    optimizer = torch.optim.Adagrad(model.parameters(), lr=0.1)
    for i, (x, y) in enumerate(batches(20, 24, 0)):
        optimizer.zero_grad()
        loss = criterion(model(x)["prediction"], torch.tensor(y))
        loss.backward()
        optimizer.step()
        print(f"{i:3d} {loss.item():.6f}")
    model.eval()
    with torch.no_grad():
        worst = max(criterion(model(x)["prediction"], torch.tensor(y)).item() for x, y in batches(3, 24, 1))
    print(f"worst {worst:.6f}")
    torch.save(model.state_dict(), "pipeline.bin")
    print(torch.rand(1).item())
