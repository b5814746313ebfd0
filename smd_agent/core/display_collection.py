"""Display collection of a tensor: the one of its collections under which it is shown where only one can be."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from smd_agent.core.collection_keys import SCALAR_COLLECTIONS, SUMMARY_COLLECTIONS, CollectionKeys
from smd_agent.core.names import without_output_numbers

_WIDE = (CollectionKeys.ALL, CollectionKeys.DEFAULT)


class DisplayCollection(NamedTuple):
    """The collection that a tensor is shown under.

    Attributes:
        collection: its name.
        tensor: the tensor's name.
        histogram: whether a histogram of it is wanted.
    """

    collection: str
    tensor: str
    histogram: bool


DisplayCollections = dict[str, DisplayCollection]
"""The display collections of tensors by their names, and by these as they stand in the names of their reductions."""


@dataclass
class Display:
    """The display of a run's tensors in TensorBoard.

    Attributes:
        shown_in: the display collections of the tensors that have been saved.
        pictures: distributions of tensors are wanted; to be set before the first step.
    """

    shown_in: DisplayCollections = field(default_factory=dict)
    pictures: bool = False


def settle(shown_in: DisplayCollections, tensor: str, collections: Iterable[tuple[str, bool]]) -> None:
    """Enter a tensor's display collection.

    Collections of which histograms are wanted come first, ``all`` and ``default`` last.

    Args:
        shown_in: gets it.
        tensor: the tensor's name.
        collections: those it is in, at least one; each with whether histograms are wanted of what is in it.
    """
    found = {
        name: wanted and name not in SCALAR_COLLECTIONS and name not in SUMMARY_COLLECTIONS
        for name, wanted in collections
    }
    # By name in the end: the order of a set would be another one in every process.
    collection = min(found, key=lambda name: (name in _WIDE, not found[name], name))
    shown_in[tensor] = shown_in[without_output_numbers(tensor)] = DisplayCollection(
        collection, tensor, found[collection]
    )
