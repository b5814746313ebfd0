"""With what two runs ran: what differs is said, whatever the verdict, and nothing where one has noted nothing."""

from __future__ import annotations

import json

import pytest

from smd_agent.formats.notes import about_text

FACTS = {
    "versions": {"Python": "3.11.7", "PyTorch": "2.12.0"},
    "machine": {"CPU": "One"},
    "seeds": {"PyTorch": "0"},
    "random state": {"PyTorch": "1a", "Python": "2b", "NumPy": "3c"},
}


@pytest.fixture
def run(write):
    """Write a run whose tensors hold a value, with facts that are those above but for some."""

    def make(value=1.0, name="loss", facts=FACTS, **changed):
        folder = write([{name: value}] * 3)
        if facts:
            (folder / "about").mkdir()
            told = {group: own | changed.get(group.replace(" ", "_"), {}) for group, own in facts.items()}
            (folder / "about/worker_0.json").write_text(about_text(told, None))
        return folder

    return make


def labels(lines):
    known = ("Versions", "Machine", "Seeds", "Random", "Settings")
    return [line for line in lines if line.startswith(known)]


def test_what_is_the_same_has_no_line(run, diff):
    code, lines, _ = diff(run(), run())
    assert (code, labels(lines), len(lines)) == (0, [], 4)


def test_identical_runs_of_two_releases(run, diff):
    other = run(versions={"PyTorch": "2.13.0", "NumPy": "2.4"}, machine={"CPU": "Two"})
    code, lines, _ = diff(run(), other)
    assert code == 0
    assert labels(lines) == ["Versions   PyTorch 2.12.0 | 2.13.0; NumPy - | 2.4", "Machine    CPU One | Two"]


def test_seeds(run, diff):
    drawn = str(2**63)
    _, lines, _ = diff(run(), run(seeds={"PyTorch": drawn}))
    assert labels(lines) == [f"Seeds      PyTorch 0 | {drawn} (drawn)"]


def test_other_random_numbers_matter_where_weights_differ(run, diff):
    states = {"PyTorch": "9", "Python": "9", "NumPy": "9"}
    assert labels(diff(run(), run(random_state=states))[1]) == []
    weights = run(1.0, "a.weight"), run(2.0, "a.weight", random_state=states, seeds={"PyTorch": "1"})
    assert labels(diff(*weights)[1]) == [
        "Seeds      PyTorch 0 | 1",
        "Random     another state of Python and NumPy at the first saved step",
    ]
    settings = run(1.0, "optimizer/SGD/lr"), run(2.0, "optimizer/SGD/lr", random_state=states)
    assert labels(diff(*settings)[1]) == []


def test_a_run_that_has_noted_nothing(run, diff):
    _, lines, _ = diff(run(), run(facts=None))
    assert labels(lines) == []
    assert json.loads("\n".join(diff(run(), run(facts=None), "--json")[1]))["environment"] is None


def test_for_programs(run, diff):
    told = json.loads("\n".join(diff(run(), run(versions={"PyTorch": "2.13.0"}), "--json")[1]))
    assert told["environment"] == [{"group": "versions", "name": "PyTorch", "a": "2.12.0", "b": "2.13.0"}]


def test_facts_of_anybody_are_printable(run, diff):
    _, lines, _ = diff(run(), run(versions={"PyTorch": "\x1b[31m" + "x" * 400}))
    (line,) = labels(lines)
    assert "\x1b" not in line
    assert len(line) < 160
