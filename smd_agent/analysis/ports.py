"""Interface by which a tensor asks the trial it is of: all that `Tensor` knows of a `Trial`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

import numpy as np

from smd_agent.analysis.steps import Contents, StepTable
from smd_agent.core.modes import ModeKeys
from smd_agent.formats.event import Form, SavedTensor
from smd_agent.storage.index_files import StepIndex


class TensorSource(Protocol):
    """The steps and values of a run; a `Trial` is one."""

    @property
    def step_table(self) -> StepTable:
        """The steps found so far."""

    def maybe_refresh(self) -> None:
        """Look for new steps unless all are known or refreshing is switched off."""

    def workers(self) -> list[str]:
        """Return the workers that write to the run, in order."""

    def global_step(self, mode: ModeKeys, mode_step: int) -> int | None:
        """Return the global number of a mode's step; None when it was not saved."""

    def contents(self, file: StepIndex) -> Contents:
        """Return the tensors and reductions of one worker's step."""

    def read(self, file: StepIndex, stored_name: str) -> SavedTensor:
        """Read what one worker stored under a name at one step."""

    def bring(self, file: StepIndex, stored_names: Sequence[str]) -> None:
        """Read the bytes of small tensors of one step at once, which `read` and `form` then need not do one by one."""

    def number(self, file: StepIndex, stored_name: str) -> np.generic:
        """Read a number; raises DamagedRecord if it is none."""

    def numbers(self, file: StepIndex, stored_names: Iterable[str]) -> dict[str, float]:
        """Read the numbers stored under some names at one step at once; some may be left out, for `number` to read."""

    def form(self, file: StepIndex, stored_name: str) -> Form | None:
        """Tell dtype and shape of what one worker stored under a name, without reading its values."""
