"""Runs for rules that a test writes itself: values, reductions, shapes and times, step by step."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from harness.written_runs import started
from smd_agent import create_trial
from smd_agent.analysis.trial import Trial
from smd_agent.core.collection_manager import CollectionManager
from smd_agent.core.modes import ModeKeys
from smd_agent.rules.built_in import BuiltInRule
from smd_agent.rules.judging import Judging, Verdict

COLLECTIONS = {
    "losses": "loss",
    "weights": "weight$",
    "gradients": "^gradient/",
    "updates": "^update(_ratio)?/",
    "all": ".*",
}


def written(
    folder: Path,
    steps: Iterable[Mapping[str, Any]],
    modes: ModeKeys | Iterable[ModeKeys] = ModeKeys.TRAIN,
    every: int = 1,
    ended: bool = True,
    times: Iterable[float] = (),
) -> Trial:
    """Write a run and open it.

    Args:
        folder: of the run.
        steps: of each step what is saved, by name: a value; or a dict of reductions by name, and ``shape``.
        modes: of all steps, or of each.
        every: how many steps lie between two that are saved.
        ended: whether it says that it has.
        times: at which they were saved, in seconds since the epoch; now, if none are given.
    """
    run = started(folder)
    manager = CollectionManager()
    for name, pattern in COLLECTIONS.items():
        manager.get(name).include(pattern)
    run.write_collections(manager.to_json())
    each = iter(modes) if not isinstance(modes, ModeKeys) else None
    clock = iter(times)
    for number, tensors in enumerate(steps):
        step, when = number * every, next(clock, None)
        file = run.begin_step(step, modes if each is None else next(each), step)
        for name, value in tensors.items():
            if not isinstance(value, dict):
                file.add(name, np.asarray(value), wall_time=when)
                continue
            for reduction, of in value.items():
                if reduction == "shape":
                    file.add_shape(name, name, tuple(of))
                else:
                    file.add(f"smdebug/reductions/{reduction}/{name}", np.array(float(of)))
        run.commit(file)
        assert run.flush()
    run.close(ended)
    trial = create_trial(str(folder), timeout=0)
    trial.maybe_refresh()
    return trial


def verdict(trial: Trial, rule: BuiltInRule) -> Verdict:
    """Return what a rule says of a run."""
    judging = Judging(trial, [rule])
    judging.take_new(incomplete=True)
    return judging.verdict()


def found(trial: Trial, rule: BuiltInRule) -> dict[str | None, tuple[int, int]]:
    """Return the first and the last step of what a rule finds, by tensor; the rule must be able to judge."""
    said = verdict(trial, rule)
    assert said.judged == [rule.rule_name], (said.not_judged, said.not_for_it)
    assert said.problems == []
    return {one.tensor: (one.first_step, one.last_step) for one in said.findings}


def met(trial: Trial, rule: BuiltInRule) -> list[int]:
    """Return the steps at which the condition of a rule that was made for the trial is met."""
    return [step for step in trial.steps(show_incomplete_steps=True) if rule.invoke_at_step(step)]
