"""What `verify` says of programs that import no framework, and of what cannot be verified."""

from __future__ import annotations

import json

import pytest
from harness.runner import Runner

PRINTS = """
import sys
if "smd_agent" in sys.modules:
    {act}
print("seen", flush=True)
"""


@pytest.fixture
def verify(tmp_path):
    runner = Runner(tmp_path)

    def run(text, *words, **variables):
        words = [*words, runner.write(text)]
        return runner.by_launcher("verify", "--json", *words, **variables)

    return run


@pytest.mark.parametrize(
    "act, what, values",
    [
        ("sys.exit(4)", "exit code", ["0", "4"]),
        ("print('more')", "line 1 of stdout", ["'seen'", "'more'"]),
        ("print('more', file=sys.stderr)", "line 1 of stderr", ["no such line", "'more'"]),
        ("import os; os.kill(os.getpid(), 9)", "exit code", ["0", "ended by SIGKILL"]),
    ],
)
def test_what_a_program_does_because_of_the_agent_is_found(verify, act, what, values):
    done = verify(PRINTS.format(act=act))
    first = json.loads(done.stdout)["first_difference"]
    assert (done.returncode, first["what"], first["values"]) == (1, what, values)


def test_a_program_of_which_nothing_is_saved_gets_no_certificate(verify):
    done = verify("print('done')")
    told = json.loads(done.stdout)
    assert (done.returncode, told["verdict"], told["saved"], told["steps"]) == (2, "equal", None, 0)
    # What the agent has said is not the program's.
    assert (told["stderr"]["lines"], told["stderr"]["left_out"] > 0) == (0, True)


def test_a_program_finds_no_agent_without_one_and_the_same_path_and_arguments(verify, tmp_path):
    text = """
import json, os, sys
names = sorted(name for name in sys.modules if name.startswith("smd"))
with open(f"{os.getppid()}-{os.getpid()}.json", "w") as file:
    json.dump([names, sys.path, sys.argv, list(sys.orig_argv), sys.stdin.read()], file)
"""
    done = verify(text)
    assert json.loads(done.stdout)["verdict"] == "equal"
    first, second, agent = (json.loads(path.read_text()) for path in sorted(tmp_path.glob("*-*.json"), key=started))
    assert first == second
    assert first[0] == []
    assert "smd_agent" in agent[0]
    assert first[1:] == agent[1:]


def started(path):
    return path.stat().st_mtime_ns


@pytest.mark.parametrize(
    "words, said",
    [
        (["--every", "no"], "option --every is 'no', allowed is"),
        (["--steps", "-1"], "option --steps is -1, allowed is"),
        (["--out", "."], "is there already"),
        (["--config", "nowhere.json"], "nowhere.json"),
    ],
)
def test_options_are_looked_at_before_anything_runs(verify, words, said, tmp_path):
    done = verify("open('ran', 'w')", *words)
    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr
    assert not (tmp_path / "ran").exists()


def test_without_an_agent_there_is_nothing_to_verify(verify):
    done = verify("", USE_SMDEBUG="0")
    assert (done.returncode, done.stdout) == (2, "")
    assert "switches the agent off" in done.stderr
