"""A program cannot tell how it was started: everything it can see is compared with a plain run."""

import json
import shutil
from pathlib import Path

import pytest
from harness.compare import Both, assert_untouched, own_lines

PROBE = Path(__file__).with_name("probe.py")

FORMS = {
    "file": ["probe.py"],
    "far_file": ["{far}/probe.py"],
    "module": ["-m", "probe"],
    "package": ["-m", "probe_package"],
    "folder": ["probe_package"],
    "code": ["-c", "import probe"],
    "stdin": ["-"],
    "command": ["probe-command"],
}
DOORS = ("site_hook", "pythonpath", "launcher", "launcher_by_pythonpath")

# What the agent's presence changes, and is documented to change.
OUR_VARIABLES = ("SMD_AGENT_HOOK", "SMD_AGENT_LAUNCH_PID", "PYTHONPATH", "PATH")
OUR_MODULES = ("smd_agent", "sitecustomize", "__future__", "atexit")
OURS = "smd_agent: nothing was captured"
OUR_FINDERS = ("_FrameworkFinder", "_LibraryFinder")


@pytest.fixture
def place(volume, bare, installed, tmp_path):
    """The current folder: the probe in all its forms, and the agent for the doors that need a copy."""
    far = tmp_path / "far"
    far.mkdir()
    package = volume / "probe_package"
    package.mkdir()
    (package / "__init__.py").write_text("")
    for target in (far / "probe.py", volume / "probe.py", package / "__main__.py"):
        shutil.copy(PROBE, target)
    for interpreter in (bare, installed):
        command = interpreter.root / "bin" / "probe-command"
        command.write_text(f"#!{interpreter.path}\n{PROBE.read_text()}")
        command.chmod(0o755)
    return volume


def run_plain(interpreter, words, place, **more):
    words = [word.format(far=place.parent / "far") for word in words]
    run = interpreter.run if words[0] != "probe-command" else interpreter.command
    return run(*words, "--epochs", "3", "-m", "x", cwd=place, **more)


def run_through(door, bare, installed, words, place, hook, **more):
    if door == "site_hook":
        return run_plain(installed, words, place, SMD_AGENT_HOOK=hook, **more)
    if door == "pythonpath":
        return run_plain(bare, words, place, SMD_AGENT_HOOK=hook, PYTHONPATH=str(place), **more)
    words = [word.format(far=place.parent / "far") for word in words]
    interpreter = installed if door == "launcher" else bare
    launcher = ["python", "-m", "smd_agent", "--out", str(place / "out")]
    return interpreter.command(*launcher, *words, "--epochs", "3", "-m", "x", cwd=place, **more)


def seen(result, interpreter):
    assert result.returncode == 0, result.stderr
    facts = json.loads(result.stdout.replace(str(interpreter.root), "ROOT"))
    facts["modules"] = [name for name in facts["modules"] if name.partition(".")[0] not in OUR_MODULES]
    facts["finders"] = [name for name in facts["finders"] if name not in OUR_FINDERS]
    for name in OUR_VARIABLES:
        facts["environment"].pop(name, None)
    return facts


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("door", DOORS)
def test_program_sees_the_same_as_in_a_plain_run(door, form, bare, installed, place, hook):
    stdin = PROBE.read_text() if form == "stdin" else "some input\n"
    words = FORMS[form]
    run = run_through(door, bare, installed, words, place, hook, stdin=stdin)
    launched = door.startswith("launcher")
    if launched and form != "command":
        # Typed as the launcher is: by name, found on PATH.
        plain = bare.command(
            "python",
            *[word.format(far=place.parent / "far") for word in words],
            *("--epochs", "3", "-m", "x"),
            cwd=place,
            stdin=stdin,
        )
    else:
        plain = run_plain(bare, words, place, stdin=stdin)
    used = installed if door in ("site_hook", "launcher") else bare
    assert seen(run, used) == seen(plain, bare)
    assert own_lines(run, OURS) == own_lines(plain, OURS)


