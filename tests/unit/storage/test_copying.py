"""Copies of large values: every alignment and size, and what happens where the compiled function is missing."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from smd_agent.storage import writer_thread

SOURCE = Path(__file__).resolve().parents[3] / "smd_agent" / "storage" / "copy.c"
COMPILER = os.environ.get("CC") or next(filter(shutil.which, ("cc", "gcc", "clang")), None)


@pytest.fixture(scope="module")
def compiled(tmp_path_factory):
    if COMPILER is None:
        pytest.skip("there is no C compiler")
    library = tmp_path_factory.mktemp("copy") / "copy.so"
    flags = ["-std=gnu11", "-O3", "-fPIC", "-shared", "-fvisibility=hidden"]
    subprocess.run([COMPILER, *flags, str(SOURCE), "-o", str(library)], check=True, timeout=300)
    return writer_thread.compiled(library)


@pytest.mark.parametrize("size", [0, 1, 15, 63, 64, 65, 127, 4096, 100_003])
def test_every_byte_is_copied_and_no_other(compiled, size):
    source = np.random.default_rng(0).integers(1, 255, size + 64, np.uint8)
    for to_start in (0, 1, 31, 63):
        for source_start in (0, 7, 16):
            target = np.zeros(size + 128, np.uint8)
            compiled(target[to_start : to_start + size], source[source_start : source_start + size])
            want = np.zeros(size + 128, np.uint8)
            want[to_start : to_start + size] = source[source_start : source_start + size]
            assert np.array_equal(target, want)


def test_numpy_copies_where_there_is_no_library(tmp_path, monkeypatch):
    text = tmp_path / "copy.so"
    text.write_text("no library")
    for library in (text, tmp_path / "missing.so", Path(np.random.mtrand.__file__)):
        with pytest.raises(OSError, match=r"copy\.so|missing\.so|not of this release"):
            writer_thread.compiled(library)
        monkeypatch.setattr(writer_thread, "LIBRARY", library)
        assert writer_thread.fastest_copy() is writer_thread.by_numpy
    target = np.zeros(5, np.uint8)
    writer_thread.by_numpy(target[1:4], np.array([7, 8, 9], np.uint8))
    assert target.tolist() == [0, 7, 8, 9, 0]
