"""Parts of modules and optimizers, read from their own dicts: nothing that a class can override is called.

``parameters``, ``modules``, ``named_children`` and their like may be the program's, with other arguments, other results
or side effects, and so may ``__getattr__``, ``__len__``, ``__eq__`` and ``__hash__``. Modules are told apart by their
ids, and each is walked into once, so that a walk ends where modules hold each other in a circle.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from smd_agent.framework.plain_access import attribute, in_class, is_a, pairs_of, text_of
from smd_agent.framework.plain_access import own_dict as instance_dict
from smd_agent.framework.weak_references import WeakIdentityMap

Module = torch.nn.Module
LossModule = torch.nn.modules.loss._Loss

own_dict: Any = vars(Module)["__dict__"].__get__
"""Gives what a module has itself."""

_SCRIPT = "torch.jit._script"
_ABSENT = object()
_PLAIN = (bool, int, float, str, type(None))


def held(module: Module, kind: str) -> list[tuple[str, Any]]:
    """The content of a module's ``_modules``, ``_parameters`` or ``_buffers``, but for what is None, by name."""
    own = own_dict(module)
    if "_modules" not in own and is_a(traced := own.get("_actual_script_module"), Module):
        own = own_dict(traced)
    found = own.get(kind)
    if not found and type(found) is dict:
        return []
    pairs = found.items() if type(found).__module__ == _SCRIPT else pairs_of(found)
    return [(text_of(key, place), value) for place, (key, value) in enumerate(pairs) if value is not None]


def children(module: Module) -> list[tuple[str, Module]]:
    """The modules right below one, by name."""
    return [(name, child) for name, child in held(module, "_modules") if is_a(child, Module)]


def own_parameters(module: Module) -> list[tuple[str, torch.nn.Parameter]]:
    """The parameters that a module itself has, by name; what stands in their place for a while may be other tensors."""
    found: list[tuple[str, Any]] = held(module, "_parameters")
    return [(name, one) for name, one in found if issubclass(type(one), torch.Tensor)]


def parts(module: Module) -> list[Module]:
    """A module and all below it, each once, in the order in which ``modules`` has them."""
    seen: set[int] = set()
    found: list[Module] = []
    waiting = [module]
    while waiting:
        part = waiting.pop()
        if id(part) not in seen:
            seen.add(id(part))
            found.append(part)
            waiting.extend(child for _, child in reversed(children(part)))
    return found


def parameters(module: Module) -> list[torch.nn.Parameter]:
    """The parameters of a module and of all below it, each once."""
    found = {id(one): one for part in parts(module) for _, one in own_parameters(part)}
    return [*found.values()]


def parameter_ids(module: Module) -> set[int]:
    """The ids of the same."""
    return {id(one) for part in parts(module) for _, one in own_parameters(part)}


def holds(module: Module, part: Module) -> bool:
    """True if a module is another one or somewhere below it."""
    return any(one is part for one in parts(module))


def is_training(module: Module) -> bool:
    """True if a module is in training mode; one that has a flag of another kind, as far as that tells."""
    flag = own_dict(module).get("training", _ABSENT)
    if flag is _ABSENT:
        flag = _training_by_class(module)
    return flag is True or type(flag) not in _PLAIN or bool(flag)


def tells_plainly(module: Module) -> bool:
    """True if reading a module's attribute ``training`` runs nothing of its class."""
    kind = type(module)
    is_usual = in_class(kind, "__getattribute__") is object.__getattribute__
    return is_usual and in_class(kind, "training", _ABSENT) is _ABSENT and "training" in own_dict(module)


def _training_by_class(module: Module) -> Any:
    kind = type(module)
    if issubclass(kind, torch.jit.ScriptModule) and kind.__module__.startswith("torch."):
        # It is kept where only PyTorch's own attribute access finds it.
        return module.training
    found = in_class(kind, "training", True)
    return found if type(found) in _PLAIN else True


def is_parameter(value: object) -> bool:
    """True if something is a parameter, one of a class of tensors that is none of PyTorch's among them."""
    if is_a(value, torch.nn.Parameter):
        return True
    kind = type(value)
    return kind is not torch.Tensor and issubclass(kind, torch.Tensor) and instance_dict(value).get("_is_param") is True


# Of optimizers that keep their groups where only a property of theirs finds them: those that were given.
_given: WeakIdentityMap[Any, list[Any]] = WeakIdentityMap()


def given_group(optimizer: Any, group: Any) -> None:
    """An optimizer was given this group of parameters."""
    if not is_a(attribute(optimizer, "param_groups"), list):
        (_given.get(optimizer) or _given.set(optimizer, [])).append(group)


def groups_of(optimizer: Any) -> list[dict[str, Any]]:
    """The groups of an optimizer's parameters, as plain dicts; what changes a group later does not change these."""
    groups = attribute(optimizer, "param_groups")
    found = list.__iter__(groups) if is_a(groups, list) else _given.get(optimizer) or ()
    return [dict(pairs_of(group)) for group in found]


def optimized(optimizer: Any) -> list[torch.Tensor]:
    """The parameters of an optimizer."""
    return [parameter for group in groups_of(optimizer) for parameter in in_group(group)]


def in_group(group: dict[str, Any]) -> list[torch.Tensor]:
    """The parameters of one group of an optimizer's."""
    found: Any = group.get("params")
    return [one for one in list.__iter__(found) if is_a(one, torch.Tensor)] if is_a(found, list) else []


def named_parts(module: Module, prefix: str = "", above: tuple[int, ...] = ()) -> Iterator[tuple[str, Module]]:
    """A module and all below it under each of their names; one that is inside of itself once."""
    if id(module) not in above:
        yield prefix, module
        for name, child in children(module):
            yield from named_parts(child, f"{prefix}.{name}" if prefix else name, (*above, id(module)))
