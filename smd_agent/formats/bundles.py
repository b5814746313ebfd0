"""Bundles: what a training step was given that went wrong, or was asked for, by which it can be made again.

``bundles/step_<N>/bundle.json`` is an object with the fields of ``Bundle``. Beside it ``tensors.safetensors`` has the
tensors, whose names say what they are:

``weights/<model>/<name>``   a parameter
``buffers/<model>/<name>``   a buffer, as running means are
``given/<path>``             a tensor that the model was called with: ``given/args[0]``, ``given/kwargs['mask']``
``near/<frame>/<path>``      one that a variable of a function has which led to the call, such as the labels; the frame
                             is a place in ``frames``
``random/<device>``          the state of a generator of random numbers before the call, as bytes
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field, fields
from typing import Any

from smd_agent.core.json_fields import object_in

WEIGHTS, BUFFERS, GIVEN, NEAR, RANDOM = "weights/", "buffers/", "given/", "near/", "random/"
LARGEST_BUNDLE = 4 << 20
VERSION = 1
ASKED_FOR = "it was asked for"


@dataclass(frozen=True)
class Bundle:
    """A bundle without its tensors.

    Attributes:
        step: the training step.
        global_step: the same among those of all modes.
        why: it was kept, in words: what went wrong, or ``ASKED_FOR``.
        loss: of the backward pass, as text; empty where there was none.
        model: the name of the model that was called first; empty where there are no tensors, and the step is made again
            by training up to it.
        casts: for which devices operations were cast to which types, each a pair of names.
        frames: of the functions that led to the call, each a pair of a file and a function.
        operations: those of the loss's graph, in the order of the forward: each a pair of a name and a number that is
            the same for the same bits of what was kept for the gradients.
        gradients: those that are there, where they are what went wrong: each a pair of a name and such a number.
        changed: paths of tensors that the program had changed since the call, which are left out.
        notes: what else is to be known, in sentences.
        words: the program and its arguments, as an interpreter is given them.
        compiled: whether the program had had code compiled.
        folder: the current one of the program.
        seconds: of training before it.
        versions: by name, as text.
        version: of this format.
    """

    step: int
    global_step: int
    why: str
    loss: str
    model: str
    casts: list[list[str]] = field(default_factory=list)
    frames: list[list[str]] = field(default_factory=list)
    operations: list[list[Any]] = field(default_factory=list)
    gradients: list[list[Any]] = field(default_factory=list)
    changed: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    words: list[str] = field(default_factory=list)
    compiled: bool = False
    folder: str = ""
    seconds: float = 0.0
    versions: dict[str, str] = field(default_factory=dict)
    version: int = VERSION


_KINDS = {"int": int, "float": float, "bool": bool, "str": str, "dict": dict, "list": list}
_FIELDS = {one.name: _KINDS[str(one.type).partition("[")[0]] for one in fields(Bundle)}
_PAIRS = {"casts": (str, str), "frames": (str, str), "operations": (str, int), "gradients": (str, int)}


def bundle_text(bundle: Bundle) -> str:
    """Return the text of the file."""
    return json.dumps(asdict(bundle), indent=1)


def bundle_of(text: str) -> Bundle | None:
    """Return what the text of a file says; None where it is none, whoever wrote it, or of a later version."""
    found = object_in(text) or {}
    known: dict[str, Any] = {name: found.get(name) for name in _FIELDS}
    if any(type(value) is not _FIELDS[name] for name, value in known.items()) or known["version"] > VERSION:
        return None
    for name, kinds in _PAIRS.items():
        if any(type(pair) is not list or tuple(map(type, pair)) != kinds for pair in known[name]):
            return None
    texts = [*known["changed"], *known["notes"], *known["words"], *known["versions"].values()]
    return Bundle(**known) if all(type(text) is str for text in texts) else None
