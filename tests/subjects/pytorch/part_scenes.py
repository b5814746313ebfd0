"""Training loops of several models, parts of models and losses that are trained too; knows nothing of the agent.

usage: python part_scenes.py [NOTES.npz]
"""

import torch
import torch.nn.functional as F
from nets import Decoder, Encoder, Net, batch, sgd, train_batch
from notes import note, note_model, play
from torch import nn


class ArcFaceLoss(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(3, 3))

    def forward(self, x, y):
        return F.cross_entropy(F.linear(F.normalize(x), F.normalize(self.weight)), y)


class TemperatureLoss(nn.CrossEntropyLoss):
    def __init__(self):
        super().__init__()
        self.temperature = nn.Parameter(torch.tensor([2.0]))

    def forward(self, x, y):
        return super().forward(x / self.temperature, y)


def losses_with_parameters(kind=ArcFaceLoss):
    model, criterion = Net(), kind()
    metric = nn.Linear(3, 1)
    optimizer = sgd(model, criterion)
    for k in range(3):
        x, y = batch()
        note_model("Net", k, model)
        note_model(kind.__name__, k, criterion)
        optimizer.zero_grad()
        out = model(x)
        metric(out)
        loss = criterion(out, y)
        note(f"{kind.__name__}_output_0", k, loss)
        loss.backward()
        note_model("Net", k, model, gradients=True)
        note_model(kind.__name__, k, criterion, gradients=True)
        optimizer.step()
    return [model, criterion], 3, 0


def loss_modules_with_parameters():
    return losses_with_parameters(TemperatureLoss)


def loss_with_parameters_called_twice():
    model, criterion = Net(), TemperatureLoss()
    optimizer = sgd(model, criterion)
    for k in range(2):
        x, y = batch()
        optimizer.zero_grad()
        note_model("Net", k, model)
        note_model("TemperatureLoss", k, criterion)
        out = model(x)
        losses = [criterion(out * factor, y) for factor in (1.0, 3.0)]
        for j in range(2):
            # Of its two inputs the first one; the other one is the targets.
            note(f"TemperatureLoss_input_{2 * j}", k, out * (1.0, 3.0)[j])
            note(f"TemperatureLoss_output_{j}", k, losses[j])
        sum(losses).backward()
        note_model("Net", k, model, gradients=True)
        note_model("TemperatureLoss", k, criterion, gradients=True)
        optimizer.step()
    return [model, criterion], 2, 0


class Auto(nn.Module):
    """Its parts are called one by one; it never is."""

    def __init__(self):
        super().__init__()
        self.encoder, self.decoder = Encoder(5, 4), nn.Sequential(Decoder(4, 3))

    def training_step(self, x):
        return self.decoder(self.encoder(x))


def parts_of_a_module():
    model = Auto()
    optimizer = sgd(model)
    for k in range(3):
        x, y = batch()
        note_model("Auto", k, model)
        optimizer.zero_grad()
        hidden = model.encoder(x)
        note("encoder_output_0", k, hidden)
        out = model.decoder(hidden)
        note("decoder_output_0", k, out)
        note("decoder.0_output_0", k, out)
        F.cross_entropy(out, y).backward()
        note_model("Auto", k, model, gradients=True)
        optimizer.step()
    return [model], 3, 0


def parts_of_a_plain_object():
    encoder, decoder, head = Encoder(5, 4), Decoder(4, 4), Decoder(4, 3)
    optimizer = sgd(encoder, decoder, head)
    named = {"Encoder": encoder, "Decoder": decoder, "Decoder_2": head}
    for k in range(3):
        x, y = batch()
        for name, part in named.items():
            note_model(name, k, part)
        optimizer.zero_grad()
        F.cross_entropy(head(decoder(encoder(x))), y).backward()
        for name, part in named.items():
            note_model(name, k, part, gradients=True)
        optimizer.step()
    return [encoder, decoder, head], 3, 0


class Direct(Net):
    def __call__(self, x):
        return self.forward(x)


class Through(Net):
    def __call__(self, x):
        return super().__call__(x * 2)


def own_call():
    for index, kind in enumerate((Direct, Through)):
        model = kind()
        optimizer = sgd(model)
        for k in range(2):
            train_batch(model, optimizer, 2 * index + k, kind.__name__)
        del model, optimizer
    return [], 4, 0


class Critic(nn.Module):
    def __init__(self, body, width):
        super().__init__()
        self.body, self.head = body, nn.Linear(4, width)

    def forward(self, x):
        return self.head(self.body(x))


class Actor(Critic):
    pass


def shared_parts():
    body = Encoder(5, 4)
    actor, critic = Actor(body, 3), Critic(body, 1)
    optimizer = torch.optim.SGD([*actor.parameters(), *critic.head.parameters()], lr=0.1)
    for k in range(3):
        x, y = batch()
        note_model("Actor", k, actor)
        note_model("Critic", k, critic)
        optimizer.zero_grad()
        (F.cross_entropy(actor(x), y) + critic(x).mean()).backward()
        note_model("Actor", k, actor, gradients=True)
        note_model("Critic", k, critic, gradients=True)
        optimizer.step()
    return [actor, critic], 3, 0


def part_first_then_whole():
    # A warm-up trains a part of what is trained afterwards.
    body = Encoder(5, 4)
    model = Critic(body, 3)
    optimizer = sgd(model)
    optimizer.zero_grad()
    body(batch()[0]).mean().backward()
    optimizer.step()
    for k in (1, 2):
        train_batch(model, optimizer, k, "Critic")
    return [model], 3, 0


class Wrapped(nn.Module):
    """As trainers want it."""

    def __init__(self):
        super().__init__()
        self.model = Net()

    def forward(self, x):
        return self.model(x)

    def training_step(self, x, y):
        return F.cross_entropy(self(x), y)

    def validation_step(self, x):
        return self.model(x)


def inner_model_evaluated():
    model = Wrapped()
    optimizer = sgd(model)
    for k in range(2):
        train_batch(model, optimizer, k, "Wrapped")
    model.eval()
    with torch.no_grad():
        for k in range(2):
            out = model.validation_step(batch()[0])
            note("model_output_0", k, out, "EVAL")
            note_model("Wrapped", k, model, mode="EVAL")
    return [model], 2, 2


SCENES = [
    losses_with_parameters,
    loss_modules_with_parameters,
    loss_with_parameters_called_twice,
    parts_of_a_module,
    parts_of_a_plain_object,
    own_call,
    shared_parts,
    part_first_then_whole,
    inner_model_evaluated,
]

if __name__ == "__main__":
    play(SCENES)
