"""What the author of a training writes down while it runs: the losses and the gradients of each iteration.

An iteration is what the author counts. Values are kept as NumPy arrays; the module knows no framework and no agent.
"""

from __future__ import annotations

import gc
import hashlib
import sys
from pathlib import Path

import numpy as np

LENGTH = 24
"""Iterations of a training, more or less."""


class Author:
    """One training's author.

    Args:
        kind: of the training.
        folder: where the training may keep a checkpoint.

    Attributes:
        iterations: how many have ended.
        evaluations: how many calls of a trained net, for something else than its training, there have been since the
            first iteration began.
    """

    def __init__(self, kind, folder):
        self.kind = kind
        self.folder = folder
        self.iterations = self.evaluations = 0
        self.notes = {}
        self._losses = 0
        self._trains = False

    def loss(self, value):
        """Note a loss of the current iteration, from which a backward pass starts."""
        self._trains = True
        self.notes[self._key(f"loss|{self._losses}")] = np.array(value)
        self._losses += 1

    def gradients(self, found):
        """Note gradients by the parameters' names; of several ones of an iteration, the last stay."""
        for name, value in found.items():
            self.notes[self._key(f"gradient/{name}")] = np.array(value)

    def first_gradients(self, found):
        """Note gradients by the parameters' names, unless the iteration has them already."""
        self.gradients(
            {n: v for n, v in found.items() if f"{self.kind}|{self.iterations}|gradient/{n}" not in self.notes}
        )

    def iteration(self):
        """End the current iteration."""
        self.iterations += 1
        self._losses = 0

    def evaluated(self):
        """Note a call of a trained net that is for something else than its training."""
        self.evaluations += self._trains

    def _key(self, place):
        return f"{self.kind}|{self.iterations}|{place}"


def work(kinds, seed):
    """Run the kinds of trainings that the arguments name, and print a digest of each one's results.

    usage: SCRIPT all|KIND[,KIND...] FOLDER [NOTES.npz]

    Args:
        kinds: functions by their names, which take an ``Author`` and return arrays, their results.
        seed: sets the random state that all kinds begin with, and returns a function that draws from it.
    """
    notes = {}
    for name in kinds if sys.argv[1] == "all" else sys.argv[1].split(","):
        author = Author(name, Path(sys.argv[2]))
        draw = seed()
        digest = hashlib.sha1()
        for array in [*kinds[name](author), *draw()]:
            digest.update(np.ascontiguousarray(array).tobytes())
        print(name, author.iterations, author.evaluations, digest.hexdigest(), flush=True)
        notes.update(author.notes)
        notes[f"{name}|counts"] = np.array([author.iterations, author.evaluations])
        # A net that lives on would be a part of the next training.
        gc.collect()
    if len(sys.argv) > 3:
        np.savez(sys.argv[3], **notes)
