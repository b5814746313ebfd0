"""The compiled kernel: how it gets into the wheel, every width of vectors, and what happens where there is none."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest

from smd_agent.core.reductions import has_kernel, histogram, reduce_batch, use_kernel, with_kernel, with_numpy
from smd_agent.core.reductions.formulas import FORMULAS, need_of

ROOT = Path(__file__).resolve().parents[3]
COMPILER = os.environ.get("CC") or next(filter(shutil.which, ("cc", "gcc", "clang")), None)
COUNTS = tuple((name, False) for name in ("zero_share", "nan_count", "inf_count"))
OPS = (*((name, absolute) for name in ("min", "max", "std", "l1", "l2") for absolute in (False, True)), *COUNTS)
BUILD = pytest.mark.skipif(importlib.util.find_spec("hatchling") is None, reason="hatchling is not installed")


def build_wheel(folder: Path, **environment: str) -> tuple[str, set[str], str]:
    """Build the source tree's wheel; return its name, its files, and what was said."""
    done = subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)],
        cwd=ROOT,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=True,
        timeout=300,
    )
    (wheel,) = folder.glob("*.whl")
    return wheel.name, set(zipfile.ZipFile(wheel).namelist()), done.stdout + done.stderr


@BUILD
def test_without_a_compiler_the_wheel_says_so_and_is_complete(tmp_path):
    name, files, said = build_wheel(tmp_path, CC="no-such-compiler")
    assert name.endswith("-py3-none-any.whl")
    assert "smd_agent/core/reductions/with_numpy.py" in files
    assert not any(file.endswith(".so") for file in files)
    lines = [line for line in said.splitlines() if "without its compiled reductions" in line]
    assert len(lines) == 1
    assert "no-such-compiler" in lines[0]


@pytest.fixture(scope="module")
def narrow(tmp_path_factory):
    """The kernel compiled so that it uses no vectors, or AVX2 at most."""
    if COMPILER is None:
        pytest.skip("there is no C compiler")
    kernels = []
    for widest in (0, 1):
        library = tmp_path_factory.mktemp("kernel") / f"kernel_{widest}.so"
        source = ROOT / "smd_agent" / "core" / "reductions" / "kernel.c"
        flags = ["-std=gnu11", "-O3", "-fPIC", "-shared", f"-DWIDEST={widest}"]
        subprocess.run([COMPILER, *flags, str(source), "-o", str(library), "-lm"], check=True, timeout=300)
        kernels.append(with_kernel.Kernel(library))
    return kernels


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", "i1", "u2", "i4", "u8", "?"])
def test_all_widths_of_vectors_agree_with_numpy(narrow, dtype):
    rng = np.random.default_rng(0)
    need = need_of(OPS)
    for n in (0, 1, 15, 16, 17, 8192, 8193, 200_000):
        x = (100 * rng.random(n)).astype(dtype)
        for special in (False, True):
            x[::7] = 0
            if special and n > 1 and x.dtype.kind == "f":
                x[n // 3], x[-1] = np.nan, np.inf
            with np.errstate(all="ignore"):
                want = with_numpy.sum_one(x, need)
            for kernel in narrow:
                np.testing.assert_allclose(kernel.sum_one(x, need), want, rtol=2e-6)
                both = np.array(kernel.sum_all([x, x], need)[:-1])
                np.testing.assert_allclose(both.T, [want[:-1], want[:-1]], rtol=2e-6)
                assert kernel.counts(x).tolist() == histogram.counts(x).tolist()


@pytest.mark.parametrize("ops", [COUNTS, COUNTS[:1], COUNTS[1:], (*COUNTS, ("min", True)), (("min", True),)], ids=str)
def test_what_is_wanted_alone_is_what_it_is_among_others(narrow, ops):
    x = np.where(np.arange(20_000) % 3, np.arange(20_000), 0).astype(np.float32)
    x[[5, 9000, 19_999]] = np.nan, -np.inf, np.inf
    want = {("zero_share", False): 6666 / 20_000, ("nan_count", False): 1, ("inf_count", False): 2}
    for kernel in narrow:
        sums = kernel.sum_one(x, need_of(ops))
        for op in ops:
            np.testing.assert_equal(FORMULAS[op](sums), want.get(op, np.nan))


def test_a_library_that_is_not_the_kernel_is_not_used(tmp_path, monkeypatch):
    text = tmp_path / "kernel.so"
    text.write_text("no library")
    foreign = Path(np.random.mtrand.__file__)
    for library in (text, tmp_path / "missing.so", foreign):
        with pytest.raises(OSError, match=r"kernel\.so|missing\.so|not the kernel"):
            with_kernel.Kernel(library)
    before = has_kernel()
    monkeypatch.setattr(with_kernel, "LIBRARY", text)
    try:
        assert use_kernel(True) is False
        assert reduce_batch([np.arange(4.0)], [("sum", False)]).tolist() == [[6.0]]
    finally:
        monkeypatch.undo()
        use_kernel(before)
    assert has_kernel() == before


def test_threads_share_nothing():
    import threading

    rng = np.random.default_rng(1)
    arrays = [rng.standard_normal(n).astype(np.float32) for n in (10, 30_000, 300_000)]
    want = reduce_batch(arrays, OPS)
    same = []

    def work() -> None:
        same.extend(np.array_equal(reduce_batch(arrays, OPS), want) for _ in range(20))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert same == 80 * [True]
