"""Watchers of what a script hands to its hook: ``wrap_tape`` and ``wrap_optimizer``."""

from __future__ import annotations

import tensorflow as tf

from smd_agent import guard
from smd_agent.tensorflow.sessions.graph_notes import watch_optimizers
from smd_agent.tensorflow.types import Tape


class Watchers:
    """The watchers of this package, for the objects that a script hands to its hook."""

    def tape(self, tape: Tape) -> None:
        """Watch this tape."""
        try:
            from smd_agent.tensorflow.tape.tape_loops import the_watch
        except ImportError as error:
            # It needs parts of TensorFlow that are not public.
            line = f"tensorflow {tf.__version__}: GradientTape is not captured ({guard.describe(error)})"
            guard.say_once("no tapes", line)
            return
        the_watch().wrap_tape(tape)

    def optimizers(self) -> None:
        """Watch the optimizers of ``tf.compat.v1``."""
        watch_optimizers()
