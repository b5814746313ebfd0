"""The one collection that a tensor is shown under."""

from __future__ import annotations

import pytest

from smd_agent.core.display_collection import settle


@pytest.mark.parametrize(
    "collections, home",
    [
        ([("weights", True)], ("weights", True)),
        ([("all", True), ("weights", True), ("default", True)], ("weights", True)),
        ([("outputs", True), ("layers", True)], ("layers", True)),
        ([("outputs", True), ("layers", False)], ("outputs", True)),
        ([("all", True), ("weights", False)], ("weights", False)),
        ([("all", True), ("losses", True)], ("losses", False)),
        ([("mine", True), ("losses", True)], ("mine", True)),
        ([("all", True)], ("all", True)),
        ([("tensorflow_summaries", True)], ("tensorflow_summaries", False)),
    ],
)
def test_which_one_it_is(collections, home):
    for order in (collections, collections[::-1]):
        shown_in = {}
        settle(shown_in, "x/kernel:0", order)
        assert shown_in["x/kernel:0"] == shown_in["x/kernel"] == (home[0], "x/kernel:0", home[1])
