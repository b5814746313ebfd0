"""The weights as a training has left them: saved when the program ends, in the step that they are the weights of.

Weights of a step are those before its update. So after the last update they are those of the step that would come next,
and amid a step they are its own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from smd_agent.core.collection_keys import CollectionKeys
from smd_agent.core.failure_domains import failures
from smd_agent.core.overhead import overhead
from smd_agent.core.recorder import Recorder

LONGEST = 5.0
"""Seconds that saved steps may have taken each: whoever ends a program may not wait longer."""

_COLLECTIONS = {CollectionKeys.WEIGHTS, CollectionKeys.BIASES}


def save_left(recorder: Recorder, left: Callable[[], Mapping[str, Any]]) -> None:
    """Save weights, if the training has made a step and its current one has not saved them.

    Args:
        recorder: of the run.
        left: gives them by name; none where they are not those that the last update has left.
    """
    position = recorder.position
    too_long = overhead.seconds > LONGEST * max(failures.saved_steps, 1)
    if too_long or not recorder.output.begin(position.train.mode):
        return
    if recorder.interrupted is not None:
        recorder.go_on()
    amid = position.awaits_update
    if position.train.step < 0 or (amid and position.saving):
        return
    found = left()
    if not recorder.ever_wanted(frozenset(found)):
        return
    if not amid:
        recorder.end_step()
        position.begin(position.train)
    if recorder.sink_of_step(_COLLECTIONS) is not None:
        recorder.save_tensors([*found], [*found.values()])
