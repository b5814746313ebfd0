"""Runs of scripts that know nothing of us, kept from one run of the tests to the next.

A run is kept under a hash of all that it can depend on: the script and the files beside it that it names, its
arguments, the files of its folder, the environment, the interpreter with what is installed there, and the machine.
What depends on our own code is never kept, nor is a run that has failed.

``SMD_TEST_CACHE`` names the folder, by default ``build/test-cache``; where it is empty, nothing is kept.
"""

from __future__ import annotations

import functools
import hashlib
import os
import pickle
import platform
import re
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from subprocess import CompletedProcess

ROOT = Path(__file__).parents[2]
SHARED = ROOT / "tests" / "subjects" / "shared"
# How a run is made.
HARNESS = [Path(__file__).with_name(name) for name in ("kept_runs.py", "runner.py", "warm.py", "warm_server.py")]
# Of the shell, of make and of the tests' worker; no script looks at them.
_OF_THE_SHELL = re.compile(r"PYTEST_.*|MAKE.*|MFLAGS|ARGS|OLDPWD|PWD|SHLVL|TERM|_")
# A script that has these may use files that it does not name.
_MAY_USE_ANY = re.compile(rb"__file__|import_module|__import__|runpy|spec_from_file")
_ITS_WAY_TO_SHARED = b'Path(__file__).parents[1] / "shared"'
_LARGEST = 64 << 20


def kept(
    words: Sequence[str],
    environment: Mapping[str, str],
    folder: Path,
    run: Callable[[], CompletedProcess[str]],
    python: str,
    how: object = None,
) -> CompletedProcess[str]:
    """Return the result of a run that was kept; or make it, and keep it if that is safe.

    Args:
        words: what the interpreter is given: the script, its arguments, maybe options before.
        environment: its variables.
        folder: the only one that it changes. What it leaves there is kept with the result.
        run: makes it.
        python: the interpreter.
        how: further things that its result depends on.
    """
    place = _place(words, environment, folder, python, how)
    if place is None:
        return run()
    if place.exists():
        code, streams, folders, files = pickle.loads(place.read_bytes())
        for name in ["", *folders]:
            (folder / name).mkdir(parents=True, exist_ok=True)
        for name, content in files.items():
            (folder / name).write_bytes(content)
        return CompletedProcess([python, *words], code, *(text.replace("{folder}", str(folder)) for text in streams))
    before = _files(folder)
    done = run()
    after = _files(folder)
    files = {name: content for name, content in after.items() if before.get(name) != content}
    if done.returncode == 0 and before.keys() <= after.keys() and _can_be_moved(files, folder):
        streams = [text.replace(str(folder), "{folder}") for text in (done.stdout, done.stderr)]
        folders = [path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_dir()]
        _write(place, pickle.dumps((done.returncode, streams, folders, files)))
    return done


def _place(words: Sequence[str], environment: Mapping[str, str], folder: Path, python: str, how: object) -> Path | None:
    """The file of a run; None for one that cannot be kept."""
    cache = os.environ.get("SMD_TEST_CACHE", str(ROOT / "build" / "test-cache"))
    script = next((Path(word) for word in words if word.endswith(".py")), None)
    interpreter = _interpreter(python)
    # A folder in it is another run's, which has the time of day in it.
    if not cache or script is None or interpreter is None or any(path.is_dir() for path in _inside(folder)):
        return None
    known = (folder, ROOT / "tests", ROOT / "examples")
    named = [path for word in words for path in re.findall(r"(?<![\w.])/[^\s,:=]+", word)]
    if "PYTHONPATH" in environment or not all(_is_below(path, known) for path in named):
        return None
    texts = {path.as_posix(): path.read_bytes() for path in [*_named_files(script), *_inside(folder)]}
    ours = [name for name in environment if re.match("(USE_)?SMD", name) and name != "SMD_AGENT_VERDICT_SECONDS"]
    if _has_us(python) and (ours or any(b"smd" in text.lower() for text in texts.values())):
        return None
    variables = sorted((name, text) for name, text in environment.items() if not _OF_THE_SHELL.fullmatch(name))
    harness = [path.read_bytes() for path in HARNESS]
    asked = repr((python, interpreter, _machine(), [*words], variables, how, sorted(texts.items()), harness))
    return Path(cache) / hashlib.sha256(asked.replace(str(folder), "{folder}").encode()).hexdigest()


def _named_files(script: Path) -> Iterator[Path]:
    """The script and, of the files beside it and of those that subjects share, all that it may use."""
    beside = [path for folder in (script.parent, SHARED) for path in _inside(folder)]
    waiting, found = [script], {script}
    while waiting:
        path = waiting.pop()
        yield path
        text = path.read_bytes()
        words = set(re.findall(r"\w+", text.decode("utf-8", "replace")))
        any_file = _MAY_USE_ANY.search(text.replace(_ITS_WAY_TO_SHARED, b""))
        for other in beside:
            if other not in found and (any_file or other.stem in words):
                found.add(other)
                waiting += [each for each in [other, *other.rglob("*")] if each.is_file() and each.suffix != ".pyc"]


def _inside(folder: Path) -> list[Path]:
    return sorted(path for path in folder.iterdir() if path.name != "__pycache__") if folder.is_dir() else []


def _files(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def _can_be_moved(files: Mapping[str, bytes], folder: Path) -> bool:
    """Whether files are those of no folder, and not too large to be kept."""
    return sum(map(len, files.values())) < _LARGEST and not any(str(folder).encode() in text for text in files.values())


def _is_below(word: str, folders: Sequence[Path]) -> bool:
    return word == os.devnull or any(Path(word).is_relative_to(folder) for folder in folders)


def _libraries(python: str) -> list[Path]:
    return [*Path(python).parents[1].glob("lib/python*/site-packages")]


def _has_us(python: str) -> bool:
    return any((folder / "smd_agent").exists() for folder in _libraries(python))


@functools.cache
def _interpreter(python: str) -> str | None:
    """An interpreter and what is installed there but us; None where that cannot be told."""
    settings = Path(python).parents[1] / "pyvenv.cfg"
    if not settings.exists() or "include-system-site-packages = true" in settings.read_text():
        return None
    installed = [
        (path.name, path.stat().st_mtime_ns if path.suffix == ".dist-info" else 0)
        for folder in _libraries(python)
        for path in _inside(folder)
        if not path.name.startswith("smd_agent")
    ]
    binary = Path(python).resolve()
    return repr((settings.read_text(), str(binary), binary.stat().st_mtime_ns, installed))


@functools.cache
def _machine() -> str:
    """What sums of floats depend on: the processor, how many threads there are, and the C library."""
    about = Path("/proc/cpuinfo")
    lines = {line for line in about.read_text().splitlines() if re.match("model name|flags|Features", line)}
    return repr((platform.platform(), os.cpu_count(), len(os.sched_getaffinity(0)), sorted(lines)))


def _write(place: Path, content: bytes) -> None:
    """Write a file that other processes see whole or not at all."""
    place.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile(dir=place.parent, delete=False) as file:
        file.write(content)
    os.replace(file.name, place)
