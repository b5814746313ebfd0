"""Orders to make a step again, and results: texts that ``replay`` and the process that it starts exchange."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field, fields

from smd_agent.core.json_fields import object_in


@dataclass(frozen=True)
class Order:
    """An order.

    Attributes:
        bundle: the folder of the bundle; empty where the program trains again, as it is, up to the step.
        result: the file for what comes of it.
        dtype, device: what is computed in, and on; empty: as in the run.
        eager: whether compiled code runs as it was written.
        at: the training step of the program in which it is made; without a bundle the first that is watched.
        until: without a bundle, the last that is watched.
    """

    bundle: str
    result: str
    dtype: str = ""
    device: str = ""
    eager: bool = False
    at: int = 0
    until: int = 0

    @property
    def changes(self) -> bool:
        """True if the step is to be made in another way than in the run."""
        return bool(self.dtype or self.device or self.eager)


@dataclass
class Replayed:
    """The result.

    Attributes:
        reached: whether a model was called that the bundle is of, or a step has begun that is watched.
        passed: whether a backward pass has begun; without a bundle, whether the loss is known.
        step: the training step, where there is no bundle.
        loss: of that, as text.
        broken: the gradients that are not finite, where those of the run were not.
        maker: of the value that is not finite, in words; empty where there is none.
        differs: in what the step is not that of the run, in words; empty where it is the same, or was not compared.
        alike: whether it is the same but for what a compiler had made of it: it goes wrong without that, too.
        spoilt: whether weights had such values before the step.
        missing: what of the bundle was not put in place, in words.
        error: that has ended the step, in words.
        problem: why the step was not made, in words.
    """

    reached: bool = False
    passed: bool = False
    step: int = -1
    loss: str = ""
    broken: list[str] = field(default_factory=list)
    maker: str = ""
    differs: str = ""
    alike: bool = False
    spoilt: bool = False
    missing: list[str] = field(default_factory=list)
    error: str = ""
    problem: str = ""


def text_of(value: Order | Replayed) -> str:
    """Return the text of one of them."""
    return json.dumps(asdict(value))


def order_of(text: str) -> Order:
    """Return an order; its text is the agent's own."""
    return Order(**(object_in(text) or {}))


def replayed_of(text: str) -> Replayed:
    """Return a result; what a text does not say is left out."""
    found = object_in(text) or {}
    return Replayed(**{one.name: found[one.name] for one in fields(Replayed) if one.name in found})
