"""Parameters that the backward passes of a step reach, by MXNet's own flag of gradients that have not been applied.

Without taking the flags off during a pass, a gradient of it could not be told from one that an earlier pass left. Where
several threads train, that is not told: another one may look at its flags meanwhile, as an update does.
"""

from __future__ import annotations

from mxnet.gluon import Parameter
from mxnet.ndarray import NDArray

from smd_agent.core.failure_domains import GRADIENTS
from smd_agent.mxnet.arrays import fresh, set_fresh
from smd_agent.mxnet.backward_calls import passes
from smd_agent.mxnet.plain_access import can_be_trained, is_sparse, values_of
from smd_agent.mxnet.ports import TrainedBlocks

Pair = tuple[str, Parameter]


class ReachedParameters:
    """Those of one step.

    Args:
        blocks: those that are trained.
    """

    def __init__(self, blocks: TrainedBlocks) -> None:
        self._blocks = blocks
        self._found: set[int] = set()

    def has(self, parameter: Parameter) -> bool:
        """True if a backward pass of this step has reached a parameter; of a sparse one, whether there was one."""
        return id(parameter) in self._found

    @GRADIENTS.fence("looking at gradients before a backward pass")
    def before_backward(self) -> Flags:
        """Take the flags off."""
        arrays = [array for _, parameter in self._trained() for array in values_of(parameter)]
        return Flags(arrays, passes.are_of_one_thread())

    def after_backward(self, flags: Flags | None) -> list[Pair]:
        """Put the flags back; the parameters that the pass has reached, with their names. None where that failed."""
        # Whatever has become of us: the flags are the program's.
        ids = None if flags is None else GRADIENTS.always("looking at gradients", flags.restore)
        return [] if ids is None else self._reached(ids) or []

    @GRADIENTS.fence("looking at gradients after a backward pass")
    def _reached(self, ids: set[int]) -> list[Pair]:
        # A sparse parameter shows no state; a dense one that was not reached has an older gradient.
        found = [
            (name, parameter)
            for name, parameter in self._trained()
            if is_sparse(parameter) or any(id(array) in ids for array in values_of(parameter))
        ]
        self._found.update(id(parameter) for _, parameter in found)
        return found

    def _trained(self) -> list[Pair]:
        """The parameters that get a gradient."""
        return [pair for pair in self._blocks.parameters() if can_be_trained(pair[1])]


def has_unused_gradient(parameter: Parameter) -> bool:
    """True if a backward pass has reached a parameter, of whatever block, and no update has used that yet."""
    return any(map(fresh, values_of(parameter)))


class Flags:
    """The flags of arrays, which are off until they are put back; all stay as they are unless ``can_be_off``."""

    def __init__(self, arrays: list[NDArray], can_be_off: bool) -> None:
        self._waiting = [(array, can_be_off and fresh(array)) for array in arrays]
        for array, is_waiting in self._waiting:
            if is_waiting:
                set_fresh(array, False)

    def restore(self) -> set[int]:
        """Put the flags back as they would be by now; the ids of those that the pass has set."""
        reached = set()
        for array, is_waiting in self._waiting:
            if fresh(array):
                reached.add(id(array))
            elif is_waiting:
                set_fresh(array, True)
        return reached
