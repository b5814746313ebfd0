"""Trainings with PyTorch in which nothing is wrong, though a careless rule finds something.

Each is a function that trains for ``STEPS`` steps or more. It is handed ``capture``, which is told the models that are
trained before the first step, and returns the hook.
"""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional

from smd_agent.core.modes import ModeKeys

STEPS = 30
TRAININGS = {}


def training(function):
    """Have a function be one of the trainings."""
    TRAININGS[function.__name__] = function
    return function


def batches(features=12, classes=4, size=16, count=STEPS):
    """Different batches of one problem that can be learned."""
    truth = torch.randn(features, classes)
    for _ in range(count):
        x = torch.randn(size, features)
        yield x, (x @ truth).argmax(1)


def mlp(features=12, classes=4):
    return nn.Sequential(nn.Linear(features, 24), nn.ReLU(), nn.Linear(24, classes))


def train(model, optimizer, data, loss=functional.cross_entropy, schedule=None):
    """A plain loop."""
    for x, y in data:
        optimizer.zero_grad()
        loss(model(x), y).backward()
        optimizer.step()
        if schedule is not None:
            schedule.step()


@training
def sgd(capture):
    model = mlp()
    capture(model)
    train(model, torch.optim.SGD(model.parameters(), 0.1, momentum=0.9), batches())


@training
def adamw_loss_module(capture):
    model = mlp()
    capture(model)
    train(model, torch.optim.AdamW(model.parameters(), 3e-3), batches(), nn.CrossEntropyLoss())


@training
def epochs_without_shuffling(capture):
    model, data = mlp(), [*batches(count=4)]
    capture(model)
    train(model, torch.optim.Adam(model.parameters(), 3e-3), data * 10)


@training
def until_it_is_learned(capture):
    """The loss goes to 0, and gradients with it."""
    model, data = mlp(), [*batches(count=3)]
    capture(model)
    train(model, torch.optim.Adam(model.parameters(), 2e-2), data * 100)


@training
def frozen_backbone(capture):
    model = nn.Sequential(nn.Linear(12, 24), nn.ReLU(), nn.BatchNorm1d(24), nn.Linear(24, 4))
    for layer in model[:3]:
        layer.requires_grad_(False)
    model[2].eval()
    capture(model)
    train(model, torch.optim.AdamW(model[3].parameters(), 1e-2), batches())


@training
def frozen_by_a_rate_of_0(capture):
    model = mlp()
    capture(model)
    groups = [{"params": model[0].parameters(), "lr": 0.0}, {"params": model[2].parameters()}]
    train(model, torch.optim.SGD(groups, 0.1), batches())


@training
def gradual_unfreezing(capture):
    """The first layer has gradients before the optimizer has it."""
    model = mlp()
    capture(model)
    optimizer = torch.optim.Adam(model[2].parameters(), 1e-2)
    train(model, optimizer, batches(count=10))
    optimizer.add_param_group({"params": model[0].parameters()})
    train(model, optimizer, batches(count=20))


@training
def bias_before_normalisation(capture):
    """Its gradient is rounding, and SGD does not move it by that."""
    model = nn.Sequential(
        nn.Conv2d(1, 8, 3),
        nn.BatchNorm2d(8),
        nn.ReLU(),
        nn.Conv2d(8, 8, 3),
        nn.BatchNorm2d(8),
        nn.Flatten(),
        nn.Linear(128, 4),
    )
    capture(model)
    data = ((x[:, :64].reshape(-1, 1, 8, 8), y) for x, y in batches(features=64))
    train(model, torch.optim.SGD(model.parameters(), 0.05), data)


@training
def residual_from_zero(capture):
    """The last layer of each branch begins at 0, so the others have no gradient in the first step."""

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = nn.Linear(12, 12), nn.Linear(12, 12)
            nn.init.zeros_(self.b.weight)

        def forward(self, x):
            return x + self.b(torch.relu(self.a(x)))

    model = nn.Sequential(Block(), Block(), Block(), nn.Linear(12, 4))
    capture(model)
    train(model, torch.optim.Adam(model.parameters(), 1e-3), batches())


