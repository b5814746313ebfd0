"""The order in which the tensors of a step come to be: what differs first in it is not caused by what comes later.

A step opens with its inputs and weights; then come the outputs of its layers, its loss, its gradients from the last
layer to the first, the settings that the optimizer takes, and the updates. Boosted rounds have hyperparameters first,
then labels, trees, predictions, metrics, and what is made of them.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Iterable, Mapping, Sequence

from smd_agent.core.collection import Collection
from smd_agent.core.collection_keys import CollectionKeys


class Kind(enum.IntEnum):
    """The kinds of tensors, in the order of a step."""

    CONFIGURATION = 0
    INPUT = 1
    WEIGHT = 2
    TREE = 3
    OUTPUT = 4
    LOSS = 5
    GRADIENT = 6
    SETTING = 7
    UPDATE = 8
    RESULT = 9


# A tensor of several collections is of the first of these.
_COLLECTIONS = {
    CollectionKeys.HYPERPARAMETERS: Kind.CONFIGURATION,
    CollectionKeys.DATA_FACTS: Kind.CONFIGURATION,
    CollectionKeys.INPUT_DIGESTS: Kind.INPUT,
    CollectionKeys.INPUTS: Kind.INPUT,
    CollectionKeys.LABELS: Kind.INPUT,
    CollectionKeys.OPTIMIZER: Kind.SETTING,
    CollectionKeys.PARAMETERS: Kind.SETTING,
    CollectionKeys.UPDATES: Kind.UPDATE,
    CollectionKeys.OPTIMIZER_VARIABLES: Kind.UPDATE,
    CollectionKeys.GRADIENTS: Kind.GRADIENT,
    CollectionKeys.TREES: Kind.TREE,
    CollectionKeys.WEIGHTS: Kind.WEIGHT,
    CollectionKeys.BIASES: Kind.WEIGHT,
    CollectionKeys.PREDICTIONS: Kind.OUTPUT,
    CollectionKeys.FEATURE_IMPORTANCE: Kind.RESULT,
    CollectionKeys.AVERAGE_SHAP: Kind.RESULT,
    CollectionKeys.FULL_SHAP: Kind.RESULT,
    CollectionKeys.LOSSES: Kind.LOSS,
    CollectionKeys.METRICS: Kind.LOSS,
    CollectionKeys.SM_METRICS: Kind.LOSS,
}
UPDATE_RATIO = "update_ratio/"
"""What the name of an update begins with that is relative to its parameter."""

_LAYER_INPUT = re.compile(r"_input_[0-9]+")


def kinds_of(stored: Sequence[str], collections: Mapping[str, Collection]) -> dict[str, Kind]:
    """Return the kind of each tensor of a step; those of no collection that tells are outputs.

    Args:
        stored: names of the tensors, in the order in which the step has them.
        collections: of the run, by name.
    """
    members = [(collections[name], kind) for name, kind in _COLLECTIONS.items() if name in collections]
    kinds = {
        name: next((kind for collection, kind in members if collection.matches(name)), Kind.OUTPUT) for name in stored
    }
    for name in stored:
        # What layers are called with before any of them has returned is what the model was given.
        if kinds[name] is Kind.OUTPUT:
            if _LAYER_INPUT.search(name) is None:
                break
            kinds[name] = Kind.INPUT
    return kinds


def in_order(stored: Sequence[str], kinds: Mapping[str, Kind]) -> list[str]:
    """Return the names in the order in which they come to be; gradients from the last layer to the first."""
    layers = {
        layer: number for number, layer in enumerate(dict.fromkeys(map(layer_of, _of(kinds, Kind.GRADIENT, stored))))
    }
    places = {name: number for number, name in enumerate(stored)}

    def key(name: str) -> tuple[int, int, int]:
        kind = kinds[name]
        return kind, -layers[layer_of(name)] if kind is Kind.GRADIENT else 0, places[name]

    return sorted(stored, key=key)


def _of(kinds: Mapping[str, Kind], kind: Kind, names: Iterable[str]) -> list[str]:
    return [name for name in names if kinds[name] is kind]


def layer_of(name: str) -> str:
    """Return the name without its last part: that of the layer whose parameter it is."""
    return re.split(r"[./](?=[^./]*\Z)", name)[0]
