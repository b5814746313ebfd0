"""Values that are given by hand and wait for their step."""

from __future__ import annotations

import numpy as np

from smd_agent import create_trial
from smd_agent.core.collection_manager import CollectionManager
from smd_agent.core.hook import BaseHook
from smd_agent.core.manual_values import parts_of
from smd_agent.core.save_config import SaveConfig
from smd_agent.core.selection import Selection
from smd_agent.storage.run_writer import RunWriter


def make(folder, every):
    manager = CollectionManager(create_default=True, built_in={"losses": ["loss"]})
    return BaseHook(RunWriter(str(folder)), Selection(manager, ["losses"], save_config=SaveConfig(save_interval=every)))


def begin(hook):
    if hook.position.open:
        hook.recorder.end_step()
    return hook.position.begin(hook.position.train) and hook.recorder.open_step()


def test_what_waits_for_a_step_that_turns_out_to_be_none_waits_on(tmp_path):
    hook = make(tmp_path / "run", every=1)
    hook.save_tensor("mine", [1.0])
    hook.save_scalar("seed", 42)
    begin(hook)
    hook.recorder.drop_step()
    begin(hook)
    begin(hook)
    hook.close()
    trial = create_trial(str(tmp_path / "run"))
    assert trial.tensor("mine").steps() == trial.tensor("scalar/seed").steps() == [0]


class Converted:
    """A value that counts how often it is read."""

    times = 0

    def __array__(self, dtype=None, copy=None):
        self.times += 1
        return np.ones(2)


def test_a_value_of_the_top_is_not_read_where_the_next_step_is_not_saved(tmp_path):
    value = Converted()
    hook = make(tmp_path / "run", every=10)
    for _ in range(11):
        hook.save_tensor("mine", value)
        begin(hook)
        hook.position.updated = True
    hook.close()
    assert value.times == 2
    assert create_trial(str(tmp_path / "run")).tensor("mine").steps() == [0, 10]


def test_only_tensors_that_have_dimensions_are_taken_apart():
    one, two = np.ones(2), np.ones((2, 3))
    assert [name for name, _ in parts_of("x", [one, None, (two, [one])])] == ["x_0", "x_2_0", "x_2_1_0"]
    for whole in (one, [1.0, 2.0], [np.float32(1), np.float32(2)], [[1, 2], [3, 4]], "text", ["a", "b"], [], None):
        assert [part is whole for _, part in parts_of("x", whole)] == [True]
