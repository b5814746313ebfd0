"""Objects that are never freed."""

from __future__ import annotations

import subprocess
import sys
import weakref

import pytest

from smd_agent.interpreter.never_freed import never_free

PROGRAM = """
import os
from smd_agent.interpreter.never_freed import never_free

class Loud:
    def __del__(self, write=os.write):
        write(1, b"freed")

one = Loud()
"""


class Object:
    pass


def test_it_lives_on_when_nobody_holds_it():
    one = Object()
    never_free((one,))
    reference = weakref.ref(one)
    del one
    assert reference() is not None


@pytest.mark.parametrize("line, said", [("", "freed"), ("never_free([one])", "")])
def test_it_is_not_freed_when_the_interpreter_ends(line, said):
    program = [sys.executable, "-c", PROGRAM + line]
    assert subprocess.run(program, capture_output=True, text=True, timeout=60, check=True).stdout == said
