"""What is done in a process that a fork has made, before it goes on."""

from __future__ import annotations

import gc
import os
import weakref

import pytest

from smd_agent.core.modes import ModeKeys
from smd_agent.formats.training_state import TrainingState
from smd_agent.storage import after_fork
from smd_agent.storage.claim import Claim
from smd_agent.storage.state_keeper import StateKeeper

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")


def in_child(look):
    """What a child that is forked now has to say; the text of what it raises, if it does."""
    reads, writes = os.pipe()
    pid = os.fork()
    if not pid:
        try:
            text = str(look())
        except BaseException as error:
            text = repr(error)
        os.write(writes, text.encode())
        os._exit(0)
    os.close(writes)
    with open(reads) as answer:
        text = answer.read()
    os.waitpid(pid, 0)
    return text


def test_each_is_done_once_in_order_and_whatever_another_raises():
    done = []

    def first():
        done.append("first")

    def fails():
        done.append("fails")
        raise OSError("its file has been closed")

    def last():
        done.append("last")

    for action in (first, fails, last, first):
        after_fork.do_in_children(action)
    try:
        assert in_child(lambda: done) == "['first', 'fails', 'last']"
        assert done == []
        after_fork.leave_to_children(fails)
        after_fork.leave_to_children(fails)
        assert in_child(lambda: done) == "['first', 'last']"
    finally:
        for action in (first, fails, last):
            after_fork.leave_to_children(action)
    assert in_child(lambda: done) == "[]"


def test_a_child_has_no_claim_and_keeps_no_state_and_its_parent_goes_on_with_both(tmp_path):
    (tmp_path / "run").mkdir()
    (tmp_path / "checkpoints").mkdir()
    claim = Claim(tmp_path / "run")
    assert claim.acquire() is None
    state = TrainingState(1, 0, 0, {ModeKeys.GLOBAL: 0})
    keeper = StateKeeper(tmp_path / "checkpoints", [], lambda: state, lambda: True, lambda: None)
    if not keeper.start():
        pytest.skip("this system does not tell of files that are written")
    try:
        assert in_child(lambda: (claim.held, keeper.thread)) == "(False, None)"
        assert claim.held
        assert keeper.thread.is_alive()
    finally:
        keeper.stop()
        claim.release()


def test_what_has_been_given_up_is_not_kept_alive(tmp_path):
    claim = Claim(tmp_path)
    assert claim.acquire() is None
    keeper = StateKeeper(tmp_path, [], lambda: None, lambda: True, lambda: None)
    if keeper.start():
        keeper.stop()
        keeper.thread.join(10)
    claim.release()
    known = [weakref.ref(claim), weakref.ref(keeper)]
    del claim, keeper
    gc.collect()
    assert [one() for one in known] == [None, None]
