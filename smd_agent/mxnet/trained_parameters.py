"""Parameters of a Gluon block that are trained, and their roles."""

from __future__ import annotations

from mxnet.gluon import Parameter

from smd_agent.framework.weights_or_biases import Parameter as Role
from smd_agent.mxnet.plain_access import can_be_trained, shape_of, trainer_of


def are_trained(pairs: list[tuple[str, Parameter]]) -> list[bool | None]:
    """True if each parameter of a block is trained; None for those of layers of which some are, and where none is.

    Without a Trainer there is nothing to go by but ``grad_req``.
    """
    wanted = [can_be_trained(parameter) for _, parameter in pairs]
    given = [is_wanted and trainer_of(pair[1]) is not None for pair, is_wanted in zip(pairs, wanted, strict=True)]
    trained = given if any(given) else wanted
    if not any(trained):
        return [None] * len(pairs)
    layers = {name.rpartition("_")[0] for (name, _), found in zip(pairs, trained, strict=True) if found}
    return [
        True if found else None if name.rpartition("_")[0] in layers else False
        for (name, _), found in zip(pairs, trained, strict=True)
    ]


def with_role(pair: tuple[str, Parameter], trained: bool | None) -> Role:
    """A parameter as the roles see it; ``trained`` as `are_trained` tells it."""
    name, parameter = pair
    shape = shape_of(parameter)
    return Role(name, name.rpartition("_")[2], None if shape is None else len(shape), trained)
