"""A step of Keras that may turn out to be none: what is counted, and what the step before it keeps."""

from __future__ import annotations

import numpy as np
import pytest

from smd_agent import session
from smd_agent.analysis.trial import create_trial
from smd_agent.core.modes import ModeKeys
from smd_agent.core.save_config import SaveConfig
from smd_agent.framework.keras.logs import KerasLogs
from smd_agent.framework.keras.step_function import TentativeStep

TRAIN = ModeKeys.TRAIN


@pytest.fixture
def make_hook(tmp_path):
    def make(name):
        session.forget()
        hook = KerasLogs(str(tmp_path / name), save_config=SaveConfig(save_interval=2))
        hook.follow_calls()
        return hook

    yield make
    session.forget()


def begin(hook, steps=1):
    step = TentativeStep(hook.recorder, hook.recorder.clock_for(TRAIN), steps)
    if step.due:
        hook.recorder.open_step()
    return step


def save(hook, value):
    hook.save_logs({"loss": value}, lambda _: False)


def test_one_that_is_taken_back_leaves_the_step_before_it_open(make_hook):
    hook = make_hook("run")
    begin(hook).keep()
    save(hook, 1.0)
    begin(hook, steps=2).take_back()
    assert (hook.step, hook.mode_steps[TRAIN], hook.position.open, hook.position.saving) == (0, 0, True, True)
    # It goes on where it was, and a further step is the one that was taken back.
    hook.save_scalar("late", 2.0)
    begin(hook, steps=2).keep()
    save(hook, 3.0)
    hook.close()
    trial = create_trial(hook.out_dir)
    assert trial.steps(mode=TRAIN) == [0, 2]
    assert [float(trial.tensor("loss").value(step, mode=TRAIN)) for step in (0, 2)] == [1.0, 3.0]
    assert trial.tensor("scalar/late").value(0, mode=TRAIN) == np.float64(2.0)


@pytest.mark.parametrize("lengths", [[1] * 5, [3, 3, 2], [2, 1, 4]])
def test_steps_are_counted_as_by_every_other_framework(lengths, make_hook):
    seen = []
    for name in ("tentative", "next"):
        hook = make_hook(name)
        for steps in lengths:
            if name == "next":
                hook.next_step(hook.recorder.clock_for(TRAIN), steps)
            else:
                begin(hook, steps).keep()
            seen.append((hook.step, hook.mode_steps, hook.position.open, hook.position.saving))
        hook.disable()
    assert seen[: len(lengths)] == seen[len(lengths) :]
