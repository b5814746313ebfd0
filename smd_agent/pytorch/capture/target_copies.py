"""Numbers that a model is given, and how near one of them comes to being the target of the loss.

``usage/target/<loss>_<i>/<fact>``, of a loss with one target for each row of what the model was called with last:

``copy_error``   the share of the targets' variance that the best column of the input leaves open, as a line through it:
                 0 if the target is that column, shifted and scaled perhaps.
``copy_column``  the number of that column, of the input made flat but for its first axis.
``columns``      how many there are.

Up to 256 rows are looked at, and inputs of 2 to 1,024 numbers a row. Columns and targets that are all one number are
left out, as are fewer than 16 rows.
"""

from __future__ import annotations

from typing import Any

import torch

from smd_agent.pytorch.arrays import has_memory, tensors_in

_ROWS = range(16, 257)
_COLUMNS = range(2, 1025)


class Tables:
    """The numbers that a model was called with last: its first input of numbers for each row."""

    def __init__(self) -> None:
        self._found: torch.Tensor | None = None
        self._rows = 0

    def take(self, inputs: Any) -> None:
        """Remember those of a call."""
        self.clear()
        for one in tensors_in(inputs):
            if one.dim() > 1 and one.is_floating_point() and has_memory(one) and one.shape[0] in range(16, 1 << 31):
                # Apple's accelerator has no numbers of 64 bits.
                if one[0].numel() in _COLUMNS and one.device.type != "mps":
                    part = one.detach()[: _ROWS[-1]]
                    self._found, self._rows = part.reshape(part.shape[0], -1).to(torch.float64, copy=True), one.shape[0]
                return

    def clear(self) -> None:
        """Forget them."""
        self._found = None

    def compared(self, target: torch.Tensor) -> dict[str, Any]:
        """The facts of a target; none where it has another number of elements than there are rows."""
        table = self._found
        if (
            table is None
            or target.requires_grad
            or target.numel() != self._rows
            or target.device != table.device
            or target.is_complex()
        ):
            return {}
        wanted = target.detach().reshape(-1)[: table.shape[0]].to(torch.float64)
        columns, wanted = table - table.mean(0), wanted - wanted.mean()
        lengths = columns.square().sum(0) * wanted.square().sum()
        # What is all one number has no direction, and neither has what is not finite.
        shares = torch.where(lengths > 0, (columns * wanted[:, None]).sum(0).square() / lengths, 0.0)
        best, column = torch.where(torch.isfinite(shares), shares, 0.0).max(0)
        return {"copy_error": 1 - best, "copy_column": column, "columns": table.shape[1]}
