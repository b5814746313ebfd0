"""Requests to a running training, as its steps obey them; nothing is written."""

from __future__ import annotations

import pytest
from harness.memory_hook import make

from smd_agent.core.clock import NEVER
from smd_agent.core.modes import ModeKeys
from smd_agent.core.requests import DUMP, KEEP, SAVE, SET, STOP, STOPPED_EXIT_CODE, Request, TrainingStopped, checked
from smd_agent.core.save_config import SaveConfig
from smd_agent.errors import SMDebugValueError


class Loop:
    """A training of which the numbers of the saved steps are noted, and the answers."""

    def __init__(self):
        self.hook = make(save_config=SaveConfig(save_interval=100), include_collections=["losses"])
        self.hook.get_collection("losses").include(["^loss$"])
        self.hook.get_collection("gradients").include(["^gradient/"])
        self.hook.set_mode(ModeKeys.TRAIN)
        self.requests = self.hook.recorder.requests
        self.answers = []
        self.requests.answer = self.answers.append
        self.saved = {}
        self.opened = []

    def step(self):
        recorder, position = self.hook.recorder, self.hook.position
        if position.open:
            recorder.end_step()
        if not position.begin(position.train):
            return
        self.opened.append(position.train.step)
        if recorder.open_step():
            names = ("loss", "gradient/a", "other")
            self.saved[position.train.step] = sorted(name for name in names if recorder.wants(name))
            recorder.save_tensors(names, (1.0, 2.0, 3.0))

    def steps(self, count):
        for _ in range(count):
            self.step()


@pytest.fixture
def loop():
    return Loop()


def test_as_long_as_nobody_asks_no_step_is_looked_at(loop):
    loop.steps(101)
    assert loop.opened == [0, 100]


def test_collections_are_saved_for_some_steps_and_no_longer(loop):
    loop.steps(10)
    loop.requests.take(Request("a", SAVE, collections=("gradients",), steps=3))
    loop.steps(100)
    assert {step: names for step, names in loop.saved.items() if 0 < step < 100} == {
        step: ["gradient/a"] for step in (10, 11, 12)
    }
    assert loop.saved[100] == ["loss"]
    assert loop.answers == [("a", True, "obeyed at step 10, saved 1 tensor in 3 steps", 10, 1)]


def test_a_dump_saves_every_tensor_whole(loop):
    loop.steps(5)
    loop.requests.take(Request("a", DUMP, at=7))
    loop.steps(10)
    assert [step for step in loop.saved if step] == [7]
    assert loop.saved[7] == ["gradient/a", "loss", "other"]
    assert loop.answers[0].saved == 3


def test_two_requests_at_once(loop):
    loop.steps(5)
    loop.requests.take(Request("a", SAVE, collections=("gradients",), steps=4))
    loop.requests.take(Request("b", SAVE, collections=("losses",), steps=2))
    loop.steps(10)
    assert [step for step in loop.saved if step] == [5, 6, 7, 8]
    assert [(answer.name, answer.saved) for answer in loop.answers] == [("b", 1), ("a", 1)]


def test_workers_obey_at_one_step_and_one_that_is_late_says_so(loop):
    loop.steps(5)
    loop.requests.take(Request("a", SAVE, at=20, fixed=True, collections=("losses",)))
    loop.steps(20)
    loop.requests.take(Request("b", SAVE, at=20, fixed=True, collections=("losses",)))
    loop.steps(2)
    assert [answer.step for answer in loop.answers] == [20, -1]
    assert loop.answers[1].text == "it was read in step 25, which is too late for step 20: ask again"


def test_nothing_of_a_collection_comes_up(loop):
    loop.steps(1)
    loop.requests.take(Request("a", SAVE, collections=("biases",), steps=2))
    loop.steps(5)
    assert loop.answers == [("a", False, "no tensor of biases came up in 2 steps from 1 on", -1, 0)]


def test_what_is_open_is_answered_when_the_training_ends(loop):
    loop.steps(5)
    loop.requests.take(Request("a", SAVE, collections=("losses",), steps=10))
    loop.requests.take(Request("b", DUMP, at=50))
    loop.steps(4)
    loop.hook.close()
    assert [answer.text for answer in loop.answers] == [
        "obeyed at step 5, saved 1 tensor in 4 steps: the training has ended",
        "the training has ended before step 50",
    ]


class Keeper:
    """Keeps the steps that it is told to keep."""

    def __init__(self, why=""):
        self.why = why
        self.asked = []

    def keep(self, done):
        self.asked.append(done)
        return self.why


