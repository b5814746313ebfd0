"""The update ratios of a step, of the matrices alone."""

from __future__ import annotations

from smd_agent.framework.training_facts import UPDATE_RATIO
from smd_agent.rules.step_view import Names, StepView


class UpdateRatios:
    """Those of one run; which of the names are matrices is found once for as long as the names stay."""

    def __init__(self) -> None:
        self._matrices: dict[Names, Names] = {}

    def names_in(self, step: StepView) -> Names:
        """Return the names of the ratios of matrices that a step has."""
        names = step.names(patterns=(f"^{UPDATE_RATIO}",))
        if names not in self._matrices:
            self._matrices = {names: tuple(name for name in names if step.is_matrix(name.removeprefix(UPDATE_RATIO)))}
        return self._matrices[names]
