"""Loops that differ in what they count as a step, and in where their gradients come from."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.nn import functional as F

from benchmarks.scenarios.scene import Embedded, Losses, Net, Scene, batch, note, scene

HUGE = 2.0**127


@scene("a plain loop")
def plain(folder: Path) -> Scene:
    """Train a net."""
    model, loss_fn = Net(), nn.CrossEntropyLoss()
    optimizer = torch.optim.Adam(model.parameters())

    def step() -> Losses:
        x, y = batch()
        optimizer.zero_grad()
        loss = loss_fn(model(x), y)
        loss.backward()
        optimizer.step()
        return [loss]

    return Scene(step, {"Net": model})


@scene("… with an evaluation after each step")
def evaluated(folder: Path) -> Scene:
    """Train a net and evaluate it in between."""
    training, loss_fn = plain(folder), nn.CrossEntropyLoss()
    model = training.models["Net"]

    def step() -> Losses:
        losses = training.step()
        model.eval()
        with torch.no_grad():
            x, y = batch()
            losses.append(loss_fn(model(x), y))
        model.train()
        return losses

    return Scene(step, training.models)


@scene("… with a functional loss")
def functional(folder: Path) -> Scene:
    """Train with a loss that is no module."""
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def step() -> Losses:
        x, y = batch()
        optimizer.zero_grad()
        loss: Any = F.cross_entropy(model(x), y, label_smoothing=0.1)
        loss.backward()
        optimizer.step()
        return [loss]

    return Scene(step, {"Net": model})


@scene("… with gradients clipped")
def clipped(folder: Path) -> Scene:
    """Train with clipping; what is saved is what was there before it."""
    model, loss_fn = Net(), nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    made = Scene(lambda: [], {"Net": model})

    def step() -> Losses:
        x, y = batch()
        optimizer.zero_grad()
        loss = loss_fn(model(x), y)
        loss.backward()
        note(made.gradients, "Net", model)
        nn.utils.clip_grad_norm_(model.parameters(), 0.01)
        optimizer.step()
        return [loss]

    made.step = step
    return made


@scene("gradients accumulated over 4 batches")
def accumulation(folder: Path) -> Scene:
    """Take four batches for one step of the optimizer."""
    model, loss_fn = Net(), nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def step() -> Losses:
        optimizer.zero_grad()
        losses = []
        for _ in range(4):
            x, y = batch()
            losses.append(loss_fn(model(x), y))
            (losses[-1] / 4).backward()
        optimizer.step()
        return losses

    return Scene(step, {"Net": model})


@scene("two optimizers for one net")
def two_optimizers(folder: Path) -> Scene:
    """Train each layer with an optimizer of its own."""
    model, loss_fn = Net(), nn.CrossEntropyLoss()
    optimizers = [torch.optim.SGD(model.fc1.parameters(), lr=0.1), torch.optim.Adam(model.fc2.parameters())]

    def step() -> Losses:
        x, y = batch()
        for optimizer in optimizers:
            optimizer.zero_grad()
        loss = loss_fn(model(x), y)
        loss.backward()
        for optimizer in optimizers:
            optimizer.step()
        return [loss]

    return Scene(step, {"Net": model})


@scene("LBFGS, up to 3 closures a step")
def lbfgs(folder: Path) -> Scene:
    """Train with an optimizer that calls the net itself."""
    model, loss_fn = Net(), nn.CrossEntropyLoss()
    optimizer: Any = torch.optim.LBFGS(model.parameters(), lr=0.1, max_iter=3)
    x, y = batch()

    def step() -> Losses:
        losses = []

        def closure() -> torch.Tensor:
            optimizer.zero_grad()
            losses.append(loss_fn(model(x), y))
            losses[-1].backward()
            found: torch.Tensor = losses[-1]
            return found

        optimizer.step(closure)
        return losses

    return Scene(step, {"Net": model})


@scene("GradScaler, every second step overflows")
def overflowing(folder: Path) -> Scene:
    """Scale the loss, in every second step so far that the scaler leaves the optimizer's step out."""
    model, loss_fn = Net(), nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**16)
    count = 0

    def step() -> Losses:
        nonlocal count
        count += 1
        x, y = batch()
        optimizer.zero_grad()
        loss = loss_fn(model(x), y)
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        scaler.step(optimizer)
        scaler.update(HUGE if count % 2 else 2.0**16)
        return [loss]

    return Scene(step, {"Net": model})


