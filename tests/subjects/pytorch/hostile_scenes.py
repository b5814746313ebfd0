"""Models, optimizers and losses that override all that they can, one thing at a time and all at once.

Each counts how often it is called, and prints that. Knows nothing of the agent.

usage: python hostile_scenes.py [NOTES.npz]
"""

import dataclasses
import sys
from pathlib import Path

import torch
import torch.nn.functional as F

sys.path.append(str(Path(__file__).parents[1] / "shared"))
from counted import count, made, resting, told
from nets import batch
from notes import note, play
from torch import nn

# What a model may override without harm to its training: whoever calls it gets an error.
MODEL = (
    *("parameters", "named_parameters", "modules", "named_modules", "children", "named_children", "buffers"),
    *("named_buffers", "state_dict", "load_state_dict", "train", "eval", "apply", "requires_grad_", "get_parameter"),
    *("__len__", "__bool__", "__iter__", "__contains__", "__eq__", "__ne__", "__hash__", "__getitem__", "__repr__"),
    *("__str__", "__format__", "__dir__", "__class__", "__reduce_ex__", "__call_me__", "_get_name", "extra_repr"),
    *("_get_fsdp_state", "keys", "items", "values", "__deepcopy__", "__instancecheck__", "to_local", "detach"),
)
# And what is called in a training anyway.
PASSED = ("__getattr__", "__setattr__")
OPTIMIZER = ("__eq__", "__hash__", "__len__", "__bool__", "__iter__", "__class__", "__getattr__", "state_dict", "keys")


def layers_of(width=4):
    return nn.Linear(5, width), nn.Linear(width, 3)


def note_layers(k, layers, gradients=False):
    with resting():
        for name, layer in zip(("fc1", "fc2"), layers, strict=True):
            for key, parameter in layer._parameters.items():
                found = parameter.grad if gradients else parameter
                note(f"{'gradient/' if gradients else ''}Net_{name}.{key}", k, found)


def train(model, optimizer, layers, steps=3, loss_function=F.cross_entropy):
    for k in range(steps):
        x, y = batch()
        note_layers(k, layers)
        optimizer.zero_grad()
        output = model(x)
        loss = loss_function(output, y)
        loss.backward()
        with resting():
            note("Net_output_0", k, output)
            note("Loss_output_0", k, loss)
        note_layers(k, layers, gradients=True)
        optimizer.step()


def parameters_of(layers):
    return [parameter for layer in layers for parameter in layer._parameters.values()]


def net_class(body, base=nn.Module):
    def init(self, layers):
        base.__init__(self)
        self.fc1, self.fc2 = layers

    def forward(self, x):
        return self.fc2(torch.relu(self.fc1(x)))

    return type("Net", (base,), {"__init__": init, "forward": forward, **body})


def scene(name):
    """Register a function as a scene of this name."""

    def register(function):
        def play_scene():
            layers = layers_of()
            function(layers)
            print(f"{name}: {told()}")
            return [nn.ParameterList(parameters_of(layers))], 3, 0

        play_scene.__name__ = name
        SCENES.append(play_scene)
        return function

    return register


SCENES = []


def sgd(layers):
    return torch.optim.SGD(parameters_of(layers), lr=0.1)


def model_scene(name, *names):
    @scene(f"model_{name}")
    def play_model(layers):
        with resting():
            model = net_class(made(nn.Module, names, PASSED))(layers)
        train(model, sgd(layers), layers)


def inner_scene(name, *names):
    @scene(f"layer_{name}")
    def play_model(layers):
        with resting():
            for layer in layers:
                layer.__class__ = type("Inner", (nn.Linear,), made(nn.Linear, names, PASSED))
            model = net_class({})(layers)
        train(model, sgd(layers), layers)


def optimizer_scene(name, *names):
    @scene(f"optimizer_{name}")
    def play_optimizer(layers):
        with resting():
            kind = type("SGD", (torch.optim.SGD,), made(torch.optim.SGD, names, ("__setattr__",)))
        train(net_class({})(layers), kind(parameters_of(layers), lr=0.1), layers)


for override in (*MODEL, *PASSED):
    model_scene(override, override)
model_scene("all", *MODEL, *PASSED)
inner_scene("eq_and_hash", "__eq__", "__hash__")
inner_scene("all", *MODEL, *PASSED)
for override in OPTIMIZER:
    optimizer_scene(override, override)
optimizer_scene("all", *OPTIMIZER)


@scene("dataclass")
def dataclass(layers):
    @dataclasses.dataclass
    class Net(nn.Module):
        width: int = 4

        def __post_init__(self):
            super().__init__()
            self.fc1, self.fc2 = layers

        def forward(self, x):
            return self.fc2(torch.relu(self.fc1(x)))

    train(Net(), sgd(layers), layers)


@scene("parameters_without_arguments")
def parameters_without_arguments(layers):
    class Net(net_class({})):
        def parameters(self):
            count("parameters")
            return iter(parameters_of(layers))

    model = Net(layers)
    train(model, torch.optim.SGD(model.parameters(), lr=0.1), layers)


@scene("cycle")
def cycle(layers):
    model = net_class({})(layers)
    model.fc1.up = model
    model.fc2.beside = model.fc1
    train(model, sgd(layers), layers)
    # The memory of a circle is freed when the garbage collector runs.
    del model.fc1.up


@scene("circle_of_one")
def circle_of_one(layers):
    model = net_class({})(layers)
    model.me = model
    model.holder = nn.ModuleList([model])
    train(model, sgd(layers), layers)
    del model.me, model.holder


@scene("training_is_no_bool")
def training_is_no_bool(layers):
    model = net_class({})(layers)
    model.training = "yes"
    train(model, sgd(layers), layers)


@scene("training_is_a_property")
def training_is_a_property(layers):
    def training(self):
        count("training")
        return True

    model = net_class({"training": property(training, lambda self, value: None)})(layers)
    train(model, sgd(layers), layers)


@scene("odd_keys")
def odd_keys(layers):
    class Key:
        __hash__ = object.__hash__
        __eq__ = __str__ = __repr__ = __format__ = made(object, ["a key"])["a key"]

    model = net_class({})(layers)
    model._modules[7] = nn.Identity()
    model._modules[Key()] = nn.Identity()
    train(model, sgd(layers), layers)


@scene("groups_in_a_property")
def groups_in_a_property(layers):
    class SGD(torch.optim.SGD):
        @property
        def param_groups(self):
            count("param_groups")
            return self.__dict__["kept"]

        @param_groups.setter
        def param_groups(self, groups):
            self.__dict__["kept"] = groups

    train(net_class({})(layers), SGD(parameters_of(layers), lr=0.1), layers)


@scene("groups_of_a_class")
def groups_of_a_class(layers):
    group = type("Group", (dict,), made(dict, ["get", "items", "keys", "values", "__iter__", "__len__", "__bool__"]))
    optimizer = sgd(layers)
    optimizer.param_groups = type("Groups", (list,), made(list, ["__len__", "__bool__", "__contains__"]))(
        group({**found}) for found in optimizer.param_groups
    )
    train(net_class({})(layers), optimizer, layers)


@scene("loss")
def loss(layers):
    names = (*MODEL, *PASSED)
    with resting():
        body = {"forward": lambda self, x, y: F.cross_entropy(x, y), **made(nn.Module, names, PASSED)}
        loss_function = type("Distance", (nn.Module,), body)()
    train(net_class({})(layers), sgd(layers), layers, loss_function=loss_function)


if __name__ == "__main__":
    play(SCENES)
