"""Inputs, outputs, tensors, loaders, schedules and modes that override all that they can, and count how often.

Knows nothing of the agent.

usage: python hostile_data_scenes.py [NOTES.npz]
"""

import collections
import dataclasses
import sys
from pathlib import Path

import torch
import torch.nn.functional as F

sys.path.append(str(Path(__file__).parents[1] / "shared"))
from counted import count, made, raising, resting, told
from hostile_scenes import layers_of, note_layers, parameters_of, sgd
from nets import batch
from notes import note, play
from torch import nn
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

SCENES = []
READING = ("get", "items", "keys", "values", "__iter__", "__len__", "__bool__", "__contains__", "__eq__", "__repr__")


def scene(function):
    def play_scene():
        layers = layers_of()
        function(layers)
        print(f"{function.__name__}: {told()}")
        return [nn.ParameterList(parameters_of(layers))], 3, 0

    play_scene.__name__ = function.__name__
    SCENES.append(play_scene)
    return function


class Net(nn.Module):
    """Takes what ``take`` finds the tensor in, and returns what ``give`` makes of the output."""

    def __init__(self, layers, take=lambda given: given, give=lambda output: output):
        super().__init__()
        self.fc1, self.fc2 = layers
        self.take, self.give = take, give

    def forward(self, given):
        return self.give(self.fc2(torch.relu(self.fc1(self.take(given)))))


def train_step(k, model, optimizer, layers, x, y, pack=lambda x: x, unpack=lambda given: given):
    note_layers(k, layers)
    with resting():
        packed = pack(x)
        note("Net_input_0", k, x)
    optimizer.zero_grad()
    loss = F.cross_entropy(unpack(model(packed)), y)
    loss.backward()
    with resting():
        note("Loss_output_0", k, loss)
    note_layers(k, layers, gradients=True)
    optimizer.step()


def train(layers, pack=lambda x: x, unpack=lambda given: given, **ways):
    model, optimizer = Net(layers, **ways), sgd(layers)
    for k in range(3):
        train_step(k, model, optimizer, layers, *batch(), pack, unpack)


def hiding(base, names=READING):
    return type("Hiding", (base,), made(base, [name for name in names if name in dir(base) or name == "__bool__"]))


@scene
def dict_of_a_class(layers):
    train(layers, lambda x: hiding(dict)(x=x), take=lambda given: dict.__getitem__(given, "x"))


@scene
def ordered_dict_of_a_class(layers):
    kind = type("Hiding", (collections.OrderedDict,), made(dict, ["items", "values", "__iter__", "__len__"]))
    train(layers, lambda x: kind(x=x), take=lambda given: dict.__getitem__(given, "x"))


@scene
def list_and_tuple_of_a_class(layers):
    train(layers, lambda x: hiding(list)((hiding(tuple)((x,)),)), take=lambda given: given[0][0])


@scene
def mapping_of_the_program(layers):
    # Nothing but the program knows what it holds.
    names = ("__getitem__", "__iter__", "__len__", "values", "items", "keys")
    kind = type("Hiding", (collections.abc.Mapping,), made(object, names))
    with resting():
        packed = kind()

    def take(given):
        return packed.x

    model, optimizer = Net(layers, take), sgd(layers)
    for k in range(3):
        x, y = batch()
        packed.x = x
        note_layers(k, layers)
        optimizer.zero_grad()
        loss = F.cross_entropy(model(packed), y)
        loss.backward()
        note("Loss_output_0", k, loss)
        note_layers(k, layers, gradients=True)
        note("fc1_input_0", k, x)
        optimizer.step()


@scene
def dataclass_with_properties(layers):
    @dataclasses.dataclass
    class Given:
        x: torch.Tensor
        more: object = None

        __getattr__ = raising("__getattr__")

    train(layers, Given, take=lambda given: given.x)


@scene
def lists_that_hold_themselves(layers):
    def pack(x):
        held, beside = [x], {}
        held += [held, beside] * 50
        beside.update({number: [held, beside, held] for number in range(50)})
        return held

    train(layers, pack, take=lambda given: given[0])


@scene
def output_of_a_class(layers):
    kind = hiding(dict)
    train(layers, unpack=lambda given: dict.__getitem__(given, "logits"), give=lambda output: kind(logits=output))


