"""Marks of the last update: one parameter of each model, and the version in which the update has left it.

Whatever changes a parameter in place gives it another version, but for what goes by way of ``.data``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import torch
from torch.nn.parameter import UninitializedParameter

from smd_agent.framework.plain_access import in_class, is_a
from smd_agent.framework.weak_references import Reference, to_nothing
from smd_agent.pytorch.own_operations import apart
from smd_agent.pytorch.torch_compile import leave_uncompiled
from smd_agent.pytorch.tracing import probe

ByModel = Iterable[Iterable[torch.Tensor]]

# Of such a class the program's own functions are not called for an attribute.
_PLAIN = in_class(torch.nn.Parameter, "__torch_function__")


_function_modes = probe(torch, "_C._len_torch_function_stack", 1)


class UpdateMarks:
    """The marks of what is trained.

    Attributes:
        wanted: whether there is anything to note after updates.
    """

    # Noted after each update.
    __slots__ = ("_first", "_marks", "_models", "_several", "_version", "wanted")

    def __init__(self) -> None:
        self.wanted = False
        self._first: Callable[[], torch.Tensor | None] = to_nothing
        self._version = -1
        self._several = False
        self._models: Callable[[], ByModel] = tuple
        self._marks: list[tuple[Reference[torch.Tensor], torch.dtype, int]] = []

    def follow(self, models: Callable[[], ByModel] | None) -> None:
        """Mark the parameters of these models, by the model, as the next update leaves them; None: nobody asks."""
        self.wanted = models is not None
        self._models = models or tuple
        self._marks.clear()
        self._first, self._several = to_nothing, False

    def renew(self) -> None:
        """An update has taken place: as ``note``, in less time where one model is marked."""
        # A mode of the program's sees even that.
        self._version = _version_apart(self._first()) if _function_modes() else getattr(self._first(), "_version", -1)
        if self._several:
            self.note()

    @apart
    def note(self) -> None:
        """An update has taken place."""
        marked = [mark() for mark, _, _ in self._marks] if self._marks else [*map(_mark_of, self._models())]
        self._marks = [(Reference(one), one.dtype, one._version) for one in marked if one is not None]
        self._several = len(self._marks) > 1
        if self._marks:
            self._first, _, self._version = self._marks[0]

    def are_left(self, models: ByModel) -> bool:
        """True if these models are as the last update has left them, as far as the marks tell."""
        known = {id(mark()): (dtype, version) for mark, dtype, version in self._marks}
        if (first := self._first()) is not None and id(first) in known:
            known[id(first)] = known[id(first)][0], self._version
        marked = [*map(_mark_of, models)]
        return bool(marked) and all(
            one is not None and known.get(id(one)) == (one.dtype, one._version) for one in marked
        )


leave_uncompiled(UpdateMarks.renew, with_callees=True)


@apart
def _version_apart(marked: torch.Tensor | None) -> int:
    return getattr(marked, "_version", -1)


def _mark_of(parameters: Iterable[torch.Tensor]) -> torch.Tensor | None:
    """The first parameter that is trained; the program may make others of those that are not."""
    for one in parameters:
        plain = in_class(type(one), "__torch_function__") is _PLAIN and not is_a(one, UninitializedParameter)
        if plain and one.requires_grad and one.is_leaf:
            return one
    return None
