"""The wheel as it is built and published, and the way of a new user from it to what is wrong with a training."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
COMPILER = os.environ.get("CC") or next(filter(shutil.which, ("cc", "gcc", "clang")), None)
pytestmark = pytest.mark.skipif(importlib.util.find_spec("hatchling") is None, reason="hatchling is not installed")
LINUX = pytest.mark.skipif(
    COMPILER is None or not sys.platform.startswith("linux"), reason="it takes Linux and a C compiler"
)


def build(kind, tree, folder, umask=0o022):
    """Build one archive of a tree; what the compiler notes for debuggers must not make a difference either."""
    (folder / "temporary").mkdir(parents=True)
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", kind, "-d", str(folder)],
        cwd=tree,
        env={**os.environ, "CFLAGS": "-g", "TMPDIR": str(folder / "temporary")},
        umask=umask,
        capture_output=True,
        check=True,
        timeout=300,
    )
    (archive,) = [path for path in folder.iterdir() if path.is_file()]
    return archive


@pytest.fixture(scope="module")
def archives(tmp_path_factory):
    """The sdist and the wheel of the source tree, then those of a tree that was unpacked from that sdist elsewhere."""
    return built_twice(ROOT, tmp_path_factory.mktemp("archives"))


@pytest.fixture(scope="module")
def name_archives(tmp_path_factory):
    """The same of the import name smdebug."""
    return built_twice(ROOT / "distributions/smdebug", tmp_path_factory.mktemp("name"))


def built_twice(source, folder):
    first = build("sdist", source, folder / "sdist")
    with tarfile.open(first) as opened:
        opened.extractall(folder, filter="data")
    unpacked = folder / first.name.removesuffix(".tar.gz")
    again = build("sdist", unpacked, folder / "sdist_again", umask=0o077)
    wheel, wheel_again = (
        build("wheel", tree, folder / name, umask)
        for tree, name, umask in ((source, "wheel", 0o022), (unpacked, "wheel_again", 0o077))
    )
    return {"sdist": (first, again), "wheel": (wheel, wheel_again)}


@pytest.mark.parametrize("kind", ["sdist", "wheel"])
@pytest.mark.parametrize("of", ["archives", "name_archives"])
def test_archives_are_the_same_byte_by_byte_wherever_they_are_built(of, kind, request):
    first, again = request.getfixturevalue(of)[kind]
    assert first.name == again.name
    assert first.read_bytes() == again.read_bytes()


@pytest.mark.skipif(not shutil.which("make"), reason="there is no make")
def test_both_are_built_and_who_takes_all_wheels_of_a_folder_gets_one(name_archives):
    told = subprocess.run(["make", "-n", "dist"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert re.findall(r"-m build --outdir (.+)", told) == ["dist", "dist/smdebug distributions/smdebug"]
    with zipfile.ZipFile(name_archives["wheel"][0]) as wheel:
        (metadata,) = [name for name in wheel.namelist() if name.endswith("METADATA")]
        assert "smdebug/__init__.py" in wheel.namelist()
        assert "Requires-Dist: smd-agent>=" in wheel.read(metadata).decode()


@pytest.mark.skipif(COMPILER is None, reason="there is no C compiler")
def test_a_wheel_built_with_a_compiler_holds_the_kernel(archives):
    wheel = archives["wheel"][0]
    files = zipfile.ZipFile(wheel).namelist()
    assert {"smd_agent/core/reductions/kernel.so", "smd_agent/storage/copy.so", "smd_agent/storage/spawn.so"} <= set(
        files
    )
    assert not any(file.endswith(".c") for file in files)
    assert "-py3-none-" in wheel.name
    assert not wheel.name.endswith("-any.whl")


@LINUX
def test_the_wheel_names_the_oldest_glibc_that_it_runs_with(archives, tmp_path):
    named = re.search(r"-py3-none-manylinux_2_(\d+)_\w+\.whl$", archives["wheel"][0].name)
    if not named:
        pytest.skip("the C library of this machine is not glibc")
    if not shutil.which("objdump"):
        pytest.skip("there is no objdump")
    with zipfile.ZipFile(archives["wheel"][0]) as opened:
        libraries = [opened.extract(name, tmp_path) for name in opened.namelist() if name.endswith(".so")]
    assert len(libraries) == 3
    for library in libraries:
        shown = subprocess.run(["objdump", "-Tp", library], capture_output=True, text=True, check=True).stdout
        assert {*re.findall(r"NEEDED\s+(\S+)", shown)} <= {"libc.so.6", "libm.so.6"}
        versions = {*re.findall(r"\(?\b(GLIBC\w*_[\w.]+)\)?", shown)}
        assert all(int(version.split(".")[1]) <= int(named[1]) for version in versions), versions


def test_what_a_library_calls_decides_for_which_platforms_the_wheel_is(tmp_path):
    if COMPILER is None:
        pytest.skip("there is no C compiler")
    spec = importlib.util.spec_from_file_location("hatch_build", ROOT / "hatch_build.py")
    hook = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(hook)
    texts = {"quiet": "int f(void) { return 1; }", "maths": "double log(double); double f(double x) { return log(x); }"}
    for name, text in texts.items():
        (tmp_path / f"{name}.c").write_text(text)
        assert hook.compile_library(tmp_path, Path(f"{name}.c"), tmp_path / f"{name}.so") == ""
    tags = [hook.platform([tmp_path / f"{name}.so"]) for name in texts]
    if not tags[0].startswith("manylinux_"):
        pytest.skip("the C library of this machine is not glibc")
    assert tags[0].startswith("manylinux_2_17_")
    needed, versions = hook.requirements((tmp_path / "maths.so").read_bytes())
    assert "libm.so.6" in needed
    minor = max([17, *(int(version.split(".")[1]) for version in versions if version.startswith("GLIBC_2."))])
    assert tags[1].startswith(f"manylinux_2_{minor}_")
    # One that calls what is no part of every Linux is for machines like this one.
    linked = [COMPILER, "-shared", "-fPIC", "-Wl,--no-as-needed", "-Wl,-soname,libodd.so.1"]
    subprocess.run([*linked, str(tmp_path / "quiet.c"), "-o", str(tmp_path / "libodd.so")], check=True)
    words = [*linked[:-1], str(tmp_path / "maths.c"), "-o", str(tmp_path / "odd.so"), f"-L{tmp_path}", "-lodd"]
    subprocess.run(words, check=True)
    assert hook.platform([tmp_path / "odd.so"]).startswith("linux_")


TRAIN = """
import torch

