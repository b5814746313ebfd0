"""Facts about where a training runs: which there are, what is not among them, and that asking changes nothing."""

from __future__ import annotations

import getpass
import json
import platform
import random
import socket
import sys

import numpy as np
import pytest

import smd_agent
from smd_agent.framework.environment import environment


def test_versions_and_the_machine():
    found = environment()
    assert found["versions"]["smd_agent"] == smd_agent.__version__
    assert found["versions"]["Python"] == platform.python_version()
    assert found["versions"]["NumPy"] == np.__version__
    assert found["machine"]["system"] == f"{platform.system()} {platform.machine()}"
    assert int(found["machine"]["cores"]) > 0


def test_no_user_host_folder_argument_or_variable_is_named(monkeypatch):
    monkeypatch.setattr(sys, "argv", ["/private/place/train.py", "--token", "secret-word"])
    monkeypatch.setenv("SOME_KEY", "secret-value")
    found = environment()
    assert found["program"] == {"script": "train.py"}
    text = json.dumps(found)
    for word in ("/private", "secret", socket.gethostname(), f"/{getpass.getuser()}"):
        assert word not in text


def test_the_state_of_random_numbers_is_told_apart_and_left_as_it_is():
    def told(python, numpy):
        random.seed(python)
        np.random.seed(numpy)
        found = environment()["random state"]
        assert (random.random(), np.random.random()) == (random.Random(python).random(), _first_of(numpy))
        return found

    same, again, other, third = told(1, 2), told(1, 2), told(3, 2), told(1, 3)
    assert same == again
    assert other["NumPy"] == same["NumPy"]
    assert other["Python"] != same["Python"]
    assert third["NumPy"] != same["NumPy"]


def _first_of(seed):
    return np.random.RandomState(seed).random_sample()


def test_a_source_that_fails_takes_nothing_else_with_it(capsys):
    def failing():
        yield "seeds", "first", 7
        raise RuntimeError

    found = environment(failing, lambda: [("seeds", "last", 8), ("seeds", "none", None)])
    assert found["seeds"] == {"first": "7", "last": "8"}
    assert found["machine"]
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("argv", [[], [7]])
def test_an_argv_that_the_program_has_broken(monkeypatch, argv):
    monkeypatch.setattr(sys, "argv", argv)
    assert environment()["machine"]
