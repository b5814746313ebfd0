"""Blocks, Trainers, optimizers and losses of Gluon that override all that they can, one at a time and all at once.

Each counts how often it is called, and prints that. Knows nothing of the agent.

usage: python hostile_scenes.py [NOTES.npz]
"""

import sys
from pathlib import Path

import mxnet as mx
from mxnet import autograd, gluon
from mxnet.gluon import nn
from notes import batch, note, play

sys.path.append(str(Path(__file__).parents[1] / "shared"))
from counted import count, made, reading, refusing, resting, told

# What a block may override without harm to its training: whoever calls it gets an error.
BLOCK = (
    *("collect_params", "_collect_params_with_prefix", "save_parameters", "load_parameters", "save_params", "apply"),
    *("initialize", "hybridize", "cast", "name_scope", "summary", "register_forward_hook", "register_op_hook"),
    *("__len__", "__bool__", "__iter__", "__contains__", "__eq__", "__ne__", "__hash__", "__getitem__", "__repr__"),
    *("__str__", "__format__", "__dir__", "__class__", "__reduce_ex__", "__deepcopy__", "__instancecheck__"),
    *("export", "infer_shape", "keys", "items", "values", "list_data", "asnumpy"),
)
PROPERTIES = ("name", "prefix", "params")
# And what is called in a training anyway.
PASSED = ("__getattr__", "__setattr__", "__getattribute__", "__call__", "register_child")
HYBRID = (
    "_get_graph",
    "_build_cache",
    "_call_cached_op",
    "_clear_cached_op",
    "collect_params",
    "name_scope",
    "forward",
)
PARAMETER = (
    *("list_grad", "list_ctx", "row_sparse_data", "zero_grad", "cast", "_reduce", "reset_ctx", "__eq__", "__ne__"),
    *("__hash__", "__len__", "__bool__", "__iter__", "__repr__", "__str__", "__class__", "__deepcopy__"),
    "__reduce_ex__",
)
PARAMETER_PASSED = ("data", "list_data", "list_grad", "__getattr__", "__setattr__", "_check_and_get", "_set_trainer")
TRAINER = (
    "__eq__",
    "__hash__",
    "__len__",
    "__bool__",
    "__iter__",
    "__class__",
    "__repr__",
    "save_states",
    "__reduce_ex__",
)
TRAINER_PASSED = ("__getattr__", "__setattr__", "__getattribute__", "_update", "_allreduce_grads", "step")
OPTIMIZER = ("__eq__", "__hash__", "__len__", "__bool__", "__iter__", "__class__", "__repr__", "set_learning_rate")
OPTIMIZER_PASSED = ("__getattr__", "__setattr__", "__getattribute__", "_get_lrs", "_get_wds", "update")
DATA = ("__len__", "__bool__", "__iter__", "__eq__", "__ne__", "__hash__", "__repr__", "__class__", "asnumpy", "copy")
DATA_PROPERTIES = ("shape", "size", "dtype", "stype", "ndim", "context")


def passed(base, *names):
    """Return what counts and does what the base class does; also what ``object`` does not have."""
    body = made(base, names, names)
    if "__getattr__" in names and not hasattr(base, "__getattr__"):
        body.update(made(base, ["__getattr__"]))
    return body


def layers_of():
    layers = nn.Dense(4, in_units=6, prefix="net_fc1_"), nn.Dense(3, in_units=4, prefix="net_fc2_")
    for layer in layers:
        layer.initialize(mx.init.Xavier())
    return layers


def parameters_of(layers):
    return [parameter for layer in layers for parameter in (layer.weight, layer.bias)]


def note_layers(k, layers, gradients=False):
    with resting():
        for layer in layers:
            for parameter, kind in ((layer.weight, "weight"), (layer.bias, "bias")):
                array = gluon.Parameter.grad(parameter) if gradients else gluon.Parameter.data(parameter)
                note(f"{'gradient/' if gradients else ''}{layer._prefix}{kind}", k, array)


