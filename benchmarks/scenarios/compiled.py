"""Nets that are compiled, scripted, wrapped by a launcher's classes, or called without being called."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.fsdp import fully_shard
from torch.func import functional_call, grad_and_value
from torch.nn import functional as F

from benchmarks.scenarios.scene import Losses, Net, Scene, batch, note, scene


def loop(model: nn.Module, called: Callable[..., Any] | None = None) -> Scene:
    """Return a plain loop around a net, whose forward is what is called."""
    loss_fn = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    called = model if called is None else called

    def step() -> Losses:
        x, y = batch()
        optimizer.zero_grad()
        loss = loss_fn(called(x), y)
        loss.backward()
        optimizer.step()
        return [loss]

    return Scene(step, {"Net": model})


@scene("torch.compile(model)")
def compiled(folder: Path) -> Scene:
    """Train through the compiled wrapper of a net."""
    model = Net()
    return loop(model, torch.compile(model, backend="aot_eager", fullgraph=True))


@scene("model.compile()")
def compiled_in_place(folder: Path) -> Scene:
    """Train a net that has been compiled in place."""
    model = Net()
    model.compile(backend="aot_eager", fullgraph=True)
    return loop(model)


@scene("one layer compiled")
def compiled_layer(folder: Path) -> Scene:
    """Train a net of which one layer is compiled."""
    model = Net()
    model.fc1.compile(backend="aot_eager")
    return loop(model)


@scene("a step function compiled whole")
def compiled_step(folder: Path) -> Scene:
    """Compile forward, loss and backward as one function."""
    model, loss_fn = Net(), nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    @torch.compile(backend="aot_eager")
    def train(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        loss: Any = loss_fn(model(x), y)
        loss.backward()
        found: torch.Tensor = loss
        return found

    def step() -> Losses:
        optimizer.zero_grad()
        loss = train(*batch())
        optimizer.step()
        return [loss]

    return Scene(step, {"Net": model})


@scene("torch.jit.script(model)")
def scripted(folder: Path) -> Scene:
    """Train a scripted net."""
    return loop(torch.jit.script(Net()))


@scene("torch.func: grad of functional_call")
def transformed(folder: Path) -> Scene:
    """Differentiate a function of the parameters, and update them by hand."""
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    made = Scene(lambda: [], {"Net": model})

    def loss_of(parameters: dict[str, torch.Tensor], x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return F.cross_entropy(functional_call(model, parameters, (x,)), y)

    def step() -> Losses:
        x, y = batch()
        parameters = dict(model.named_parameters())
        gradients, loss = grad_and_value(loss_of)(
            {name: parameter.detach() for name, parameter in parameters.items()}, x, y
        )
        for name, parameter in parameters.items():
            parameter.grad = gradients[name]
        note(made.gradients, "Net", model)
        optimizer.step()
        return [loss]

    made.step = step
    return made


@scene("DataParallel")
def data_parallel(folder: Path) -> Scene:
    """Train through DataParallel, which on a machine without GPUs calls the net."""
    model = Net()
    return loop(model, nn.DataParallel(model))


@scene("DistributedDataParallel")
def distributed(folder: Path) -> Scene:
    """Train as the one rank of a job."""
    start_job(folder)
    model = Net()
    return loop(model, nn.parallel.DistributedDataParallel(model))


@scene("FSDP2: fully_shard")
def sharded(folder: Path) -> Scene:
    """Train a net in shards, all of which this rank holds."""
    start_job(folder)
    mesh = dist.device_mesh.init_device_mesh("cpu", (1,))
    model = Net()
    fully_shard(model.fc1, mesh=mesh)
    fully_shard(model, mesh=mesh)
    return loop(model)


def start_job(folder: Path) -> None:
    """Begin a distributed job of one process."""
    dist.init_process_group("gloo", init_method=f"file://{folder}/store", rank=0, world_size=1)
