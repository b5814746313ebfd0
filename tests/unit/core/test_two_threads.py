"""Two threads that save with one hook: every value that is listed is one that was handed over."""

from __future__ import annotations

import sys
import threading

import numpy as np
import pytest

from smd_agent import create_trial
from smd_agent.core.collection_manager import CollectionManager
from smd_agent.core.hook import BaseHook
from smd_agent.core.save_config import SaveConfig
from smd_agent.core.selection import Selection
from smd_agent.storage.run_writer import RunWriter

STEPS = 100
TENSORS = 12


@pytest.fixture(autouse=True)
def threads_that_alternate():
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(before)


def value_of(thread, number):
    return np.full(300 + number, 1000 * thread + number, np.float32)


def train(hook, thread, failures):
    names = [f"net{thread}/{number}" for number in range(TENSORS)]
    values = [value_of(thread, number) for number in range(TENSORS)]
    position = hook.position
    try:
        for step in range(STEPS):
            if position.open:
                hook.recorder.end_step()
            position.step += 1
            position.clock.step += 1
            hook.recorder.open_step()
            hook.recorder.save_tensors(names, values)
            hook.save_scalar(f"number{thread}", step)
            hook.save_tensor(f"own{thread}/{step % 20}", values[0], "mine")
    except Exception as error:
        failures.append(error)


def test_nothing_that_two_threads_save_is_damaged(tmp_path, capsys):
    selection = Selection(
        CollectionManager(create_default=True, built_in={"all": (), "default": (), "losses": ()}),
        ["losses"],
        save_all=True,
        save_config=SaveConfig(save_interval=1),
    )
    hook = BaseHook(RunWriter(str(tmp_path / "run")), selection)
    failures = []
    threads = [threading.Thread(target=train, args=(hook, number, failures)) for number in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    hook.close()
    assert failures == []
    assert "is saving to" not in capsys.readouterr().err
    trial = create_trial(str(tmp_path / "run"), timeout=0)
    assert len(trial.steps()) > STEPS // 2
    read = 0
    for step in trial.steps():
        for name in trial.tensor_names(step=step, regex="^net"):
            thread, number = map(int, name.removeprefix("net").split("/"))
            np.testing.assert_array_equal(trial.tensor(name).value(step), value_of(thread, number))
            read += 1
        for name in trial.tensor_names(step=step, regex="^(scalar|own)"):
            assert trial.tensor(name).value(step).size in (1, 300)
    assert read > STEPS * TENSORS
