"""Runs written by the original library's own hook: our reader must tell the same as its reader."""

import functools
import math
import os
from pathlib import Path

import pytest
from harness import beside

from smd_agent.analysis.trial import create_trial
from smd_agent.storage.event_file_reader import FileReader

HERE = Path(__file__).parent
OLD_PYTHON = os.environ.get("SMDEBUG_PYTHON", "")
KINDS = ("raw", "reduced", "reduced_only", "shapes")

pytestmark = pytest.mark.skipif(
    not OLD_PYTHON, reason="SMDEBUG_PYTHON does not name an interpreter that has the original smdebug"
)


@pytest.fixture(scope="module")
def old_run(tmp_path_factory):
    """Return the folder of a run of one kind; each is trained once, in whatever order the tests come."""

    @functools.cache
    def trained(kind):
        root = tmp_path_factory.mktemp("old") / kind
        beside.run_script(OLD_PYTHON, HERE / "train_with_smdebug.py", kind, root, modules=("torch",), alone=root)
        return root

    return trained


@pytest.fixture(scope="module")
def dumps(old_run):
    """Return what their trial and ours tell about a run of one kind."""

    @functools.cache
    def told(kind):
        return beside.dumps(OLD_PYTHON, old_run(kind))

    return told


def differences(theirs, ours, place=()):
    if isinstance(theirs, dict) and isinstance(ours, dict):
        for key in theirs.keys() | ours.keys():
            yield from differences(theirs.get(key, "nothing"), ours.get(key, "nothing"), (*place, key))
    # Their sums are in float32, ours in float64.
    elif isinstance(theirs, float) and isinstance(ours, float) and "computed" in place:
        if not math.isclose(theirs, ours, rel_tol=1e-4, abs_tol=1e-5):
            yield (*place, theirs, ours)
    elif theirs != ours:
        yield (*place, theirs, ours)


def is_unavailable(told):
    return isinstance(told, tuple) and told[0] == "TensorUnavailableForStep"


def is_theirs_to_mend(kind, difference):
    """Defects of the original that ours does not have."""
    theirs = difference[-2]
    if kind == "shapes":
        # A noted shape hides the value.
        return is_unavailable(theirs)
    # The sentence names the reduction instead of the tensor.
    return is_unavailable(theirs) and "computed" in difference and is_unavailable(difference[-1])


@pytest.mark.parametrize("kind", KINDS)
def test_our_trial_tells_what_theirs_tells(dumps, kind):
    theirs, ours = dumps(kind)
    assert len(theirs["names"]) >= 3
    assert {"TRAIN", "EVAL"} <= set(theirs["modes"])
    found = [entry for entry in differences(theirs, ours) if not is_theirs_to_mend(kind, entry)]
    assert found == []


@pytest.mark.parametrize("kind", KINDS)
def test_the_values_and_reductions_were_there_to_compare(dumps, kind):
    theirs, _ = dumps(kind)
    steps = [fields for tensor in theirs["tensors"].values() for fields in tensor.values() if isinstance(fields, dict)]
    steps = [fields for fields in steps if "value" in fields]
    values = [fields["value"] for fields in steps if not is_unavailable(fields["value"])]
    assert (len(values) > 100) == (kind in ("raw", "reduced"))
    assert any(fields["stored"] for fields in steps) == kind.startswith("reduced")


def test_values_that_a_noted_shape_hid_from_them_are_read(dumps):
    theirs, ours = dumps("shapes")
    name, place = "Net_fc.weight", ("TRAIN", 3)
    assert theirs["tensors"][name][place]["value"][0] == "TensorUnavailableForStep"
    assert ours["tensors"][name][place]["value"][:2] == ("<f4", (5, 12))
    assert ours["tensors"][name]["original_name"] == theirs["tensors"][name]["original_name"]


@pytest.mark.parametrize("kind", KINDS)
def test_their_event_files_are_read_without_index(old_run, kind):
    trial = create_trial(old_run(kind))
    step = trial.steps()[0]
    with FileReader(old_run(kind) / f"events/{step:012d}/{step:012d}_worker_0.tfevents") as reader:
        names = {name for name, global_step, *_ in reader.read_tensors() if global_step == step}
    assert names == {
        name for file in trial.step_table.files(step).values() for name in file.index.payload.tensors.names
    }