@training
def gan(capture):
    """What one of them wins, the other loses: its loss rises."""
    makes, judges = (
        nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 2)),
        nn.Sequential(nn.Linear(2, 16), nn.LeakyReLU(0.2), nn.Linear(16, 1)),
    )
    capture(makes, judges)
    of_makes = torch.optim.Adam(makes.parameters(), 1e-3, betas=(0.5, 0.999))
    of_judges = torch.optim.Adam(judges.parameters(), 5e-3, betas=(0.5, 0.999))
    loss = nn.BCEWithLogitsLoss()
    for _ in range(STEPS):
        real, noise = torch.randn(16, 2) * 0.3 + 1, torch.randn(16, 4)
        of_judges.zero_grad()
        made = makes(noise)
        (loss(judges(real), torch.ones(16, 1)) + loss(judges(made.detach()), torch.zeros(16, 1))).backward()
        of_judges.step()
        of_makes.zero_grad()
        loss(judges(made), torch.ones(16, 1)).backward()
        of_makes.step()


@training
def accumulation(capture):
    model = mlp()
    capture(model)
    optimizer = torch.optim.Adam(model.parameters(), 3e-3)
    for number, (x, y) in enumerate(batches(count=4 * STEPS)):
        (functional.cross_entropy(model(x), y) / 4).backward()
        if number % 4 == 3:
            optimizer.step()
            optimizer.zero_grad()


@training
def tied_weights(capture):
    class Tied(nn.Module):
        def __init__(self):
            super().__init__()
            self.embedding, self.inner, self.head = (
                nn.Embedding(50, 16),
                nn.Linear(16, 16),
                nn.Linear(16, 50, bias=False),
            )
            self.head.weight = self.embedding.weight

        def forward(self, x):
            return self.head(torch.tanh(self.inner(self.embedding(x))))

    model = Tied()
    capture(model)
    data = ((tokens[:-1], tokens[1:]) for tokens in (torch.arange(33) % 7 + k % 5 for k in range(STEPS)))
    train(model, torch.optim.AdamW(model.parameters(), 3e-3), data)


@training
def large_embedding(capture):
    """Few of its rows have a gradient, and SGD moves only those."""

    class Words(nn.Module):
        def __init__(self):
            super().__init__()
            self.words, self.head = nn.Embedding(20_000, 8), nn.Linear(8, 4)

        def forward(self, x):
            return self.head(self.words(x).sum(1))

    model = Words()
    capture(model)
    # Of so large a tensor a part is looked at, in which none of these rows lies.
    data = ((torch.randint(17_950, 18_120, (16, 5)), torch.randint(0, 4, (16,))) for _ in range(STEPS))
    train(model, torch.optim.SGD(model.parameters(), 0.1), data)


@training
def warm_up_and_decay(capture):
    """The learning rate is 0 at the first step, and at the last one."""
    model = mlp()
    capture(model)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    last = STEPS - 1
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda k: min(k / 5, (last - k) / (last - 5)))
    train(model, optimizer, batches(), schedule=schedule)


@training
def masked_attention(capture):
    """A mask of minus infinity is among the values of the forward pass."""

    class Attention(nn.Module):
        def __init__(self):
            super().__init__()
            self.embedding, self.head = nn.Embedding(20, 16), nn.Linear(16, 20)
            self.query, self.key, self.value = (nn.Linear(16, 16) for _ in range(3))
            self.masked = nn.Identity()

        def forward(self, x):
            x = self.embedding(x)
            scores = self.query(x) @ self.key(x).transpose(1, 2) / 4
            hidden = torch.ones(scores.shape[1:], dtype=torch.bool).triu(1)
            scores = self.masked(scores.masked_fill(hidden, float("-inf")))
            return self.head(x + scores.softmax(-1) @ self.value(x)).flatten(0, 1)

    model = Attention()
    capture(model)
    data = ((x, (x + 1).flatten() % 20) for x in (torch.randint(0, 20, (8, 10)) for _ in range(STEPS)))
    train(model, torch.optim.AdamW(model.parameters(), 3e-3), data)


class Larger(nn.Module):
    """Makes the gradients of the next layer's weights as large as its inputs."""

    def forward(self, x):
        return x * 1e4


