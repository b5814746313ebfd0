"""Training loops in which it takes a look to tell what the model is; knows nothing of the agent.

usage: python model_scenes.py [NOTES.npz]
"""

import copy
import gc

import torch
import torch.nn.functional as F
from nets import Encoder, Net, batch, sgd, train_batch
from notes import note, note_model, play
from torch import nn
from torch.optim.swa_utils import AveragedModel


class D(nn.Linear):
    pass


class G(nn.Linear):
    pass


def adversaries():
    # One step is a turn of each.
    d, g = D(5, 1), G(3, 5)
    od, og = sgd(d), sgd(g)
    for k in range(3):
        note_model("D", k, d)
        note_model("G", k, g)
        fake = g(torch.randn(6, 3))
        note("G_output_0", k, fake)
        od.zero_grad()
        loss = d(fake.detach()).mean() - d(torch.randn(6, 5)).mean()
        note("Loss_output_0", k, loss)
        loss.backward()
        note_model("D", k, d, gradients=True)
        od.step()
        og.zero_grad()
        loss = -d(fake).mean()
        note("Loss_output_1", k, loss)
        loss.backward()
        note_model("G", k, g, gradients=True)
        og.step()
    return [d, g], 3, 0


def critics_and_generator():
    d, g = D(5, 1), G(3, 5)
    od, og = sgd(d), sgd(g)
    for k in range(3):
        note_model("D", k, d)
        note_model("G", k, g)
        for j in range(5):
            od.zero_grad()
            fake = g(torch.randn(6, 3)).detach()
            loss = d(fake).mean() - d(torch.randn(6, 5)).mean()
            note(f"Loss_output_{j}", k, loss)
            loss.backward()
            if j == 0:
                # The gradients that the first update uses.
                note_model("D", k, d, gradients=True)
            od.step()
        og.zero_grad()
        loss = -d(g(torch.randn(6, 3))).mean()
        note("Loss_output_5", k, loss)
        loss.backward()
        note_model("G", k, g, gradients=True)
        og.step()
    return [d, g], 3, 0


def generator_that_waits():
    # The generator is first called long after the optimizers were made.
    d, g = D(5, 1), G(3, 5)
    od, og = sgd(d), sgd(g)
    for _ in range(120):
        od.zero_grad()
        d(torch.randn(2, 5)).mean().backward()
        od.step()
    for k in range(120, 122):
        og.zero_grad()
        note_model("G", k, g)
        d(g(torch.randn(6, 3))).mean().backward()
        note_model("G", k, g, gradients=True)
        og.step()
    return [d, g], 122, 0


def copies_of_the_model():
    model = Net()
    teacher = copy.deepcopy(model).eval().requires_grad_(False)
    optimizer = sgd(model)
    average = AveragedModel(model)
    ema = copy.deepcopy(model)
    for k in range(3):
        x, _ = batch()
        note_model("Net", k, model)
        with torch.no_grad():
            target = teacher(x)
            ema(x)
        optimizer.zero_grad()
        loss = F.mse_loss(model(x), target)
        loss.backward()
        note_model("Net", k, model, gradients=True)
        optimizer.step()
        average.update_parameters(model)
        with torch.no_grad():
            for p, q in zip(ema.parameters(), model.parameters(), strict=True):
                p.lerp_(q, 0.1)
            average(x)
    return [model, ema, average], 3, 0


def frozen_backbone():
    model = Net()
    model.fc1.requires_grad_(False)
    optimizer = sgd(model.fc2)
    for k in range(3):
        train_batch(model, optimizer, k)
    return [model], 3, 0


def unfrozen_later():
    model = Net()
    model(batch()[0])
    optimizer = sgd(model.fc2)
    train_batch(model, optimizer, 0)
    optimizer.add_param_group({"params": model.fc1.parameters(), "lr": 0.01})
    train_batch(model, optimizer, 1)
    return [model], 2, 0


def two_of_one_class():
    first, second = Net(), Net()
    optimizer = sgd(first, second)
    for k in range(3):
        x, y = batch()
        note_model("Net", k, first)
        note_model("Net_2", k, second)
        optimizer.zero_grad()
        F.cross_entropy(first(x) + second(x), y).backward()
        note_model("Net", k, first, gradients=True)
        note_model("Net_2", k, second, gradients=True)
        optimizer.step()
    return [first, second], 3, 0


def one_after_the_other():
    # A search: the loop variable keeps each model until the next one is there.
    for trial in range(3):
        model = Net(width=4 + trial)
        optimizer = sgd(model)
        for k in range(2):
            train_batch(model, optimizer, 2 * trial + k)
    return [model], 6, 0


def one_after_the_other_kept():
    models = []
    for trial in range(3):
        model = Net(width=4 + trial)
        models.append(model)
        optimizer = sgd(model)
        for k in range(2):
            train_batch(model, optimizer, 2 * trial + k, "Net" if trial == 0 else f"Net_{trial + 1}")
    return models, 6, 0


def one_after_the_other_in_cycles():
    # Trainers wrap a model's forward like this; such a model is gone once the garbage collector has run, not before.
    gc.disable()
    for k, name in enumerate(("Net", "Net_2", "Net")):
        model = Net()
        model.forward = model.forward
        optimizer = sgd(model)
        train_batch(model, optimizer, k, name)
        if k == 1:
            del model, optimizer
            gc.collect()
    gc.enable()
    return [model], 3, 0


def all_made_before_the_first_trains():
    pairs = [(model, sgd(model)) for model in (Net(4), Net(5))]
    first, optimizer = pairs.pop(0)
    train_batch(first, optimizer, 0)
    del first, optimizer
    train_batch(*pairs[0], 1)
    return [pairs[0][0]], 2, 0


class Transform(nn.Module):
    def forward(self, x):
        return x * 1.0


def many_other_modules_first():
    model, transform = Net(), Transform()
    optimizer = sgd(model)
    for _ in range(300):
        transform(torch.ones(2))
    for k in range(2):
        train_batch(model, optimizer, k)
    return [model], 2, 0


def lazy_layers():
    model = nn.Sequential(nn.LazyLinear(4), nn.ReLU(), nn.LazyLinear(3))
    optimizer = sgd(model)
    for k in range(3):
        x, y = batch()
        if k:
            note_model("Sequential", k, model)
        optimizer.zero_grad()
        out = model(x)
        note_model("Sequential", k, model)
        F.cross_entropy(out, y).backward()
        note_model("Sequential", k, model, gradients=True)
        optimizer.step()
    return [model], 3, 0


def parametrized():
    model = Net()
    nn.utils.parametrizations.weight_norm(model.fc1)
    optimizer = sgd(model)
    for k in range(2):
        train_batch(model, optimizer, k)
    single = nn.utils.parametrizations.weight_norm(Encoder(5, 3))
    optimizer = sgd(single)
    train_batch(single, optimizer, 2, "Encoder")
    return [model, single], 3, 0


def replaced_head():
    model = Net()
    optimizer = sgd(model)
    train_batch(model, optimizer, 0)
    model.fc2 = nn.Linear(4, 3)
    optimizer = sgd(model)
    train_batch(model, optimizer, 1)
    return [model], 2, 0


SCENES = [
    adversaries,
    critics_and_generator,
    generator_that_waits,
    copies_of_the_model,
    frozen_backbone,
    unfrozen_later,
    two_of_one_class,
    one_after_the_other,
    one_after_the_other_kept,
    one_after_the_other_in_cycles,
    all_made_before_the_first_trains,
    many_other_modules_first,
    lazy_layers,
    parametrized,
    replaced_head,
]

if __name__ == "__main__":
    play(SCENES)