def train(net, trainer, layers, steps=3, loss_function=None, given=lambda x: x, after=lambda k: None):
    with resting():
        if loss_function is None:
            loss_function = gluon.loss.SoftmaxCrossEntropyLoss(prefix="netloss0_")
    for k in range(steps):
        x, y = batch()
        note_layers(k, layers)
        with autograd.record():
            output = net(given(x))
            loss = loss_function(output, y)
        loss.backward()
        with resting():
            note("net_input_0", k, x)
            note("net_output_0", k, output)
            note("netloss0_output_0", k, loss)
        note_layers(k, layers, gradients=True)
        trainer.step(8)
        after(k)


def net_class(body, base=gluon.Block):
    def init(self, layers):
        base.__init__(self, prefix="net_")
        self.fc1, self.fc2 = layers

    def forward(self, x):
        return self.fc2(self.fc1(x).relu())

    def hybrid_forward(self, F, x):
        return self.fc2(F.relu(self.fc1(x)))

    run = {"hybrid_forward": hybrid_forward} if base is gluon.HybridBlock else {"forward": forward}
    return type("Net", (base,), {"__init__": init, **run, **body})


class Kept:
    """What has the parameters of a scene's layers, whatever these override."""

    def __init__(self, layers):
        self.parameters = {f"{i}": parameter for i, parameter in enumerate(parameters_of(layers))}

    def collect_params(self):
        return self.parameters


def scene(name):
    """Register a function as a scene of this name."""

    def register(function):
        def play_scene():
            layers = layers_of()
            function(layers)
            print(f"{name}: {told()}")
            return [Kept(layers)], 3, 0

        play_scene.__name__ = name
        SCENES.append(play_scene)
        return function

    return register


SCENES = []


def sgd(layers, kind=gluon.Trainer):
    return kind(parameters_of(layers), "sgd", {"learning_rate": 0.1, "momentum": 0.9})


def overriding(base, names):
    """Return what a class has that overrides all of these."""
    properties = {name: refusing(name) for name in names if name in PROPERTIES}
    plain = [name for name in names if name not in properties and name not in PASSED]
    return {**properties, **made(base, plain), **passed(base, *(name for name in names if name in PASSED))}


def block_scene(name, *names):
    @scene(f"block_{name}")
    def play_block(layers):
        with resting():
            net = net_class(overriding(gluon.Block, names))(layers)
        train(net, sgd(layers), layers)


def inner_scene(name, *names):
    @scene(f"layer_{name}")
    def play_block(layers):
        with resting():
            for layer in layers:
                layer.__class__ = type("Inner", (nn.Dense,), overriding(nn.Dense, names))
            net = net_class({})(layers)
        train(net, sgd(layers), layers)


for override in (*BLOCK, *PROPERTIES, *PASSED):
    block_scene(override, override)
block_scene("all", *BLOCK, *PROPERTIES, *PASSED)
# Gluon asks the parts of a block for their hashes, looking for parts in lists.
inner_scene("eq_and_hash", "__eq__", "__hash__")
inner_scene("all", *(name for name in (*BLOCK, *PROPERTIES, *PASSED) if name != "params"))


@scene("hybridized")
def hybridized(layers):
    body = {**passed(gluon.HybridBlock, *PASSED, *HYBRID, "hybridize", "__hash__", "__eq__")}
    body |= {name: reading(name, gluon.Block) for name in PROPERTIES}
    with resting():
        net = net_class(body, gluon.HybridBlock)(layers)
        net.hybridize()
    train(net, sgd(layers), layers)


@scene("hybridized_parts")
def hybridized_parts(layers):
    names = (*PASSED, *HYBRID, "hybridize", "__hash__", "__eq__", "hybrid_forward")
    with resting():
        for layer in layers:
            layer.__class__ = type("Dense", (nn.Dense,), passed(nn.Dense, *names))
        net = net_class({}, gluon.HybridBlock)(layers)
        net.hybridize()
    train(net, sgd(layers), layers)


