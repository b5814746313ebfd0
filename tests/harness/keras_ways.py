"""Keras programs that train in several ways, and what is saved of each beside what the program has seen itself."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np

from harness.compare import assert_untouched, noted, run_both
from harness.runner import SUBJECTS
from smd_agent.core.modes import ModeKeys

QUIET = {"TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": ""}


def variables_of(backend):
    """Return the variables of Keras's run; with TensorFlow, its own choice, it shares the warm process of others."""
    return QUIET if backend == "tensorflow" else {**QUIET, "KERAS_BACKEND": backend}


class KerasRuns:
    """Runs the ways of a Keras program with the agent and compares what they print with one run without it.

    Args:
        runner: ``ways`` are played without the agent in its folder.
        program: prints "way" and its name, then what it has to tell; the file named first gets what a run has seen.
        variables: of the environment.
    """

    def __init__(self, runner, program, ways, variables):
        self.runner = runner
        self.program = SUBJECTS / program
        self.variables = variables
        self.plain = runner.plain(self.program, str(runner.folder / "plain.npz"), *ways, **variables)
        assert self.plain.returncode == 0, self.plain.stderr

    def agent(self, *ways, name, interval=1, collections, but="$"):
        """Run these ways with the agent; lines that match ``but`` may be others."""
        config = {
            "HookParameters": {"save_interval": interval},
            "CollectionConfigurations": [{"CollectionName": name} for name in collections],
        }
        file = str(self.runner.folder / f"{name}.npz")
        more = {"plain": self.plain, "config": config, "strict": True, **self.variables}
        both = run_both(self.runner, self.program, file, *ways, name=name, **more)
        assert_untouched(both, seen=lambda text: _by_way(text, ways, but), stderr=False)
        assert [*_by_way(both.agent.stdout)] == [way for way in ways if way in _by_way(self.plain.stdout)]
        assert "failed" not in both.agent.stderr, both.agent.stderr
        return KerasOutcome(both, self.runner.folder / "plain.npz", Path(file))


def _by_way(stdout, ways=(), but="$"):
    """Return what is printed in each way, or in these ways only; not the lines that match ``but``."""
    found = {}
    for line in stdout.splitlines():
        if line.startswith("way "):
            found[line[4:]] = lines = []
        elif not re.match(but, line):
            lines.append(line)
    return {way: lines for way, lines in found.items() if not ways or way in ways}


class KerasOutcome:
    """A run with the agent, beside what the same program without it saw."""

    def __init__(self, both, seen, ours):
        self.trial = both.trial
        self.stderr = both.agent.stderr
        self.seen, self.ours = (
            {tuple(key.split("|")): value for key, value in noted(file).items()} for file in (seen, ours)
        )

    def value(self, name, step, mode=ModeKeys.TRAIN):
        return self.trial.tensor(name).value(step, mode=mode)

    def steps(self, name, mode=ModeKeys.TRAIN):
        return self.trial.tensor(name).steps(mode=mode)

    def steps_of(self, collection):
        """Steps of training in which something of a collection was saved."""
        names = self.trial.tensor_names(collection=collection, mode=ModeKeys.TRAIN)
        return sorted({step for name in names for step in self.steps(name)})

    def weight(self, variable):
        (found,) = [
            name for name in self.trial.tensor_names(regex="weights/") if name.endswith(f"weights/{variable}:0")
        ]
        return found

    def weight_of(self, layer):
        """Return the name of a layer's kernel."""
        return self.weight(self.trial.tensor_names(regex=f"weights/.*{layer}/kernel:0$")[0].split("/weights/")[1][:-2])

    def check_updates(self, of="", rate=1.0, exact=True):
        """Every saved gradient leads from the weights of its step to those of the next; how many did."""
        checked = 0
        for name in self.trial.tensor_names(regex=f"^gradients/(.*[/_])?{of}.*Grad$"):
            weight = self.weight(name[len("gradients/") : -len("Grad")])
            for step in self.steps(name):
                if step + 1 in self.steps(weight):
                    found = self.value(weight, step) - np.float32(rate) * self.value(name, step)
                    following = self.value(weight, step + 1)
                    if exact:
                        np.testing.assert_array_equal(found, following, f"{name} {step}")
                    else:
                        np.testing.assert_allclose(found, following, rtol=1e-5, atol=1e-6)
                    checked += 1
        return checked

    def check_moves(self, of=""):
        """Every saved update is how far the saved weights are from those of the next step; how many were compared."""
        checked = 0
        for name in self.trial.tensor_names(regex=f"^update/(.*[/_])?{of}"):
            weight = self.weight(name.removeprefix("update/"))
            for step in self.steps(name):
                if step + 1 in self.steps(weight):
                    before, after = (self.value(weight, number).astype("f8") for number in (step, step + 1))
                    move = np.linalg.norm(after - before)
                    np.testing.assert_allclose(self.value(name, step), move, rtol=1e-5, err_msg=f"{name} {step}")
                    checked += 1
        return checked

    def check_seen(self, way, first=0):
        """Weights and logs are those that the program's own callback saw; how many were compared."""
        mine = {key: value for key, value in self.seen.items() if key[0] == way}
        for (_, step, name), value in mine.items():
            stored = name if name in ("loss", "accuracy") else self.weight(name)
            np.testing.assert_array_equal(self.value(stored, first + int(step)).reshape(value.shape), value)
        return len(mine)

    def check_seen_at_saved(self, way):
        """Compare the weights that the program's own callback saw with those of the steps that are saved."""
        mine = [key for key in self.seen if key[0] == way and key[2] not in ("loss", "accuracy")]
        saved = [(int(step), name) for _, step, name in mine if int(step) in self.steps(self.weight(name))]
        for step, name in saved:
            np.testing.assert_array_equal(self.value(self.weight(name), step), self.seen[way, str(step), name])
        return len(saved)
