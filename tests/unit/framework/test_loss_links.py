"""The link from where a backward pass starts to a loss that has been saved."""

from __future__ import annotations

import pytest

from smd_agent.framework.loss_links import FARTHEST, comes_from


def rescaled(node):
    """Nodes are numbers, each made from the one below it."""
    return node - 1 if node > 0 else None


@pytest.mark.parametrize("distance, linked", [(0, True), (1, True), (FARTHEST, True), (FARTHEST + 1, False)])
def test_a_loss_is_found_up_to_the_farthest_operation(distance, linked):
    assert comes_from(100 + distance, lambda node: node == 100, rescaled) is linked


def test_the_walk_ends_where_something_else_was_computed():
    assert not comes_from(2, lambda node: node == -1, rescaled)


def test_without_a_graph_there_is_no_link():
    assert not comes_from(None, lambda node: True, rescaled)
