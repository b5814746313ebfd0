"""Parameters, optimizers and inputs of PyTorch, as the facts of a training step look at them.

See ``framework.training_facts``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import torch

from smd_agent.framework import input_digests
from smd_agent.framework import training_facts as facts
from smd_agent.framework.followed_parameters import NOISE, State
from smd_agent.framework.optimizer_settings import title_of
from smd_agent.framework.weight_changes import Moved
from smd_agent.pytorch.arrays import has_memory, in_floats, local_of, sent, tensors_in
from smd_agent.pytorch.capture.l2_norms import length_of, lengths_of
from smd_agent.pytorch.model.given_to_optimizer import was_given
from smd_agent.pytorch.model.live_modules import living_modules
from smd_agent.pytorch.optimizer_watch import ids_of
from smd_agent.pytorch.own_operations import without_gradients
from smd_agent.pytorch.plain_access import groups_of, in_group, optimized, own_parameters

_SETTINGS = ("lr", "weight_decay", "momentum", "betas", "eps")
# Elements of each weight and gradient that are compared.
_ELEMENTS = 64
_WORDS = {1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}


class Weights:
    """Parameters before and after an update."""

    def owned_by(self, optimizer: Any) -> list[torch.Tensor]:
        """The parameters of an optimizer."""
        return optimized(optimizer)

    def size_of(self, parameter: torch.Tensor) -> int:
        """Number of elements of a parameter."""
        return parameter.numel()

    @without_gradients
    def sample(self, parameter: torch.Tensor) -> torch.Tensor | None:
        """A copy of what is looked at of a parameter, in float32 or float64, contiguous; None if it cannot be read."""
        # Of a parameter that is distributed over ranks, this rank's part.
        local = local_of(parameter)
        if not (has_memory(local) and local.is_floating_point()):
            return None
        part: torch.Tensor = facts.sample(local.detach().reshape(-1))
        found = in_floats(part)
        return found.clone(memory_format=torch.contiguous_format) if found is part else found

    @without_gradients
    def changes(self, found: Sequence[Moved]) -> list[tuple[Moved, torch.Tensor, torch.Tensor]]:
        """Update and update ratio of each, computed for all of a device and dtype at once."""
        alike: dict[tuple[torch.device, torch.dtype], list[Moved]] = {}
        for moved in found:
            alike.setdefault((moved.before.device, moved.before.dtype), []).append(moved)
        return [change for group in alike.values() for change in _changes(group)]


def _changes(found: list[Moved]) -> Iterator[tuple[Moved, torch.Tensor, torch.Tensor]]:
    lengths = lengths_of([moved.before for moved in found])
    moves = lengths_of(torch._foreach_sub([moved.after for moved in found], [moved.before for moved in found]))
    scales = torch.tensor([facts.scale_of(moved.size) for moved in found]).to(moves.dtype)
    scales = sent(scales, moves.device)
    ratios = torch.where(lengths == 0, (moves > 0).to(moves), moves / lengths)
    return zip(found, (moves * scales).unbind(), ratios.unbind(), strict=True)


class Parameters:
    """Parameters and the optimizers that have them."""

    def groups_of(self, optimizer: Any) -> Mapping[str, Iterable[torch.Tensor]]:
        """The parameters of an optimizer by the name of their group."""
        title = title_of(optimizer)
        return {f"{title}/group_{number}": in_group(group) for number, group in enumerate(groups_of(optimizer))}

    def can_be_trained(self, parameter: torch.Tensor) -> bool:
        """True if a parameter can be differentiated."""
        return parameter.requires_grad

    def has_gradient(self, parameter: torch.Tensor) -> bool:
        """True if a parameter has a gradient now."""
        return parameter.grad is not None

    def was_given(self, parameter: torch.Tensor) -> bool:
        """True if any optimizer was given a parameter."""
        return was_given(parameter)

    def title_of(self, optimizer: Any) -> str:
        """The name of an optimizer."""
        return title_of(optimizer)

    def trained_by(self, optimizer: Any) -> list[torch.Tensor]:
        """The parameters of an optimizer that can be differentiated."""
        return [*filter(self.can_be_trained, optimized(optimizer))]

    def version_of(self, parameter: torch.Tensor) -> int:
        """Number of times that a parameter was changed in place."""
        return parameter._version

    def living(self) -> set[int]:
        """The ids of the parameters of all modules that are alive."""
        return {id(one) for module in living_modules() for _, one in own_parameters(module)}


class Gradients:
    """Gradients, of which a distributed one is added to in its local part."""

    def can_be_trained(self, parameter: torch.Tensor) -> bool:
        """True if a parameter can be differentiated."""
        return parameter.requires_grad

    def title_of(self, optimizer: Any) -> str:
        """The name of an optimizer."""
        return title_of(optimizer)

    def ids_of(self, optimizer: Any) -> set[int]:
        """The ids of an optimizer's parameters."""
        return ids_of(optimizer)

    def gradient_of(self, parameter: torch.Tensor) -> torch.Tensor | None:
        """The gradient of a parameter; None if there is none that can be read, such as a sparse one."""
        gradient = parameter.grad
        return gradient if gradient is not None and has_memory(local_of(gradient)) else None

    def added_to(self, parameter: torch.Tensor) -> torch.Tensor | None:
        """The same, as each pass adds to it."""
        return self.gradient_of(parameter)

    def state_of(self, gradient: torch.Tensor) -> State:
        """The tensor that stands in a gradient's place, and how often it has been changed in place."""
        return id(gradient), local_of(gradient)._version

    def version_of(self, parameter: torch.Tensor) -> int:
        """Number of times that a parameter was changed in place."""
        return local_of(parameter)._version

    @without_gradients
    def lengths(self, gradients: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        """The l2 of each gradient, of what is looked at of it."""
        return [length_of(facts.sample(local_of(gradient).detach().reshape(-1))) for gradient in gradients]

    def length_of_all(self, lengths: Sequence[torch.Tensor]) -> torch.Tensor:
        """The l2 of what has these."""
        found: torch.Tensor = torch.linalg.vector_norm(_on_one_device(lengths))
        return found

    @without_gradients
    def parts_of(self, arrays: Mapping[int, torch.Tensor]) -> dict[int, torch.Tensor]:
        """A copy of a part of each tensor: float32, in one dimension."""
        return {
            key: local_of(one).detach().reshape(-1)[:_ELEMENTS].to(torch.float32, copy=True)
            for key, one in arrays.items()
        }

    @without_gradients
    def are_parallel(self, parts: Sequence[torch.Tensor], before: Sequence[torch.Tensor]) -> torch.Tensor:
        """True if gradients have changed by one positive factor at most: of shape ()."""
        now, then = _joined(parts), _joined(before)
        lengths = torch.linalg.vector_norm(now) * torch.linalg.vector_norm(then)
        parallel: torch.Tensor = lengths - now.dot(then) <= NOISE * lengths
        return parallel

    @without_gradients
    def are_same(self, parts: Sequence[torch.Tensor], before: Sequence[torch.Tensor]) -> torch.Tensor:
        """True if weights are as they were: of shape ()."""
        return (_joined(parts) == _joined(before)).all()

    @without_gradients
    def are_cleared(self, gradients: Sequence[torch.Tensor]) -> torch.Tensor:
        """True if all elements of gradients are 0: of shape ()."""
        lengths = [torch.linalg.vector_norm(local_of(one).detach()).to(torch.float32) for one in gradients]
        return _on_one_device(lengths).sum() == 0

    def all_of(self, signs: Sequence[torch.Tensor]) -> torch.Tensor:
        """True if all signs are: of shape ()."""
        return _on_one_device(signs).all()


def _on_one_device(numbers: Sequence[torch.Tensor]) -> torch.Tensor:
    return torch.stack([number.to(numbers[0].device) for number in numbers])


def _joined(parts: Sequence[torch.Tensor]) -> torch.Tensor:
    return torch.cat([part.to(parts[0].device) for part in parts])


def settings_of(optimizer: Any) -> dict[str, Any]:
    """The settings of an optimizer that are saved, by name."""
    return dict(facts.settings(groups_of(optimizer), _SETTINGS))


@without_gradients
def digest_of(inputs: Any) -> torch.Tensor | None:
    """The digest of what a model is called with, on the device of its tensors; None where they are on several."""
    found = [tensor.detach() for tensor in tensors_in(inputs) if has_memory(tensor)]
    if len({tensor.device for tensor in found}) != 1:
        return None
    parts = [(_words(tensor), str(tensor.dtype), tuple(tensor.shape)) for tensor in found]
    digest: torch.Tensor = input_digests.digest(parts, torch)
    return digest


def _words(tensor: torch.Tensor) -> torch.Tensor:
    if tensor.is_complex():
        tensor = torch.view_as_real(tensor.resolve_conj())
    part: torch.Tensor = facts.sample(tensor.resolve_neg().reshape(-1)).contiguous().reshape(-1)
    return part.view(_WORDS[part.element_size()]).to(torch.int64)
