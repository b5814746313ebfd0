"""Search for blocks among all objects that are alive, by the parameters that they own.

It is made only when a block is found that is called as a part of a model whose other parameters are trained too, and
when a Trainer has parameters that nothing trains.
"""

from __future__ import annotations

from mxnet.gluon import Block

from smd_agent.framework.plain_access import own_dict
from smd_agent.interpreter.living_objects import living
from smd_agent.mxnet.plain_access import own_parameters
from smd_agent.mxnet.step_counter import TrackedBlock


def owner_of(block: Block, others: set[int]) -> Block | None:
    """The smallest block around one that holds other trained parameters as well, or None.

    Args:
        block: called by itself.
        others: ids of trained parameters that belong to no known block yet.
    """
    best: tuple[int, int] | None = None
    owner = None
    for candidate in _living_blocks():
        tracked = TrackedBlock(candidate)
        parts = tracked.parts()
        if candidate is block or not any(part is block for part in parts):
            continue
        held = sum(1 for _, parameter in tracked.parameters() if id(parameter) in others)
        # Most of the others first, then the fewest parts.
        rank = (-held, len(parts))
        if held and (best is None or rank < best):
            best, owner = rank, candidate
    return owner


def is_one_of_a_block(parameters: set[int]) -> bool:
    """True if any of these, given by their ids, belongs to a block that is alive."""
    return any(id(one) in parameters for block in _living_blocks() for one in own_parameters(block))


def held_blocks() -> list[Block]:
    """All blocks that the program holds, and what is inside of them."""
    # One that is let go of lives on until garbage is collected, with all that is inside of it.
    found = [TrackedBlock(block) for block in _living_blocks()]
    gone = {id(part) for tracked in found if tracked.is_let_go for part in tracked.parts()}
    held = [part for tracked in found if id(tracked.model) not in gone for part in tracked.parts()]
    return [*{id(part): part for part in held}.values()]


def _living_blocks() -> list[Block]:
    # One that is still being made has no parts to ask for.
    return [block for block in living(Block) if "_children" in own_dict(block)]
