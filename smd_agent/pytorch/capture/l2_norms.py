"""Lengths (l2) of tensors of floats, whatever their squares are: those of 1e20 overflow, those of 1e-25 vanish.

On an accelerator, to ask whether they have would be to wait: there a length may be Inf or 0.
"""

from __future__ import annotations

import math

import torch

# A length between these is exact enough in float32.
_FEWEST, _MOST = 1e-15, 1e15
_EXACT = (torch.float32, torch.complex64)


def lengths_of(tensors: list[torch.Tensor] | tuple[torch.Tensor, ...]) -> torch.Tensor:
    """The l2 of each of several tensors of floats, all of one device and dtype."""
    found = torch.stack(torch._foreach_norm(tensors, 2))
    if found.is_cpu:
        # Squares of float32 may have overflowed or vanished. On an accelerator, to ask would be to wait.
        for i in (~((found > _FEWEST) & (found < _MOST))).nonzero().flatten().tolist():
            found[i] = _exact_length(tensors[i])
    return found


def length_of(part: torch.Tensor) -> torch.Tensor:
    """The l2 of the elements of a tensor of floats or complex numbers, float32, of shape ``()``."""
    if part.element_size() < _EXACT[part.is_complex()].itemsize:
        part = part.to(_EXACT[part.is_complex()])
    # Floats side by side are added up in several sums, others and complex numbers in one, which is less exact.
    part = part.resolve_conj().contiguous()
    if part.is_complex():
        part = torch.view_as_real(part)
    found: torch.Tensor = torch.linalg.vector_norm(part).to(torch.float32)
    if found.is_cpu and not _FEWEST < float(found) < _MOST:
        found = _exact_length(part).to(torch.float32)
    return found


def _exact_length(part: torch.Tensor) -> torch.Tensor:
    """The l2 of a tensor of floats, float64, whatever their squares are."""
    wide = part.to(torch.float64)
    largest = wide.abs().amax()
    length: torch.Tensor = torch.linalg.vector_norm(wide / largest) * largest
    return length if 0 < float(largest) < math.inf else largest
