"""The line of the program that runs: the innermost one of no library."""

from __future__ import annotations

import inspect
import json

import pytest

from smd_agent.framework.program_lines import line_in
from smd_agent.interpreter.callers import callers


def line_of_who_asks():
    return line_in(callers())


def test_the_innermost_line():
    text = line_of_who_asks()
    file, number, source = json.loads(text)
    assert (file, source) == (__file__, "text = line_of_who_asks()")
    assert number == inspect.currentframe().f_lineno - 3


def frame_in(path):
    """The frame of a file's line 2."""
    frames = []
    exec(compile("\nfound()\n", path, "exec"), {"found": lambda: frames.append(next(callers()))})
    return frames


@pytest.mark.parametrize("path", ["/x/lib/python3.11/site-packages/torch/nn/modules/module.py", json.__file__, "<x>"])
def test_libraries_are_passed_over(path):
    assert frame_in(path)[0].f_code.co_filename == path
    assert line_in(frame_in(path)) is None


def test_a_cell_of_a_notebook():
    assert json.loads(line_in(frame_in("<ipython-input-1-ab>")))[:2] == ["<ipython-input-1-ab>", 2]
