"""Which parameters are trained, by notes of every kind, damaged ones too."""

from __future__ import annotations

import json

import numpy as np
import pytest

from smd_agent.analysis.trained_parameters import trained_states
from smd_agent.analysis.trial import create_trial
from smd_agent.core.collection import Collection
from smd_agent.core.collection_manager import CollectionManager
from smd_agent.core.modes import ModeKeys
from smd_agent.storage.run_writer import RunWriter

NOTED = Collection("parameters", ["^parameters/"])


def fact(requires_grad, optimizer, gradient):
    return {"requires_grad": requires_grad, "optimizer": optimizer, "gradient": gradient}


@pytest.fixture
def states(tmp_path):
    """Save notes, a step each; return what the run tells by them."""

    def of(*notes):
        writer = RunWriter(str(tmp_path / "run"))
        writer.start("worker_0", alone=True)
        for number, note in enumerate(notes):
            step = writer.begin_step(number, ModeKeys.TRAIN, number)
            step.add("w", np.ones(2))
            step.add_text("parameters/Net", [note if isinstance(note, str) else json.dumps(note)])
            writer.commit(step)
        writer.write_collections(CollectionManager().to_json())
        writer.close(end_marker=True)
        trial = create_trial(str(tmp_path / "run"), timeout=0)
        return trained_states(trial, NOTED, trial.tensor_names())

    return of


def test_each_state(states):
    facts = {
        "a": fact(True, "SGD/group_0", True),
        "b": fact(False, "SGD/group_0", True),
        "c": fact(True, None, True),
        "d": fact(True, "SGD/group_0", False),
        "e": fact(True, "another", False),
        "f": fact(False, None, False),
    }
    assert states(facts) == {
        "a": "trained",
        "b": "frozen",
        "c": "no optimizer",
        "d": "no gradient",
        "f": "frozen",
    }


def test_what_takes_turns_is_trained_and_what_is_frozen_later_is_frozen(states):
    on, off = fact(True, "SGD/group_0", True), fact(True, "another", False)
    first = {"generator": on, "critic": off, "stem": on, "head": fact(True, None, True)}
    later = {"generator": off, "critic": on, "stem": fact(False, "SGD/group_0", False), "head": on}
    last = {"generator": off, "critic": off}
    assert states(first, later, last) == {
        "generator": "trained",
        "critic": "trained",
        "stem": "frozen",
        "head": "trained",
    }


def test_notes_that_are_none_are_left_out(states):
    good = {"a": fact(True, None, True)}
    notes = ("{", "[" * 100_000, "3", json.dumps({"b": 3}), good, "[]", "")
    assert states(*notes) == {"a": "no optimizer"}


def test_a_run_without_notes_has_no_states(run):
    run.collections().step(0, {"w": np.ones(2)})
    trial = create_trial(str(run.end().root), timeout=0)
    assert trained_states(trial, NOTED, trial.tensor_names()) == {}
