"""Trainings without an optimizer, in evaluation mode, by other tensors, in threads; copies. Knows nothing of the agent.

usage: python odd_scenes.py [NOTES.npz]
"""

import contextlib
import copy
import io
import pickle
import threading

import torch
import torch.nn.functional as F
from nets import Net, batch, sgd
from notes import note, note_model, play
from torch import nn


def train(model, optimizer, steps, first=0, name="Net", noted=0):
    for k in range(first, first + steps):
        x, y = batch()
        if k >= noted:
            note_model(name, k, model)
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        if k >= noted:
            note("Loss_output_0", k, loss)
            note_model(name, k, model, gradients=True)
        optimizer.step()


class ByHand:
    """An optimizer that is none of torch.optim's."""

    def __init__(self, parameters):
        self.parameters = list(parameters)

    def zero_grad(self):
        for p in self.parameters:
            p.grad = None

    def step(self):
        with torch.no_grad():
            for p in self.parameters:
                p -= 0.1 * p.grad


def own_optimizer():
    model = Net()
    # What is trained is known from the first backward pass on.
    train(model, ByHand(model.parameters()), 3, noted=1)
    return [model], 3, 0


def trained_in_evaluation_mode():
    # Found when the first backward pass begins.
    model = Net().eval()
    train(model, sgd(model), 3)
    with torch.no_grad():
        note("Net_output_0", 0, model(batch()[0]), "EVAL")
    return [model], 3, 1


def later_in_evaluation_mode():
    model = Net()
    optimizer = sgd(model)
    train(model, optimizer, 2)
    model.eval()
    # The first step of these is taken for evaluation.
    x, y = batch()
    optimizer.zero_grad()
    out = model(x)
    note("Net_output_0", 0, out, "EVAL")
    F.cross_entropy(out, y).backward()
    optimizer.step()
    train(model, optimizer, 2, first=2)
    return [model], 4, 1


def saliency_is_no_training():
    model = Net()
    optimizer = sgd(model)
    train(model, optimizer, 2)
    model.eval()
    for k in range(3):
        x = batch()[0].requires_grad_()
        out = model(x)
        note("Net_output_0", k, out, "EVAL")
        out.sum().backward()
    return [model], 2, 3


def functional_call_with_other_parameters():
    model = Net()
    parameters = {name: nn.Parameter(p.detach() * 2) for name, p in model.named_parameters()}
    optimizer = torch.optim.SGD(parameters.values(), lr=0.1)
    for k in range(3):
        x, y = batch()
        for name, p in parameters.items():
            note(f"Net_{name}", k, p)
        optimizer.zero_grad()
        F.cross_entropy(torch.func.functional_call(model, parameters, (x,)), y).backward()
        for name, p in parameters.items():
            note(f"gradient/Net_{name}", k, p.grad)
        optimizer.step()
    return [model], 3, 0


def adapted_copies():
    # MAML: the model is called with its own parameters and with adapted ones before the update.
    model = Net()
    optimizer = sgd(model)
    for k in range(2):
        x, y = batch()
        note_model("Net", k, model)
        optimizer.zero_grad()
        out = model(x)
        note("Net_output_0", k, out)
        names, parameters = zip(*model.named_parameters(), strict=True)
        gradients = torch.autograd.grad(F.cross_entropy(out, y), parameters, create_graph=True)
        fast = {n: p - 0.1 * g for n, p, g in zip(names, parameters, gradients, strict=True)}
        out = torch.func.functional_call(model, fast, (x,))
        note("Net_output_1", k, out)
        F.cross_entropy(out, y).backward()
        note_model("Net", k, model, gradients=True)
        optimizer.step()
    return [model], 2, 0


class Scaled(Net):
    """Its copies differ in a plain attribute."""

    factor = 1.0

    def forward(self, x):
        return super().forward(x) * self.factor

    def __getstate__(self):
        return self.__dict__


def copies_of_the_dict():
    model = Scaled()
    optimizer = sgd(model)
    train(model, optimizer, 2, name="Scaled")
    # As meta-learning libraries clone modules.
    clone = Scaled.__new__(Scaled)
    clone.__dict__ = model.__dict__.copy()
    clone._modules = {name: copy.deepcopy(part) for name, part in model._modules.items()}
    shallow, deep = copy.copy(model), copy.deepcopy(model)
    x = batch()[0]
    for factor, twin in enumerate((clone, shallow, deep, pickle.loads(pickle.dumps(model)))):
        twin.factor = factor + 2.0
        with torch.no_grad():
            out = model(x)
            note("Scaled_output_0", factor, out, "EVAL")
            print("a copy is right:", torch.allclose(twin(x), out * twin.factor))
    file = io.BytesIO()
    torch.save(model, file)
    train(model, optimizer, 2, first=2, name="Scaled")
    return [model, clone, deep], 4, 4


class Failing(Net):
    def forward(self, x):
        if x.isnan().any():
            raise ValueError("a bad batch")
        return super().forward(x)


def batches_that_fail():
    model = Failing()
    optimizer = sgd(model)
    train(model, optimizer, 1, name="Failing")
    bad = torch.full((2, 5), torch.nan)
    for _ in range(2):
        with contextlib.suppress(ValueError):
            print(model(bad))
    train(model, optimizer, 2, first=1, name="Failing")
    return [model], 3, 0


def beside_plain_parameters():
    model = Net()
    temperature = nn.Parameter(torch.ones(3))
    optimizer = torch.optim.SGD([temperature, *model.parameters()], lr=0.1)
    for k in range(3):
        x, y = batch()
        note_model("Net", k, model)
        optimizer.zero_grad()
        F.cross_entropy(model(x) * temperature, y).backward()
        note_model("Net", k, model, gradients=True)
        optimizer.step()
    return [model], 3, 0


def in_another_thread():
    model = Net()
    thread = threading.Thread(target=train, args=(model, sgd(model), 3))
    thread.start()
    thread.join()
    return [model], 3, 0


class Meeting(Net):
    """While it runs in one thread, another one runs it too."""

    def forward(self, x, inner=None):
        if inner is not None:
            thread = threading.Thread(target=self, args=(inner,))
            thread.start()
            thread.join()
        return super().forward(x)


def in_two_threads():
    model = Meeting()
    optimizer = sgd(model)
    for k in range(2):
        x, y = batch()
        note_model("Meeting", k, model)
        optimizer.zero_grad()
        out = model(x, batch()[0])
        note("fc2_output_0", k, out)
        note("Meeting_output_0", k, out)
        F.cross_entropy(out, y).backward()
        note_model("Meeting", k, model, gradients=True)
        optimizer.step()
    return [model], 2, 0


def gradients_by_autograd_grad():
    # With an optimizer the model is known at once; what it uses are these gradients.
    model = Net()
    optimizer = sgd(model)
    for k in range(2):
        x, y = batch()
        note_model("Net", k, model)
        parameters = list(model.parameters())
        for p, g in zip(parameters, torch.autograd.grad(F.cross_entropy(model(x), y), parameters), strict=True):
            p.grad = g
        note_model("Net", k, model, gradients=True)
        optimizer.step()
    return [model], 2, 0


SCENES = [
    own_optimizer,
    trained_in_evaluation_mode,
    later_in_evaluation_mode,
    saliency_is_no_training,
    functional_call_with_other_parameters,
    adapted_copies,
    copies_of_the_dict,
    batches_that_fail,
    beside_plain_parameters,
    in_another_thread,
    in_two_threads,
    gradients_by_autograd_grad,
]

if __name__ == "__main__":
    play(SCENES)
