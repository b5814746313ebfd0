"""Blocks, parameters and Trainers as Gluon's own classes hold them.

Nothing is asked of an object: a class of the program's may have properties and methods of its own that count, compute
or raise; see ``framework.plain_access``. Each block is walked into once, so that a walk ends where blocks hold each
other in a circle.
"""

from __future__ import annotations

from typing import Any

from mxnet.gluon import Block, Constant, Parameter
from mxnet.ndarray import NDArray

from smd_agent.framework.plain_access import attribute, elements_of, is_a, pairs_of, text_of

_TRAINED = ("write", "add")


def name_of(block: Block) -> str:
    """The name of a block, by which what it gets and returns is saved."""
    return _text(block, "_name")


def children(block: Block) -> list[Block]:
    """The blocks right below one."""
    return [child for _, child in pairs_of(attribute(block, "_children")) if is_a(child, Block)]


def blocks_in(block: Block) -> list[Block]:
    """A block and all blocks below it, each once, from the inside out, as ``Block.apply`` has them."""
    found: list[Block] = []
    _walk(block, found, set())
    return found


def _walk(block: Block, found: list[Block], seen: set[int]) -> None:
    if id(block) not in seen:
        seen.add(id(block))
        for child in children(block):
            _walk(child, found, seen)
        found.append(block)


def own_parameters(block: Block) -> list[Parameter]:
    """The parameters that a block itself has."""
    return [one for _, one in pairs_of(_held(block)) if is_a(one, Parameter)]


def block_of(parameters: list[Parameter]) -> Block:
    """A block of ours that has these parameters; it takes no number of the program's blocks."""
    block = Block(prefix="trainer_")
    _held(block).update((f"{id(parameter)}", parameter) for parameter in parameters)
    return block


def _held(block: Block) -> Any:
    return attribute(attribute(block, "_params"), "_params")


def parameter_name(parameter: Parameter) -> str:
    """The name that a parameter was given."""
    return _text(parameter, "name")


def can_be_trained(parameter: Parameter) -> bool:
    """True if gradients of a parameter are computed."""
    wanted: object = attribute(parameter, "_grad_req")
    return bool(type(wanted) is str and wanted in _TRAINED and not is_a(parameter, Constant))


def adds_gradients(parameter: Parameter) -> bool:
    """True if a backward pass adds to a parameter's gradients, and does not write them anew."""
    wanted: object = attribute(parameter, "_grad_req")
    return bool(type(wanted) is str and wanted == "add")


def is_sparse(parameter: Parameter) -> bool:
    """True if a parameter's values live in rows of its Trainer's store."""
    return bool(attribute(parameter, "_stype", "default") != "default")


def values_of(parameter: Parameter) -> list[NDArray]:
    """A dense parameter's values on each context; empty as long as it has none, and for a sparse one."""
    return [] if is_sparse(parameter) else [*elements_of(attribute(parameter, "_data"))]


def awaits_values(parameter: Parameter) -> bool:
    """True if a dense parameter has no values yet."""
    return not (is_sparse(parameter) or values_of(parameter))


def gradients_of(parameter: Parameter) -> list[NDArray]:
    """A parameter's gradients on each context; empty as long as it has none."""
    return [*elements_of(attribute(parameter, "_grad"))]


def contexts_of(parameter: Parameter) -> list[Any]:
    """The contexts on which the parameter is or is going to be; empty before ``initialize``."""
    if attribute(parameter, "_data") is not None:
        return [*elements_of(attribute(parameter, "_ctx_list"))]
    waiting = [*elements_of(attribute(parameter, "_deferred_init"))]
    return [*elements_of(waiting[1])] if waiting else []


def shape_of(parameter: Parameter) -> tuple[int, ...] | None:
    """The shape of a parameter; None as long as nothing of it is known."""
    shape = attribute(parameter, "_shape")
    return None if shape is None else tuple(elements_of(shape))


def trainer_of(parameter: Parameter) -> Any:
    """The Trainer that a parameter was given to last, None if there is none."""
    return attribute(parameter, "_trainer")


def parameters_of(trainer: Any) -> list[Parameter]:
    """The parameters that a Trainer was given, by their indices."""
    return [*elements_of(attribute(trainer, "_params"))]


def updates_on_store(trainer: Any) -> bool:
    """True if a Trainer's store updates the parameters, by gradients that it sums itself."""
    return bool(attribute(trainer, "_update_on_kvstore", False))


def _text(owner: object, name: str) -> str:
    found = attribute(owner, name)
    return text_of(found, 0) if is_a(found, str) else type(owner).__name__.lower()