def parameter_scene(name, names, passing=()):
    @scene(f"parameter_{name}")
    def play_parameter(layers):
        body = {**made(gluon.Parameter, names), **passed(gluon.Parameter, *passing)}
        if name == "all":
            body |= {kind: reading(kind, gluon.Parameter) for kind in ("shape", "dtype")}
        with resting():
            for parameter in parameters_of(layers):
                parameter.__class__ = type("Weight", (gluon.Parameter,), body)
        train(net_class({})(layers), sgd(layers), layers)


parameter_scene("eq_and_hash", ("__eq__", "__hash__"))
parameter_scene("properties", (), PARAMETER_PASSED)
parameter_scene(
    "all", [name for name in PARAMETER if name not in ("list_grad", "list_ctx")], (*PARAMETER_PASSED, "list_ctx")
)


def trainer_scene(name, names, passing=()):
    @scene(f"trainer_{name}")
    def play_trainer(layers):
        kind = type("Trainer", (gluon.Trainer,), {**made(gluon.Trainer, names), **passed(gluon.Trainer, *passing)})
        train(net_class({})(layers), sgd(layers, kind), layers)


for override in TRAINER:
    trainer_scene(override, (override,))
trainer_scene("passed", (), TRAINER_PASSED)
trainer_scene("all", TRAINER, TRAINER_PASSED)


def optimizer_scene(name, names, passing=(), scheduler=None):
    @scene(f"optimizer_{name}")
    def play_optimizer(layers):
        with resting():
            kind = type(
                "SGD", (mx.optimizer.SGD,), {**made(mx.optimizer.SGD, names), **passed(mx.optimizer.SGD, *passing)}
            )
            rate = 0.1 if scheduler is None else None
            optimizer = kind(learning_rate=rate, momentum=0.9, lr_scheduler=scheduler and scheduler())
        train(net_class({})(layers), gluon.Trainer(parameters_of(layers), optimizer), layers)


class Schedule(mx.lr_scheduler.FactorScheduler):
    """Gives other rates the more often it is asked."""

    def __init__(self):
        super().__init__(step=1, factor=0.9)

    def __call__(self, num_update):
        count("schedule")
        self.base_lr *= 0.99
        return self.base_lr


for override in OPTIMIZER:
    optimizer_scene(override, (override,))
optimizer_scene("passed", (), OPTIMIZER_PASSED)
optimizer_scene("all", OPTIMIZER, OPTIMIZER_PASSED)
optimizer_scene("all_and_a_schedule", OPTIMIZER, OPTIMIZER_PASSED, Schedule)


@scene("loss")
def loss(layers):
    names = (*BLOCK, *PROPERTIES, *PASSED)
    with resting():
        body = {
            "hybrid_forward": lambda self, F, x, y: F.softmax_cross_entropy(x, y),
            **overriding(gluon.loss.Loss, names),
        }
        loss_function = type("Distance", (gluon.loss.Loss,), body)(None, 0, prefix="netloss0_")
    train(net_class({})(layers), sgd(layers), layers, loss_function=loss_function)


@scene("loss_that_is_no_loss_block")
def loss_that_is_no_loss_block(layers):
    names = (*BLOCK, *PROPERTIES, *PASSED)
    with resting():
        body = {"forward": lambda self, x, y: mx.nd.softmax_cross_entropy(x, y), **overriding(gluon.Block, names)}
        loss_function = type("Distance", (gluon.Block,), body)(prefix="netloss0_")
    train(net_class({})(layers), sgd(layers), layers, loss_function=loss_function)


def array_of_a_class(x, names, properties=()):
    body = {**made(mx.nd.NDArray, names), **{name: reading(name, mx.nd.NDArray) for name in properties}}
    twin = x.copy()
    with resting():
        twin.__class__ = type("Batch", (mx.nd.NDArray,), {"__slots__": (), **body})
    return twin


@scene("array")
def array(layers):
    train(net_class({})(layers), sgd(layers), layers, given=lambda x: array_of_a_class(x, DATA, DATA_PROPERTIES))


if __name__ == "__main__":
    play(SCENES)
