"""Note of the first training step whose loss is not finite, of a training that can only be done again as a whole.

It is a bundle without tensors, and without a model: it has the step, and the program's words and folder, by which
``replay`` starts the program again. Nothing of a step is held for it.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from smd_agent import guard
from smd_agent.core.failure_domains import BUNDLES
from smd_agent.formats.series import ABSENT
from smd_agent.framework.series_rows import At

if TYPE_CHECKING:
    from smd_agent.core.clock import RunPosition
    from smd_agent.core.hook import BaseHook


class WrongSteps:
    """The note of a run; there is one.

    Args:
        run: the hook.

    Attributes:
        wanted: there is none yet, and there is to be one.
    """

    def __init__(self, run: BaseHook) -> None:
        self._run = run
        self._began = time.monotonic()
        self.wanted = True

    def saw(self, at: At | RunPosition, loss: float) -> None:
        """A training step, the current one or another, has this loss; those are told that have a row of the series."""
        if loss - loss != 0.0 and loss is not ABSENT and self.wanted:
            self._note(at if isinstance(at, At) else At.current(at), loss)

    @BUNDLES.fence("noting a step whose loss is not finite")
    def _note(self, at: At, loss: float) -> None:
        # Of no other training these need to be there.
        from smd_agent.core.run_output import worker_name
        from smd_agent.formats.bundles import Bundle, bundle_text
        from smd_agent.formats.paths import bundle_folder
        from smd_agent.formats.safetensors import header
        from smd_agent.framework.environment import VERSIONS
        from smd_agent.framework.started_program import current_folder, program_words

        self.wanted = False
        output = self._run.recorder.output
        if not output.begin(at.mode):
            return
        rank, ranks = self._run.worker()
        why = f"the loss is {loss}"
        bundle = Bundle(
            step=at.mode_step,
            global_step=at.step,
            why=why,
            loss=repr(loss),
            model="",
            words=program_words(),
            folder=current_folder(),
            seconds=round(time.monotonic() - self._began, 1),
            versions=dict(self._run.environment().get(VERSIONS, {})),
        )
        folder = bundle_folder(at.mode_step, worker_name(rank) if ranks > 1 else "")
        output.sink.write_bundle(folder, [header(())], bundle_text(bundle))
        what = "trains again up to it and names what made it so"
        guard.say(
            f"step {at.mode_step} has gone wrong ({why}): python -m smd_agent replay {output.sink.location} {what}"
        )
