"""Runs that tests keep are made again when anything that they depend on is another one."""

from __future__ import annotations

import sys

import pytest
from harness import kept_runs
from harness.runner import Runner, environment

interpreter = kept_runs._interpreter.__wrapped__
SCRIPT = """
import os, sys
import lesson
print(lesson.TEXT, *sys.argv[1:], os.getcwd(), os.environ.get("ONE"))
print("said", file=sys.stderr)
os.makedirs("deep/er", exist_ok=True)
open("deep/left.txt", "w").write(lesson.TEXT)
open(os.environ["COUNTED"], "a").write("x")
"""


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    """Keep runs in a folder of the test's own, of an interpreter that a test may change."""
    folder = tmp_path / "cache"
    monkeypatch.setenv("SMD_TEST_CACHE", str(folder))
    monkeypatch.setenv("COUNTED", str(tmp_path / "counted"))
    monkeypatch.delenv("PYTHONPATH", raising=False)
    monkeypatch.setattr(kept_runs, "_interpreter", lambda python: python)
    return folder


@pytest.fixture
def made(tmp_path):
    """How often the script has been run."""
    return lambda: len((tmp_path / "counted").read_text())


@pytest.fixture
def run(tmp_path):
    """Run the script in a new folder each time, as each run of the tests has one."""
    numbers = iter(range(100))

    def once(*words, script=SCRIPT, lesson='TEXT = "a"\n', data="", **variables):
        folder = tmp_path / f"folder{next(numbers)}"
        folder.mkdir()
        runner = Runner(folder)
        runner.write(lesson, "lesson.py")
        runner.write(data, "data.txt")
        return folder, runner.plain(runner.write(script), *words, **variables)

    return once


def test_a_run_is_made_once_and_is_the_same_in_another_folder(run, made):
    for _ in range(3):
        folder, done = run("word")
        assert (done.returncode, done.stdout, done.stderr) == (0, f"a word {folder} None\n", "said\n")
        assert (folder / "deep/left.txt").read_text() == "a"
        assert (folder / "deep/er").is_dir()
    assert made() == 1


@pytest.mark.parametrize(
    "changed",
    [
        {"script": f"{SCRIPT}# the same, but for this\n"},
        {"lesson": 'TEXT = "b"\n'},
        {"data": "other"},
        {"ONE": "1"},
        {"OMP_NUM_THREADS": "3"},
    ],
    ids=str,
)
def test_a_changed_script_file_or_variable_is_run_again(run, made, changed):
    run()
    _, done = run(**changed)
    assert made() == 2
    assert done.stdout.startswith("b" if "lesson" in changed else "a")
    run(**changed)
    run()
    assert made() == 2


def test_other_arguments_and_ways_are_run_again(run, made, monkeypatch):
    run("a")
    run("b")
    assert made() == 2
    run("a")
    assert made() == 2
    for name, other in (("_interpreter", "python 4"), ("_machine", "another")):
        monkeypatch.setattr(kept_runs, name, lambda *of, other=other: other)
        run("a")
    assert made() == 4


def test_an_interpreter_is_another_one_when_another_library_is_installed(tmp_path):
    libraries = tmp_path / "lib/python3/site-packages"
    told = []
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/python").symlink_to(sys.executable)
    for library in ("a-1.0.dist-info", "smd_agent-2.dist-info", "b-1.0.dist-info", "b.py"):
        (libraries / library).mkdir(parents=True)
        (tmp_path / "pyvenv.cfg").write_text("version = 3\n")
        told.append(interpreter(str(tmp_path / "bin/python")))
    assert told[0] == told[1]
    assert len({*told}) == 3
    (tmp_path / "pyvenv.cfg").write_text("include-system-site-packages = true\n")
    assert interpreter(str(tmp_path / "bin/python")) is None


def test_a_file_that_the_script_names_without_an_import_is_looked_at(run, made):
    named = SCRIPT.replace("import lesson", 'import runpy, types\nlesson = types.SimpleNamespace(TEXT="a")')
    run(script=named, lesson="1")
    run(script=named, lesson="2")
    assert made() == 2


@pytest.mark.parametrize(
    "changed",
    [
        {"script": f"{SCRIPT}# as smd_agent does\n"},
        {"lesson": 'TEXT = "smdebug"\n'},
        {"USE_SMDEBUG": "0"},
        {"PYTHONPATH": "somewhere"},
        {"script": f"{SCRIPT}print(open('deep/left.txt', 'w').write(os.getcwd()))\n"},
        {"script": f"{SCRIPT}os.remove('data.txt')\n"},
        {"script": f"{SCRIPT}sys.exit(3)\n"},
    ],
    ids=str,
)
def test_what_may_depend_on_us_or_has_failed_or_knows_its_folder_is_not_kept(run, made, cache, changed):
    for _ in range(2):
        run(**changed)
    assert made() == 2
    assert not cache.exists()


def test_what_is_written_elsewhere_is_not_kept(run, made, tmp_path):
    for _ in range(2):
        run(str(tmp_path / "elsewhere"))
        run(f"--out={tmp_path / 'elsewhere'}")
    assert made() == 4


def test_nothing_is_kept_where_it_is_switched_off(run, made, cache, monkeypatch):
    monkeypatch.setenv("SMD_TEST_CACHE", "")
    run()
    run()
    assert made() == 2
    assert not cache.exists()


def test_no_half_written_file_is_seen(run, cache):
    run()
    (file,) = cache.iterdir()
    assert len(file.name) == 64


def test_variables_of_the_tests_and_the_shell_do_not_matter(run, made):
    run(PYTEST_XDIST_WORKER="gw0", SHLVL="1")
    run(PYTEST_XDIST_WORKER="gw1", SHLVL="2")
    assert made() == 1


def test_the_environment_of_tests_asks_for_no_agent():
    assert [name for name in environment() if name.startswith("SMD")] == ["SMD_AGENT_VERDICT_SECONDS"]
