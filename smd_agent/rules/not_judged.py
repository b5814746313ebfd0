"""Reasons why rules could not judge a run: what could have been saved, and what the training does not have."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from smd_agent.core.collection_keys import BUILT_IN_NAMES, CollectionKeys
from smd_agent.core.modes import ModeKeys

if TYPE_CHECKING:
    from smd_agent.analysis.trial import Trial
    from smd_agent.core.collection import Collection
    from smd_agent.rules.finding import Lack, NotJudged


def never_came_up(trial: Trial) -> dict[str, str]:
    """Return the names of collections that have no tensor, and would have none if they were asked for once more.

    Each has the reason that the run tells; an empty one where it tells none.
    """
    manager = trial.collection_manager
    reasons, asked = manager.cannot_save, {*(manager.asked_for or ()), *manager.always_saved}
    last = _last_steps(trial)
    tried = [
        (name, one)
        for name, one in trial.collections().items()
        if name in reasons or ((name in asked or CollectionKeys.ALL in asked) and _was_due(one, last))
    ]
    # Named, they would come up.
    tried = [(name, one) for name, one in tried if name not in manager.left_out]
    names = trial.tensor_names() if tried else []
    return {name: reasons.get(name, "") for name, one in tried if not any(map(one.matches, names))}


def _last_steps(trial: Trial) -> dict[ModeKeys, int]:
    """The last saved step of each mode, as it counts them."""
    found: dict[ModeKeys, int] = {}
    for step in trial.step_table.steps(ModeKeys.GLOBAL, incomplete=True):
        mode, number = trial.mode_modestep(step)
        if mode is not None and number is not None:
            found[mode] = number
    return found


def _was_due(collection: Collection, last: Mapping[ModeKeys, int]) -> bool:
    """True if a saved step could have had it."""
    if collection.save_config is None:
        return True
    first = {mode: collection.save_config.get_save_config(mode).next_step(0) for mode in last}
    return any(due is not None and due <= last[mode] for mode, due in first.items())


def with_reasons(not_judged: Sequence[NotJudged], trial: Trial) -> list[NotJudged]:
    """Return the same with what the run tells: what it was asked for and does not have is not to be asked for again."""
    if not any(one.lacking or one.modes for one in not_judged):
        return [*not_judged]
    run = _Run(trial)
    return [run.told(one) for one in not_judged]


class _Run:
    """The collections that there are in a run, and those that could be."""

    def __init__(self, trial: Trial) -> None:
        manager = trial.collection_manager
        asked = {*(manager.asked_for or ()), *manager.always_saved}
        known = trial.collections()
        self._asked = {*known} if CollectionKeys.ALL in asked else asked
        self._absent = never_came_up(trial)
        if manager.asked_for is not None:
            # Such as the framework does not have.
            self._absent |= {name: "" for name in BUILT_IN_NAMES if name not in known}
        self._modes = {trial.mode_modestep(step)[0] for step in trial.step_table.steps(ModeKeys.GLOBAL, True)}
        names = trial.tensor_names() if self._asked else []
        self._left_out = manager.left_out
        self._there = {name for name in self._asked & {*known} if any(map(known[name].matches, names))}

    def told(self, one: NotJudged) -> NotJudged:
        """Return what a rule lacks, as far as this run could have it."""
        if one.modes and self._modes and not self._modes & {*one.modes}:
            words = f"no step of {_listed(mode.name for mode in one.modes)} was saved"
            return replace(one, reason=words, option="", never_came_up=True)
        never = [found for lack in one.lacking if (found := self._never(lack, one.modes))]
        if never:
            return replace(one, reason=_said_once(never), option="", never_came_up=True)
        if one.lacking and not any(self._there & {*lack.held_by} for lack in one.lacking):
            # Of no mode.
            option = "; ".join(dict.fromkeys(map(self._option, one.lacking)))
            return replace(one, reason="; ".join(map(self._words, one.lacking)), option=option)
        return one

    def _never(self, lack: Lack, modes: Iterable[ModeKeys]) -> tuple[tuple[str, ...], str] | None:
        """The collections that cannot be had, and why or in which modes; None where they could."""
        held_by = lack.held_by
        if held_by and all(name in self._absent for name in held_by):
            reasons = dict.fromkeys(filter(None, (self._absent[name] for name in held_by)))
            return tuple(held_by), "".join(f": {reason}" for reason in reasons)
        if lack.in_any_form and any(name in self._asked and name in self._there for name in held_by):
            return tuple(held_by), f" in {_listed(mode.name for mode in modes)}"
        return None

    def _words(self, lack: Lack) -> str:
        """The name of what is lacking, and why all that could hold it was left out, if it was."""
        why = {name: self._left_out.get(name, "") for name in lack.held_by}
        if not why or not all(why.values()):
            return lack.words
        return f"{_listed(why)} left out, as {'; '.join(dict.fromkeys(why.values()))}"

    def _option(self, lack: Lack) -> str:
        """The option that saves it; of several collections, the first that this run could have."""
        return next((option for name, option in lack.options.items() if name not in self._absent), "")


def _listed(names: Iterable[str]) -> str:
    return " or ".join(names)


def _said_once(never: Iterable[tuple[tuple[str, ...], str]]) -> str:
    """The name of what never came up; of several collections with one reason, that once."""
    found: dict[tuple[tuple[str, ...], str], list[str]] = {}
    for names, why in never:
        found.setdefault(((), why) if why else (names, why), []).extend(names)
    return "; ".join(f"no tensor of {_listed(dict.fromkeys(names))} came up{why}" for (_, why), names in found.items())


def grouped(not_judged: Iterable[NotJudged]) -> Mapping[tuple[str, str], list[str]]:
    """Return the names of rules by reason and option: what is the same of several is said once."""
    found: dict[tuple[str, str], list[str]] = {}
    for one in not_judged:
        found.setdefault((one.reason, one.option), []).append(one.rule)
    return found
