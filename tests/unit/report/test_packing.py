"""Numbers as levels: which code stands for what, and how much is lost."""

from __future__ import annotations

import base64
import zlib

import numpy as np
import pytest

from smd_agent.report.heatmaps import ABSENT, packed


def codes_of(told, shape):
    data = zlib.decompress(base64.b64decode(told["data"]))
    return np.frombuffer(data, "<u2" if told["bits"] == 16 else "u1").reshape(shape)


@pytest.mark.parametrize("bits", [8, 16])
def test_what_is_no_number_has_a_code_of_its_own(bits):
    grid = np.array([[ABSENT, 0.0, 1e-6, 10.0, np.inf, np.nan]])
    codes = codes_of(packed(grid, False, bits), grid.shape)
    last = 2**bits - 3
    assert codes.tolist() == [[0, 1, 2, last, last + 1, last + 2]]


@pytest.mark.parametrize("bits, error", [(8, 0.05), (16, 3e-4)])
def test_levels_give_numbers_back(bits, error):
    grid = np.exp(np.linspace(np.log(1e-8), np.log(1e2), 1001))[None, :]
    told = packed(grid, False, bits)
    share = (codes_of(told, grid.shape).astype(float) - 2) / (2**bits - 5)
    read = told["low"] * (told["high"] / told["low"]) ** share
    assert np.abs(read / grid - 1).max() < error


def test_shares_go_from_none_to_all():
    grid = np.array([[0.0, 0.5, 1.0, 3.0]])
    told = packed(grid, True, 8)
    assert (told["low"], told["high"], told["log"]) == (0.0, 1.0, False)
    assert codes_of(told, grid.shape).tolist() == [[1, 128, 253, 253]]


def test_a_larger_number_never_has_a_smaller_code():
    grid = np.array([[ABSENT, 0.0, *np.sort(np.random.default_rng(1).lognormal(0, 9, 500)), np.inf]])
    for bits in (8, 16):
        assert (np.diff(codes_of(packed(grid, False, bits), grid.shape).astype(int)) >= 0).all()


def test_one_number_and_none():
    assert codes_of(packed(np.array([[7.0]]), False, 8), (1,)).tolist() == [253]
    assert codes_of(packed(np.zeros((0, 3)), False, 8), (0,)).size == 0
    assert codes_of(packed(np.array([[ABSENT]]), False, 8), (1,)).tolist() == [0]
