"""States of a training at its checkpoints: ``metadata.json`` beside the checkpoints.

The file is a JSON list with an object for each state. smdebug's keys are ``training-run``, ``latest-global-step-saved``
(null if none was), ``latest-global-step-seen`` and ``latest-mode-step`` (by mode's name); ours are ``run-folder`` and,
of a run in a store, ``run-store``.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from smd_agent.core.modes import ModeKeys

FILE_NAME = "metadata.json"

_MODES = {mode.name: mode for mode in ModeKeys}


class StorePlace(NamedTuple):
    """The place of a run in a store, and what shows that it is this one.

    address: such as ``s3://bucket/runs/7``.
    claim: name of the claim file there, below the address.
    mark: of the run, which stands in that file.
    waiting: the steps that were saved, and that the store had not taken yet.
    """

    address: str
    claim: str
    mark: str
    waiting: tuple[int, ...] = ()


@dataclass(frozen=True)
class TrainingState:
    """One state.

    training_run: how often the training had been started, from 1 on.
    saved: the last step of which something was saved, over all modes; None if there was none.
    seen: the last step that had begun, over all modes; a training that goes on from here begins with the next one.
    mode_steps: the last step of each mode that had begun.
    folder: absolute path of the folder that the run was written into; None if the file does not say so.
    store: where it was in a store; None if it was in none.
    """

    training_run: int
    saved: int | None
    seen: int
    mode_steps: Mapping[ModeKeys, int]
    folder: str | None = None
    store: StorePlace | None = None


def parse_states(text: str) -> list[TrainingState]:
    """Read the file's text.

    Raises:
        ValueError: it is not such a file.
    """
    try:
        return [_parsed(fields) for fields in json.loads(text)]
    except (TypeError, KeyError, AttributeError, RecursionError, OverflowError) as error:
        raise ValueError(f"it is not a list of states ({type(error).__name__}: {error})") from error


def states_text(states: Sequence[TrainingState]) -> str:
    """Return the file's text."""
    return json.dumps([_fields(state) for state in states], indent=1)


def _parsed(fields: Mapping[str, Any]) -> TrainingState:
    saved, folder = fields.get("latest-global-step-saved"), fields.get("run-folder")
    steps = {_MODES[name]: int(step) for name, step in fields["latest-mode-step"].items() if name in _MODES}
    seen = int(fields["latest-global-step-seen"])
    return TrainingState(
        training_run=int(fields.get("training-run") or 0),
        saved=None if saved is None else int(saved),
        seen=seen,
        mode_steps={mode: step for mode, step in steps.items() if step >= 0},
        folder=folder if isinstance(folder, str) else None,
        store=_parsed_place(fields.get("run-store")),
    )


def _parsed_place(fields: Mapping[str, Any] | None) -> StorePlace | None:
    if fields is None:
        return None
    waiting = tuple(int(step) for step in fields["waiting"])
    return StorePlace(str(fields["address"]), str(fields["claim"]), str(fields["mark"]), waiting)


def _fields(state: TrainingState) -> dict[str, object]:
    fields: dict[str, object] = {
        "training-run": state.training_run,
        "latest-global-step-saved": state.saved,
        "latest-global-step-seen": state.seen,
        "latest-mode-step": {mode.name: step for mode, step in state.mode_steps.items()},
    }
    if state.folder is not None:
        fields["run-folder"] = state.folder
    if state.store is not None:
        fields["run-store"] = state.store._asdict()
    return fields
