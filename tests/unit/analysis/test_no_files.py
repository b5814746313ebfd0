"""What stands in a run's folder under the name of a file without being one is named, not waited for."""

from __future__ import annotations

import os

import numpy as np
import pytest

from smd_agent import create_trial
from smd_agent.cli import main
from smd_agent.errors import DamagedRecord, SMDebugRuntimeError
from smd_agent.formats.paths import END_MARKER, claim_path, collections_path, event_path, index_path

pytestmark = pytest.mark.usefixtures("impatient")


@pytest.fixture
def two_steps(run):
    run.collections(all=".*")
    for step in range(2):
        run.step(step, {"t": np.full(3, step, np.float32)})
    return run


def make_a_pipe(run, name):
    (run.root / name).unlink(missing_ok=True)
    os.mkfifo(run.root / name)


@pytest.mark.parametrize("name", [index_path(1, "worker_0"), claim_path(), END_MARKER])
def test_the_rest_of_the_run_is_read(two_steps, name, capsys):
    make_a_pipe(two_steps, name)
    trial = create_trial(str(two_steps.root), timeout=0)
    assert trial.tensor("t").value(0).tolist() == [0, 0, 0]
    main(["ls", str(two_steps.root)])
    assert "1 tensor in" in capsys.readouterr().out
    main(["show", str(two_steps.root), "t", "--step", "0"])
    assert "float32" in capsys.readouterr().out


def test_an_index_that_is_a_pipe_is_a_problem(two_steps):
    make_a_pipe(two_steps, index_path(1, "worker_0"))
    trial = create_trial(str(two_steps.root), timeout=0)
    trial.maybe_refresh()
    assert trial.steps() == [0]
    assert [problem.endswith("(it is not a regular file)") for problem in trial.problems.values()] == [True]


def test_an_event_file_that_is_a_pipe_is_a_damaged_record(two_steps, capsys):
    make_a_pipe(two_steps, event_path(1, "worker_0"))
    trial = create_trial(str(two_steps.root), timeout=0)
    assert trial.tensor("t").value(0).tolist() == [0, 0, 0]
    with pytest.raises(DamagedRecord, match="not a regular file"):
        trial.tensor("t").value(1)
    assert main(["ls", str(two_steps.root)]) == 0
    assert main(["show", str(two_steps.root), "t"]) == 1
    assert "not a regular file" in capsys.readouterr().err


def test_a_collections_file_that_is_a_pipe_is_one_sentence(two_steps, capsys):
    make_a_pipe(two_steps, collections_path("worker_0"))
    with pytest.raises(SMDebugRuntimeError, match="not a regular file"):
        create_trial(str(two_steps.root), timeout=0)
    assert main(["ls", str(two_steps.root)]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "not a regular file" in line
