"""Facts of a training step that are no tensors of the model: their names, and how they are computed.

``update/<parameter>``        how far an update has moved a parameter: l2 of the difference, float.
``update_ratio/<parameter>``  the same divided by the parameter's l2 before it; 1 where that was 0 and has moved.
``optimizer/<setting>``       a setting of the optimizer, as the update used it; of a scaler of losses its ``scale``,
                              and whether the update was ``skipped``, 0 or 1.
``input_digest/<model>_<i>``  64 bits, int64, that tell apart what a model was called with in its i-th call of the step.
``parameters/<model>``        JSON text, what is known of each of the model's parameters.
``loads/<class>``             JSON text, what a load such as ``load_state_dict`` left out or could not change.
``usage/<what>/<fact>``       a number, how the program uses an optimizer, a model or a loss.
``line/<what>``               JSON text, the line of the program where it does so, see ``program_lines``.
``data_facts/<what>/<fact>``  a number of the training's labels or of an evaluation set; of XGBoost alone.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from smd_agent.core.collection_keys import CollectionKeys

UPDATE = "update/"
UPDATE_RATIO = "update_ratio/"
OPTIMIZER = "optimizer/"
INPUT_DIGEST = "input_digest/"
PARAMETERS = "parameters/"
LOADS = "loads/"
LINE = "line/"
USAGE = "usage/"
DATA_FACTS = "data_facts/"

USED_INPUT = "input"
"""What inputs of models are in the names of ``usage``, see ``model_inputs``; and two facts of theirs."""
AS_IT_IS = "as_it_is"
INTEGERS = "integers"

# By which tensors of these names join the collections of all frameworks.
COLLECTIONS: Mapping[str, tuple[str, ...]] = {
    CollectionKeys.UPDATES: (f"^{UPDATE}", f"^{UPDATE_RATIO}"),
    CollectionKeys.OPTIMIZER: (f"^{OPTIMIZER}",),
    CollectionKeys.INPUT_DIGESTS: (f"^{INPUT_DIGEST}",),
    CollectionKeys.PARAMETERS: (f"^{PARAMETERS}", f"^{LOADS}", f"^{LINE}"),
    CollectionKeys.USAGE: (f"^{USAGE}",),
}

LOOKED_AT = 65_536
"""Elements of a tensor that are looked at; of one that has more, ``RUNS`` runs of equal length, spread evenly."""

RUNS = 64


def sample(flat: Any, most: int = LOOKED_AT) -> Any:
    """The part of a flat array or tensor that stands for all of it.

    Args:
        flat: one dimension.
        most: elements that are looked at, a multiple of ``RUNS``.

    Returns:
        It, or where it is longer than ``most``, a view of ``RUNS`` rows, which are ``(64, 1024)`` by default.
    """
    size = flat.shape[0]
    if size <= most:
        return flat
    length = size // RUNS
    return flat[: RUNS * length].reshape(RUNS, length)[:, : most // RUNS]


def scale_of(size: int) -> float:
    """The factor by which the l2 of the part that was looked at estimates that of a tensor of this size."""
    return math.sqrt(max(size / LOOKED_AT, 1.0))


def settings(groups: Sequence[Mapping[str, Any]], names: Iterable[str]) -> Iterator[tuple[str, Any]]:
    """Yield the settings of an optimizer by name; of several groups of parameters, those of each.

    Args:
        groups: the settings of each group of parameters, by their names.
        names: of the settings that are wanted; one that is a tuple, such as ``betas``, is numbered from 1.
    """
    for number, group in enumerate(groups):
        prefix = f"group_{number}/" if len(groups) > 1 else ""
        for name in names:
            value = group.get(name)
            if isinstance(value, (tuple, list)):
                for i, part in enumerate(value, 1):
                    yield f"{prefix}{name.removesuffix('s')}_{i}", part
            elif value is not None and not isinstance(value, (bool, str)):
                yield f"{prefix}{name}", value


NOT_NOW = "another"
"""In the place of an optimizer: the parameter was given to one, which has not updated in this step."""


BEHIND = "behind"
UNFROZEN = "unfrozen"
UNTRACKED = "untracked"
MARKS = (BEHIND, UNFROZEN, UNTRACKED)
"""Reasons why nothing trains a parameter that can be trained.

It works on what parameters that are trained have made, and was left out; it was frozen when the step was traced; a
layer holds it that does not know of it.
"""


def described(parameters: Mapping[str, Mapping[str, object]]) -> str:
    """The facts of a model's parameters, as the text that is saved.

    Args:
        parameters: by name, of each: ``requires_grad``; ``optimizer``, the one that updates it with its group, None
            if it was given to none, or ``NOT_NOW``; ``gradient``, whether it has one when the optimizer updates;
            ``registered``, false where the model uses it and does not know of it, else left out; ``MARKS``, true where
            one holds, else left out; ``idle``, true where it is frozen and all 0, so that an adapter adds nothing, else
            left out.
    """
    return json.dumps(parameters, separators=(",", ":"))


def as_text(text: str) -> npt.NDArray[np.str_]:
    """A text as an array that can be saved, of shape (1,)."""
    return np.array([text])