def large_gradients():
    model = nn.Sequential(Larger(), *mlp())
    with torch.no_grad():
        model[1].weight /= 1e4
    return model


@training
def overflow_of_a_scaled_loss(capture):
    """The first gradients overflow, so that a loss scaler passes over the update and scales less."""
    model = large_gradients()
    capture(model)
    optimizer, scale, overflown = torch.optim.SGD(model.parameters(), 1e-6), 2.0**124, 0
    for x, y in batches(count=2 * STEPS):
        optimizer.zero_grad()
        (functional.cross_entropy(model(x), y) * scale).backward()
        gradients = [parameter.grad for parameter in model.parameters()]
        if all(bool(gradient.isfinite().all()) for gradient in gradients):
            for gradient in gradients:
                gradient.div_(scale)
            optimizer.step()
        else:
            scale /= 8
            overflown += 1
    assert overflown > 1


@training
def recurrent(capture):
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner, self.head = nn.LSTM(6, 16, batch_first=True), nn.Linear(16, 4)

        def forward(self, x):
            return self.head(self.inner(x)[0][:, -1])

    model = Net()
    capture(model)
    truth = torch.randn(6, 4)
    data = ((x, (x.mean(1) @ truth).argmax(1)) for x in (torch.randn(16, 30, 6) for _ in range(STEPS)))
    train(model, torch.optim.Adam(model.parameters(), 3e-3), data)


@training
def regression_of_a_noisy_target(capture):
    """The loss stays as large as the noise."""
    model = nn.Linear(3, 1)
    capture(model)
    data = ((torch.randn(8, 3), torch.randn(8, 1) * 5) for _ in range(3 * STEPS))
    train(model, torch.optim.SGD(model.parameters(), 1e-3), data, functional.mse_loss)


@training
def all_data_in_one_batch(capture):
    model, (x, y) = mlp(), next(batches(size=64))
    capture(model)
    train(model, torch.optim.SGD(model.parameters(), 0.5), [(x, y)] * STEPS)


@training
def bfloat16_autocast(capture):
    model = mlp()
    capture(model)

    def loss(output, y):
        return functional.cross_entropy(output.float(), y)

    with torch.autocast("cpu", dtype=torch.bfloat16):
        train(model, torch.optim.AdamW(model.parameters(), 3e-3), batches(), loss)


@training
def low_rank_adapters(capture):
    """One factor begins at 0, so that the other has no gradient at first."""

    class Adapted(nn.Module):
        def __init__(self):
            super().__init__()
            self.base = mlp().requires_grad_(False)
            self.down, self.up = nn.Linear(12, 2, bias=False), nn.Linear(2, 4, bias=False)
            nn.init.zeros_(self.up.weight)

        def forward(self, x):
            return self.base(x) + self.up(self.down(x))

    model = Adapted()
    capture(model)
    train(model, torch.optim.AdamW([*model.down.parameters(), *model.up.parameters()], 3e-3), batches())


@training
def evaluation_in_between(capture):
    model = nn.Sequential(nn.Linear(12, 24), nn.ReLU(), nn.Dropout(0.2), nn.Linear(24, 4))
    hook = capture(model)
    optimizer, loss = torch.optim.Adam(model.parameters(), 3e-3), nn.CrossEntropyLoss()
    for _ in range(3):
        model.train()
        hook.set_mode(ModeKeys.TRAIN)
        train(model, optimizer, batches(count=10), loss)
        model.eval()
        hook.set_mode(ModeKeys.EVAL)
        with torch.no_grad():
            for x, y in batches(count=3):
                loss(model(x), y)


@training
def scaler_that_finds_its_scale(capture):
    """Updates are left out until the scale is small enough, and again where it is raised."""
    model = large_gradients()
    capture(model)
    optimizer = torch.optim.SGD(model.parameters(), 1e-6)
    scaler, skipped = torch.amp.GradScaler("cpu", init_scale=2.0**124, growth_interval=10), 0
    for x, y in batches(count=2 * STEPS):
        optimizer.zero_grad()
        scaler.scale(functional.cross_entropy(model(x), y)).backward()
        scaler.step(optimizer)
        before = scaler.get_scale()
        scaler.update()
        skipped += scaler.get_scale() < before
    assert skipped > 5
