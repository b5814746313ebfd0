"""Search for modules and parameters that a model holds in plain lists, tuples or dicts, which do not register them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any, NamedTuple

import torch

from smd_agent.framework.plain_access import is_a, text_of
from smd_agent.pytorch.model.wrappers import named_layers
from smd_agent.pytorch.plain_access import own_dict, own_parameters

_OWN = frozenset(vars(torch.nn.Module()))
# Of one container, and of containers inside of each other.
_ELEMENTS = 256
_DEPTH = 3
# A single one is held like that to keep it out of the model on purpose.
_FEWEST = 2


class Unregistered(NamedTuple):
    """A parameter of a model that does not know of it.

    name: the path that leads to it, such as ``blocks.0.weight``.
    parameter: it.
    module: has it, or the container that it is in.
    """

    name: str
    parameter: torch.nn.Parameter
    module: torch.nn.Module


def unregistered_parameters(model: torch.nn.Module) -> list[Unregistered]:
    """The parameters in containers of Python's that modules of a model hold, or whose modules they hold, each once.

    Of a container that holds a single module or parameter nothing is said; that is how programs hide one on purpose.
    """
    layers = [*named_layers(model)]
    seen = {id(layer) for _, layer in layers}
    seen.update(id(parameter) for _, layer in layers for _, parameter in own_parameters(layer))
    found: list[Unregistered] = []
    for path, module in layers:
        for name, thing in _held(module):
            if id(thing) in seen:
                continue
            seen.add(id(thing))
            place = f"{path}.{name}" if path else name
            if is_a(thing, torch.nn.Parameter):
                found.append(Unregistered(place, thing, module))
                continue
            for below, layer in named_layers(thing):
                if layer is not thing and id(layer) in seen:
                    continue
                seen.add(id(layer))
                inner = f"{place}.{below}" if below else place
                # It may hold others in the same way.
                layers.append((inner, layer))
                for own, parameter in own_parameters(layer):
                    if id(parameter) not in seen:
                        seen.add(id(parameter))
                        found.append(Unregistered(f"{inner}.{own}", parameter, layer))
    return found


def _held(module: torch.nn.Module) -> Iterator[tuple[str, Any]]:
    """Modules and parameters in the containers that are a module's attributes."""
    if type(module).__module__.partition(".")[0] == "torch":
        return
    for name, value in [*own_dict(module).items()]:
        if name not in _OWN and _is_plain(value):
            things = [*_in(name, value, _DEPTH, set())]
            if len(things) >= _FEWEST:
                yield from things


def _in(name: str, container: Any, depth: int, seen: set[int]) -> Iterator[tuple[str, Any]]:
    if id(container) in seen:
        return
    seen.add(id(container))
    pairs: Iterable[tuple[Any, Any]] = container.items() if type(container) is dict else enumerate(container)
    for place, (key, value) in enumerate([*islice(pairs, _ELEMENTS)]):
        if _is_plain(value) and depth > 1:
            yield from _in(f"{name}.{text_of(key, place)}", value, depth - 1, seen)
        elif is_a(value, (torch.nn.Module, torch.nn.Parameter)):
            yield f"{name}.{text_of(key, place)}", value


def _is_plain(value: object) -> bool:
    """True if something is one of Python's containers."""
    kind = type(value)
    return kind is list or kind is tuple or kind is dict