def test_a_step_is_kept(loop):
    loop.requests.keeper = keeper = Keeper()
    loop.steps(5)
    loop.requests.take(Request("a", KEEP, at=7))
    loop.steps(3)
    (done,) = keeper.asked
    assert loop.answers == []
    done("obeyed at step 7", 7)
    # What comes later of the same step has been told.
    done("obeyed again", 7)
    loop.steps(92)
    assert loop.answers == [("a", True, "obeyed at step 7", 7, 0)]
    assert loop.saved.keys() == {0}
    # The step after it is looked at, which tells that nothing has come.
    assert loop.opened == [0, 5, 7, 8]


@pytest.mark.parametrize(
    "keeper, steps, words",
    [
        (None, 1, "with this framework no step can be kept"),
        (Keeper("bundles are switched off"), 1, "bundles are switched off"),
        (Keeper(), 2, "no backward pass of a model was seen in step 3"),
        (Keeper(), 1, "the training has ended"),
    ],
)
def test_a_step_that_is_not_kept_is_answered_for(loop, keeper, steps, words):
    if keeper is not None:
        loop.requests.keeper = keeper
    loop.steps(3)
    loop.requests.take(Request("a", KEEP))
    loop.steps(steps)
    loop.requests.end()
    assert loop.answers == [("a", False, words, -1, 0)]


def test_an_interval_is_set(loop):
    loop.steps(5)
    loop.requests.take(Request("a", SET, key="train.save_interval", value=4))
    loop.steps(10)
    assert [step for step in loop.saved if step] == [8, 12]
    assert loop.answers[0].text == "obeyed at step 5, train.save_interval is 4 (it was 100)"


def test_a_training_stops_where_a_step_begins(loop, capsys):
    loop.steps(5)
    loop.requests.take(Request("a", STOP, at=8, fixed=True, why="enough", asked_by="a test"))
    with pytest.raises(TrainingStopped) as stopped:
        loop.steps(10)
    assert stopped.value.code == STOPPED_EXIT_CODE
    assert (stopped.value.step, stopped.value.why) == (8, "enough")
    assert loop.answers == [("a", True, "obeyed at step 8, before its update", 8, 0)]
    assert "smd_agent: stopped at step 8: enough (asked by a test)\n" in capsys.readouterr().err


def test_whoever_runs_the_loop_is_asked_one_step_before(loop, capsys):
    class Trainer:
        asked = False
        after_step = staticmethod(lambda: setattr(Trainer, "asked", True) or "a trainer")
        is_ignored = staticmethod(lambda: False)

    loop.requests.stopper = Trainer()
    loop.steps(5)
    loop.requests.take(Request("a", STOP, at=8, fixed=True, why="enough"))
    loop.steps(2)
    assert not Trainer.asked
    loop.steps(3)
    assert loop.answers[0].text == "obeyed: a trainer ends the training after step 7"
    assert "stopped after step 7: enough (asked by tap)" in capsys.readouterr().err


def test_a_trainer_that_goes_on_is_ended(loop):
    class Stubborn:
        after_step = staticmethod(lambda: "a trainer")
        is_ignored = staticmethod(lambda: True)

    loop.requests.stopper = Stubborn()
    loop.steps(5)
    loop.requests.take(Request("a", STOP, why="enough"))
    with pytest.raises(TrainingStopped) as stopped:
        loop.steps(3)
    assert stopped.value.step == 6


def test_steps_of_evaluation_are_none_of_those_that_are_counted(loop):
    recorder = loop.hook.recorder
    recorder.follow_calls()
    loop.steps(3)
    loop.requests.take(Request("a", SAVE, collections=("losses",), steps=2))
    for _ in range(5):
        recorder.end_step()
        if loop.hook.position.begin(recorder.clocks[ModeKeys.EVAL]):
            recorder.open_step()
    loop.steps(4)
    assert [step for step in loop.saved if step] == [3, 4]


@pytest.mark.parametrize(
    "request_, words",
    [
        (Request("a", "eval"), "action is 'eval', allowed is save, dump, keep, stop, set"),
        (Request("a", SAVE), "collections are missing"),
        (Request("a", SAVE, collections=("x",), steps=0), "steps is 0, allowed is a whole number from 1 up"),
        (Request("a", SAVE, collections=("x",), at=-1), "at is -1, allowed is a whole number from 0 up"),
        (Request("a", DUMP, at=NEVER), f"at is {NEVER}, allowed is a whole number from 0 up"),
        (Request("a", SET, key="dry_run", value=1), "key is 'dry_run', allowed is save_interval, train.save_interval"),
        (Request("a", SET, key="save_interval"), "value is 0, allowed is a whole number from 1 up"),
    ],
)
def test_a_request_that_makes_no_sense(request_, words):
    with pytest.raises(SMDebugValueError) as refused:
        checked(request_)
    assert str(refused.value).startswith(words)


def test_the_exception_can_be_handed_from_process_to_process():
    import pickle

    again = pickle.loads(pickle.dumps(TrainingStopped(3, "enough")))
    assert (again.code, again.step, again.why) == (STOPPED_EXIT_CODE, 3, "enough")
