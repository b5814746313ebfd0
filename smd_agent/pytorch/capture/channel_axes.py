"""The axis of the channels of a module's output: told by its class, else by the values that flow through it.

PyTorch has images as (batch, channels, height, width), and what dense layers give, tokens among it, with the features
last. A class of ``torch.nn`` says which of both it computes. A module without parameters that keeps the shape, such as
an activation, leaves the channels where its input had them; a container returns what one of its layers has.
Of the others the second axis is that of the channels, if there are two, or four and more. Of three it is the last one
in a model that has layers for features alone, the second in one that has layers for signals alone, and else not known.
"""

from __future__ import annotations

import re
import weakref
from typing import Any

import torch

from smd_agent.core.channel_axes import AxisRule, last_axis, second_axis
from smd_agent.core.failure_domains import CHANNELS
from smd_agent.core.ports import StepWriter
from smd_agent.framework import step_events as events
from smd_agent.framework.step_events import Probe, on
from smd_agent.framework.weak_references import WeakIdentityMap
from smd_agent.pytorch.arrays import tensors_in
from smd_agent.pytorch.model.tracked_module import TrackedModule
from smd_agent.pytorch.plain_access import held, own_dict, parts

_NN = "torch.nn.modules."
_FEATURES = ("linear", "rnn", "sparse", "transformer")
_IMAGES = ("conv", "pooling", "batchnorm", "instancenorm", "padding", "upsampling", "pixelshuffle")
_SPACE = re.compile(r"([123])d$")
_SIGNAL = 3

_by_class: WeakIdentityMap[type, tuple[tuple[type, AxisRule] | None]] = WeakIdentityMap()


class Channels(Probe, domain=CHANNELS, doing="looking at the channels of layers"):
    """The channels of what the modules of one saved step return.

    Args:
        writer: takes where they are, by name, if the step saves anything of them.
    """

    def __init__(self, writer: StepWriter) -> None:
        self._axes = writer.axes
        self.wanted = writer.shares_due()
        # Weakly: a step stays open until the next one begins, and a model that the program lets go of must go.
        self._modules: dict[str, tuple[weakref.ref[torch.nn.Module], weakref.ref[torch.nn.Module]]] = {}
        self._inputs: dict[str, tuple[int, torch.Size]] = {}
        # By identity: what a layer has returned is what the next one gets.
        self._known: dict[int, tuple[weakref.ref[torch.Tensor], int]] = {}
        self._votes: WeakIdentityMap[torch.nn.Module, tuple[int | None]] = WeakIdentityMap()

    @on(events.NewParameters)
    def add(self, new: events.NewParameters) -> None:
        """Take note of a model and its layers, by the names that what they return is saved under."""
        tracked: TrackedModule = new.model
        model = tracked.model
        if model is not None:
            whole = weakref.ref(model)
            self._modules.update((name, (weakref.ref(layer), whole)) for name, layer in tracked.layers())
            self._modules[tracked.names.model] = whole, whole

    @on(events.StepEnd)
    def close(self, _: events.StepEnd) -> None:
        """Let go of everything."""
        self._modules.clear()
        self._inputs.clear()
        self._known.clear()

    @on(events.ModelCall)
    def before_model(self, call: events.ModelCall) -> None:
        """A model gets its inputs."""
        self._saw_input(call.name, call.inputs)

    @on(events.LayerCall)
    def before_layer(self, call: events.LayerCall) -> None:
        """A layer gets its inputs."""
        self._saw_input(call.name, (call.args, call.kwargs))

    @on(events.ModelReturn, events.LayerReturn)
    def after_module(self, call: events.ModelReturn | events.LayerReturn) -> None:
        """A model or a layer returns its outputs."""
        name = call.name or ""
        module, model = (found() for found in self._modules.get(name, (_nothing, _nothing)))
        tensors = tensors_in(call.outputs)
        if module is None or model is None or not tensors:
            return
        axes: dict[int, int] = {}
        for tensor in tensors:
            axis = self._axis(module, model, self._inputs.get(name), tensor) if tensor.dim() > 1 else None
            if axis is not None:
                axes[tensor.dim()] = axis
                self._known[id(tensor)] = weakref.ref(tensor), axis
        self._axes.note(f"{name}_output", axes.get)

    def _saw_input(self, name: str, value: Any) -> None:
        tensors = tensors_in(value)
        if tensors:
            axis = self._known_axis(tensors[0])
            if axis is None:
                self._inputs.pop(name, None)
            else:
                self._inputs[name] = axis, tensors[0].shape

    def _axis(
        self,
        module: torch.nn.Module,
        model: torch.nn.Module,
        got: tuple[int, torch.Size] | None,
        output: torch.Tensor,
    ) -> int | None:
        rule = rule_of(module)
        if rule is not None:
            return rule(output.dim())
        axis = self._known_axis(output)
        if axis is not None:
            return axis
        # Its own dictionaries: walks through them take longer.
        has_parts = bool(held(module, "_modules"))
        computes = has_parts or bool(held(module, "_parameters"))
        if not computes and got is not None and got[1] == output.shape:
            return got[0]
        if output.dim() == 2 or (computes and output.dim() > _SIGNAL):
            return 1
        if output.dim() > _SIGNAL:
            return None
        return self._vote(module if has_parts else model)

    def _known_axis(self, tensor: torch.Tensor) -> int | None:
        known = self._known.get(id(tensor))
        return known[1] if known is not None and known[0]() is tensor else None

    def _vote(self, module: torch.nn.Module) -> int | None:
        """The axis of the channels of three dimensions in a module: where all layers in it that tell have them."""
        known = self._votes.get(module)
        if known is None:
            rules = [rule for rule in map(_kind_of, parts(module)) if rule is not None]
            found = {rule(_SIGNAL) for kind, rule in rules if rule is last_axis or _space_of(kind) == 1}
            known = self._votes.set(module, (found.pop() if len(found) == 1 else None,))
        return known[0]