@scene
def output_with_odd_keys(layers):
    class Key:
        __hash__ = object.__hash__
        __eq__ = __str__ = __repr__ = raising("a key")

    key = Key()
    train(layers, unpack=lambda given: given[key], give=lambda output: {key: output})


class Counted(torch.Tensor):
    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        count(getattr(function, "__name__", str(function)))
        return super().__torch_function__(function, types, args, kwargs or {})


@scene
def tensors_of_a_class(layers):
    train(layers, lambda x: x.as_subclass(Counted), unpack=lambda given: given.as_subclass(torch.Tensor))


@scene
def tensors_of_a_class_to_the_end(layers):
    train(layers, lambda x: x.as_subclass(Counted))


def train_under(mode, layers):
    model, optimizer = Net(layers), sgd(layers)
    for k in range(3):
        x, y = batch()
        with mode():
            train_step(k, model, optimizer, layers, x, y)


@scene
def a_mode_of_functions(layers):
    class Mode(TorchFunctionMode):
        def __torch_function__(self, function, types, args=(), kwargs=None):
            count(getattr(function, "__name__", str(function)))
            return function(*args, **(kwargs or {}))

    train_under(Mode, layers)


@scene
def a_mode_of_operations(layers):
    class Mode(TorchDispatchMode):
        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            count(str(function))
            return function(*args, **(kwargs or {}))

    train_under(Mode, layers)


@scene
def another_default_device(layers):
    model, optimizer = Net(layers), sgd(layers)
    for k in range(3):
        x, y = batch()
        torch.set_default_device("meta")
        train_step(k, model, optimizer, layers, x, y)
        torch.set_default_device(None)


@scene
def loader_and_schedule(layers):
    class Loader(torch.utils.data.DataLoader):
        __len__ = __bool__ = raising("a loader")

        def __iter__(self):
            count("__iter__ of a loader")
            return super().__iter__()

    class Schedule(torch.optim.lr_scheduler.LRScheduler):
        __len__ = __bool__ = __eq__ = raising("a schedule")
        __hash__ = None

        def get_lr(self):
            count("get_lr")
            return [0.1 for _ in self.optimizer.param_groups]

    model, optimizer = Net(layers), sgd(layers)
    schedule = Schedule(optimizer)
    data = torch.utils.data.TensorDataset(*batch(18))
    for k, (x, y) in enumerate(Loader(data, batch_size=6)):
        train_step(k, model, optimizer, layers, x, y)
        schedule.step()


@scene
def scaler(layers):
    class Scaler(torch.amp.GradScaler):
        __hash__ = None
        __eq__ = __len__ = __bool__ = raising("a scaler")

        def is_enabled(self):
            count("is_enabled")
            return super().is_enabled()

        def get_scale(self):
            count("get_scale")
            return super().get_scale()

    model, optimizer, scaling = Net(layers), sgd(layers), Scaler("cpu", init_scale=1.0)
    for k in range(3):
        x, y = batch()
        with resting():
            note("Net_input_0", k, x)
        note_layers(k, layers)
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        scaling.scale(loss).backward()
        note("Loss_output_0", k, loss)
        note_layers(k, layers, gradients=True)
        scaling.step(optimizer)
        scaling.update()


@scene
def sequence_to_differentiate(layers):
    class Asked(collections.abc.Sequence):
        def __len__(self):
            count("__len__")
            return 4

        def __getitem__(self, place):
            count("__getitem__")
            return parameters_of(layers)[place]

    model, optimizer = Net(layers), sgd(layers)
    for k in range(3):
        x, y = batch()
        with resting():
            note("Net_input_0", k, x)
        note_layers(k, layers)
        loss = F.cross_entropy(model(x), y)
        found = torch.autograd.grad(loss, Asked(), retain_graph=True)
        loss.backward()
        note("Loss_output_0", k, loss)
        for parameter, gradient in zip(parameters_of(layers), found, strict=True):
            parameter.grad = gradient
        note_layers(k, layers, gradients=True)
        optimizer.step()
        optimizer.zero_grad()


if __name__ == "__main__":
    play(SCENES)
