"""Unedited training loops: names, steps, modes and values against what the script itself computes in a plain run."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")


@pytest.fixture(scope="module")
def scenes(play_script):
    return play_script("torch_step_scenes.py")


def test_a_plain_loop(scenes):
    assert scenes.check("plain_loop") == 4 * (4 + 1 + 1 + 4) + 2
