"""Scripts of scenes, and what is saved of each scene beside what the script has noted itself."""

from __future__ import annotations

import numpy as np

from harness.compare import assert_untouched, noted, run_both
from harness.runner import SUBJECTS
from smd_agent.core.modes import ModeKeys


class Played:
    """A script of scenes that has been run with the agent and without, the latter noting values.

    ``parameters`` are hook parameters; ``lines`` all that the agent has said.
    """

    def __init__(self, runner, script, parameters=None):
        notes_file = runner.folder / "notes.npz"
        plain = runner.plain(SUBJECTS / script, str(notes_file))
        assert plain.stderr == ""
        config = {"HookParameters": {"save_interval": 1, "save_all": True, **(parameters or {})}}
        both = run_both(runner, SUBJECTS / script, plain=plain, config=config, strict=True)
        assert_untouched(both)
        self.lines, self.trial = both.said, both.trial
        self._notes = noted(notes_file)

    @property
    def scenes(self):
        """The names of the scenes, in order."""
        return [key.partition("|")[0] for key in self._notes if key.endswith("|steps")]

    def steps(self, scene, mode):
        """Return the steps of a mode that belong to a scene."""
        first_train, train, first_eval, evaluation = self._notes[f"{scene}|steps"]
        first, count = (first_train, train) if mode is ModeKeys.TRAIN else (first_eval, evaluation)
        return [int(step) for step in range(first, first + count)]

    def value(self, name, step, mode=ModeKeys.TRAIN):
        return self.trial.tensor(name).value(step, mode=mode)

    def saved(self, scene, name, mode=ModeKeys.TRAIN):
        """Return at which steps of the scene, counted from its first, a tensor was saved."""
        steps = self.steps(scene, mode)
        return [step - steps[0] for step in self.trial.tensor(name).steps(mode=mode) if step in steps]

    def check(self, scene, tolerance=0.0):
        """Compare each value noted in the scene with the saved one; return how many there were."""
        count = 0
        for key, expected in self._notes.items():
            found, _, place = key.partition("|")
            if found != scene or place == "steps":
                continue
            mode, step, name = place.split("|")
            value = self.value(name, int(step), ModeKeys[mode])
            assert value.shape == expected.shape, key
            np.testing.assert_allclose(value, expected, rtol=tolerance, atol=tolerance, err_msg=key)
            count += 1
        return count
