"""What hooks are made with."""

from __future__ import annotations

import inspect

from smd_agent import guard, session
from smd_agent.framework.boosting.hook import BoostingHook
from smd_agent.framework.hook import FrameworkHook


def test_a_hook_of_boosted_trainings_takes_first_what_every_hook_takes():
    every, boosting = (by_place(hook) for hook in (FrameworkHook, BoostingHook))
    assert boosting[0][: len(every[0])] == every[0]
    assert boosting[1] == every[1]


def test_tensorboard_settings_are_answered_with_one_line(tmp_path, capsys):
    guard._said.clear()
    for number, wanted in enumerate(({"export_tensorboard": True}, {"tensorboard_dir": "boards"})):
        FrameworkHook(str(tmp_path / str(number)), **wanted)
        session.forget()
    assert capsys.readouterr().err == "smd_agent: TensorBoard files are not written by this version\n"


def by_place(hook):
    """The parameters that may be given by place, and those that have to be named."""
    parameters = list(inspect.signature(hook).parameters.values())
    named = [parameter for parameter in parameters if parameter.kind is parameter.KEYWORD_ONLY]
    return [parameter for parameter in parameters if parameter not in named], named