torch.manual_seed(0)
body, head = torch.nn.Linear(4, 8), torch.nn.Linear(8, 2)
model = torch.nn.Sequential(body, torch.nn.ReLU(), head)
optimizer = torch.optim.SGD(body.parameters(), lr=0.1)
criterion = torch.nn.CrossEntropyLoss()
for step in range(60):
    x = torch.randn(16, 4)
    loss = criterion(model(x), (x[:, 0] > 0).long())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"loss {loss.item():.4f}")
"""


def test_a_new_user_comes_from_the_wheel_to_the_finding_by_three_commands(archives, fresh, tmp_path):
    wheel = str(archives["wheel"][0])
    # Framework and libraries come from the environment of the tests; which has an agent, so pip must not see it.
    libraries = fresh.site_packages / "zz_libraries.pth"
    line = libraries.read_text()
    libraries.unlink()
    pip = [sys.executable, "-m", "pip", "--python", fresh.path, "install", "-q", "--no-deps", "--no-index", wheel]
    subprocess.run(pip, check=True, capture_output=True, timeout=120)
    libraries.write_text(line)
    place = tmp_path / "home"
    place.mkdir()
    (place / "train.py").write_text(TRAIN)
    shutil.copy(ROOT / "examples" / "hook.json", place / "hook.json")
    plain = fresh.command("python", "train.py", cwd=place)
    assert plain.returncode == 0, plain.stderr
    first, *others = three_commands()
    trained = fresh.command("env", *first.split(), cwd=place)
    assert (trained.returncode, trained.stdout) == (0, plain.stdout), trained.stderr
    found = re.search(r"to see them: python -m smd_agent ls (\S+)$", trained.stderr, re.M)
    assert found, trained.stderr
    check, report = (fresh.command(*line.replace("RUN", found[1]).split(), cwd=place) for line in others)
    assert check.returncode == 1
    assert "ParameterNotOptimized" in check.stdout
    assert "Sequential_2.weight" in check.stdout
    # As check does, it says by its exit code that there is a problem.
    assert report.returncode in (0, 1), report.stderr
    page = (place / "report.html").read_text()
    assert "ParameterNotOptimized" in page
    assert "Sequential_2.weight" in page


def three_commands():
    """The commands of the README's first block, without what is said of each."""
    (block, *_) = re.findall(r"^```sh\n(.*?)^```$", (ROOT / "README.md").read_text(), re.M | re.S)
    lines = [line.partition("#")[0].strip() for line in block.splitlines()]
    assert len(lines) == 3, block
    return lines