@pytest.mark.parametrize("door", DOORS)
def test_agent_is_armed_through_every_door(door, bare, installed, place, hook):
    (place / "probe.py").write_text("import sys; print(sys.meta_path[0])")
    run = run_through(door, bare, installed, ["probe.py"], place, hook)
    assert "_FrameworkFinder" in run.stdout


ENDINGS = {
    "code": "sys.exit(3)",
    "text": "sys.exit('a reason')",
    "none": "sys.exit()",
    "exception": "def f(): raise KeyError('x')\nf()",
    "syntax": "def f(:\n",
    "interrupt": "raise KeyboardInterrupt",
    "sigint": "os.kill(os.getpid(), signal.SIGINT); time.sleep(5)",
    "sigterm": "os.kill(os.getpid(), signal.SIGTERM); time.sleep(5)",
    "sigkill": "os.kill(os.getpid(), signal.SIGKILL); time.sleep(5)",
    "underscore_exit": "os._exit(7)",
    "atexit": "atexit.register(os.write, 1, b'bye'); sys.exit(4)",
    "pickled_at_exit": ("class C: pass\natexit.register(lambda: print(pickle.loads(pickle.dumps(C)) is C))"),
    "pickled_in_a_thread": (
        "class C: pass\nthreading.Thread(target=lambda: (time.sleep(.1), print(pickle.dumps(C)))).start()"
    ),
}


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("door", DOORS)
def test_program_ends_as_in_a_plain_run(door, ending, bare, installed, place, hook):
    head = "import atexit, os, pickle, signal, sys, threading, time\n"
    (place / "probe.py").write_text(head + ENDINGS[ending])
    plain = run_plain(bare, ["probe.py"], place)
    run = run_through(door, bare, installed, ["probe.py"], place, hook)
    assert_untouched(Both(plain, run), code=None, ours=OURS)


def test_missing_script_gives_the_interpreters_own_message(bare, installed, place, hook):
    plain = run_plain(installed, ["missing.py"], place)
    run = run_through("launcher", bare, installed, ["missing.py"], place, hook)
    both = Both(plain, run)
    assert_untouched(both, code=2, stderr=False)
    ours, theirs = ([line.partition(": ")[2] for line in own_lines(result, OURS)] for result in (run, plain))
    assert ours == theirs


@pytest.mark.parametrize("door", DOORS)
def test_children_are_armed_and_see_the_same(door, bare, installed, place, hook):
    shutil.copy(PROBE.with_name("children.py"), place / "probe.py")
    plain = json.loads(run_plain(bare, ["probe.py"], place).stdout)
    used = installed if door in ("site_hook", "launcher") else bare
    run = run_through(door, bare, installed, ["probe.py"], place, hook)
    found = json.loads(run.stdout.replace(str(used.root), str(bare.root)))
    for method in ("spawn", "forkserver", "fork"):
        assert found[method][0] is True
        assert plain[method][0] is False
        assert found[method][1] == plain[method][1]
    ours, theirs = (text["subprocess"][1].rpartition("<")[0] for text in (found, plain))
    assert ours == theirs
    assert "_FrameworkFinder" in found["subprocess"][1]


def test_interpreter_options_are_handed_on(installed, place):
    words = ["-X", "dev", "-W", "ignore::ResourceWarning", "-u"]
    plain = installed.run(*words, "probe.py", cwd=place)
    run = installed.run(*words, "-m", "smd_agent", "--out", str(place / "out"), "probe.py", cwd=place)
    assert seen(run, installed) == seen(plain, installed)


def test_installed_but_not_asked_for_changes_nothing(bare, installed, place):
    run = seen(run_plain(installed, ["probe.py"], place), installed)
    assert run == seen(run_plain(bare, ["probe.py"], place), bare)


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the system does not show a process's signals")
def test_command_that_is_no_python_inherits_no_ignored_signals(installed, place):
    words = ["grep", "Sig[IB]", "/proc/self/status"]
    plain = installed.command(*words, cwd=place)
    run = installed.command("python", "-m", "smd_agent", "--out", str(place / "out"), *words, cwd=place)
    assert run.stdout == plain.stdout != ""
