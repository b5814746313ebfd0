"""A corridor that an agent walks along, left or right, until it leaves it on the right or gives up."""

import numpy as np

STATES = 4
ACTIONS = 2
PATIENCE = 12


class Corridor:
    """Episodes of at most ``PATIENCE`` steps.

    Args:
        seed: of where they begin.
    """

    def __init__(self, seed):
        self._random = np.random.RandomState(seed)

    def reset(self):
        """Begin an episode; return its first state."""
        self._place, self._speed, self._time = self._random.uniform(-0.5, 0.5), 0.0, 0
        return self._state()

    def step(self, action):
        """Act; return the next state, the reward and whether the episode is over."""
        self._speed = 0.8 * self._speed + (0.1 if action else -0.1)
        self._place += self._speed
        self._time += 1
        out = self._place > 1.0
        return self._state(), 1.0 if out else -0.1, out or self._time == PATIENCE

    def _state(self):
        return np.array([self._place, self._speed, self._place**2, self._time / PATIENCE], "f")