def _nothing() -> None:
    return None


def rule_of(module: torch.nn.Module) -> AxisRule | None:
    """The rule for the channels of what a module of ``torch.nn`` returns; None where its class does not tell."""
    found = _kind_of(module)
    return None if found is None else found[1]


def _kind_of(module: torch.nn.Module) -> tuple[type, AxisRule] | None:
    kind = type(module)
    # One that normalizes over several axes is of images.
    if issubclass(kind, torch.nn.LayerNorm):
        shape = own_dict(module).get("normalized_shape")
        if type(shape) is tuple and len(shape) != 1:
            return None
    return (_by_class.get(kind) or _by_class.set(kind, (_rule_of_class(kind),)))[0]


def _rule_of_class(kind: Any) -> tuple[type, AxisRule] | None:
    base = next((one for one in kind.__mro__ if one.__module__.startswith(_NN)), None)
    # A class made from one of these may compute otherwise, such as a LayerNorm of images.
    if base is None or next(one for one in kind.__mro__ if "forward" in vars(one)) not in base.__mro__:
        return None
    room, name = base.__module__.removeprefix(_NN), base.__name__
    if (room in _FEATURES and name != "Identity") or name in ("LayerNorm", "RMSNorm", "MultiheadAttention"):
        return base, last_axis
    if name == "GroupNorm" or room in ("batchnorm", "upsampling"):
        return base, second_axis
    space = _space_of(base)
    return (base, _of_space(space)) if room in _IMAGES and space else None


def _space_of(kind: type) -> int:
    found = _SPACE.search(kind.__name__)
    return int(found[1]) if found else 0


def _of_space(space: int) -> AxisRule:
    """The channels are in front of so many axes of space; the batch may be left out."""
    return {space + 1: 0, space + 2: 1}.get
