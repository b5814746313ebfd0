"""Parameters of a step as the collection ``parameters`` tells of them: trained, frozen, forgotten."""

from __future__ import annotations

import json
from typing import NamedTuple

from smd_agent.core.collection_keys import CollectionKeys
from smd_agent.framework.training_facts import MARKS, PARAMETERS
from smd_agent.rules.step_view import StepView


class Fact(NamedTuple):
    """The facts of a parameter.

    requires_grad: whether it can be trained.
    optimizer: which optimizer has it, with its group, such as ``AdamW/group_0``; None if no one was given it.
    gradient: whether it had one when the optimizer updated.
    registered: whether the model knows of it; else it holds it in a plain list or dict.
    mark: one of ``training_facts.MARKS``, a reason why nothing trains it though it can be trained; empty without.
    idle: whether it is frozen, and makes an adapter add nothing.
    """

    requires_grad: bool
    optimizer: str | None
    gradient: bool
    registered: bool = True
    mark: str = ""
    idle: bool = False


def known_parameters(step: StepView) -> dict[str, dict[str, Fact]]:
    """Return what a step says of parameters, by model and by the names that their values have."""
    found = {}
    for name in step.names(CollectionKeys.PARAMETERS):
        facts = _parsed(str(step.single(name)))
        if facts is not None:
            found[name.removeprefix(PARAMETERS)] = facts
    return found


def _parsed(text: str) -> dict[str, Fact] | None:
    try:
        told = json.loads(text)
        return {
            str(name): Fact(
                bool(one["requires_grad"]),
                one["optimizer"],
                bool(one["gradient"]),
                bool(one.get("registered", True)),
                next((mark for mark in MARKS if one.get(mark)), ""),
                bool(one.get("idle", False)),
            )
            for name, one in told.items()
        }
    except (ValueError, AttributeError, KeyError, TypeError):
        return None