@scene("bfloat16 autocast")
def autocast(folder: Path) -> Scene:
    """Compute in bfloat16 what may be, with weights in float32."""
    model, loss_fn = Net(), nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def step() -> Losses:
        x, y = batch()
        optimizer.zero_grad()
        with torch.autocast("cpu", torch.bfloat16):
            loss = loss_fn(model(x), y)
        loss.backward()
        optimizer.step()
        return [loss]

    return Scene(step, {"Net": model})


@scene("weights in bfloat16")
def half(folder: Path) -> Scene:
    """Train in bfloat16 throughout."""
    model, loss_fn = Net().bfloat16(), nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def step() -> Losses:
        x, y = batch()
        optimizer.zero_grad()
        loss = loss_fn(model(x.bfloat16()), y)
        loss.backward()
        optimizer.step()
        return [loss]

    return Scene(step, {"Net": model})


@scene("sparse gradients of an embedding")
def sparse(folder: Path) -> Scene:
    """Train an embedding of which few rows get a gradient."""
    model, loss_fn = Embedded(sparse=True), nn.CrossEntropyLoss()
    optimizers = [
        torch.optim.SparseAdam(model.words.parameters()),
        torch.optim.Adam(model.head.parameters()),
    ]

    def step() -> Losses:
        words = torch.randint(0, 100, (16, 7))
        for optimizer in optimizers:
            optimizer.zero_grad()
        loss = loss_fn(model(words), batch()[1])
        loss.backward()
        for optimizer in optimizers:
            optimizer.step()
        return [loss]

    return Scene(step, {"Embedded": model})


@scene("optimizers that step inside of backward")
def in_backward(folder: Path) -> Scene:
    """Update each parameter as soon as its gradient is there, and free the gradient."""
    model, loss_fn = Net(), nn.CrossEntropyLoss()
    made = Scene(lambda: [], {"Net": model})

    def arm(name: str, parameter: nn.Parameter) -> None:
        optimizer = torch.optim.SGD([parameter], lr=0.1)

        def update(tensor: torch.Tensor) -> None:
            assert tensor.grad is not None
            made.gradients["Net", name] = tensor.grad.clone()
            optimizer.step()
            optimizer.zero_grad()

        tensor: Any = parameter
        tensor.register_post_accumulate_grad_hook(update)

    for name, parameter in model.named_parameters():
        arm(name, parameter)

    def step() -> Losses:
        x, y = batch()
        loss = loss_fn(model(x), y)
        loss.backward()
        return [loss]

    made.step = step
    return made


@scene("autograd.grad, then an optimizer")
def by_grad(folder: Path) -> Scene:
    """Take gradients without ``backward`` and hand them to the optimizer."""
    model, loss_fn = Net(), nn.CrossEntropyLoss()
    parameters = list(model.parameters())
    optimizer = torch.optim.SGD(parameters, lr=0.1)

    def step() -> Losses:
        x, y = batch()
        loss = loss_fn(model(x), y)
        for parameter, gradient in zip(parameters, torch.autograd.grad(loss, parameters), strict=True):
            parameter.grad = gradient
        optimizer.step()
        return [loss]

    return Scene(step, {"Net": model})


@scene("updates by hand, without an optimizer")
def by_hand(folder: Path) -> Scene:
    """Train with ``p -= lr * p.grad``."""
    model, loss_fn = Net(), nn.CrossEntropyLoss()

    def step() -> Losses:
        x, y = batch()
        model.zero_grad()
        loss = loss_fn(model(x), y)
        loss.backward()
        with torch.no_grad():
            for parameter in model.parameters():
                assert parameter.grad is not None
                parameter.sub_(0.1 * parameter.grad)
        return [loss]

    return Scene(step, {"Net": model})
