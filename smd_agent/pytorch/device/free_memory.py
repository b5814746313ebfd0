"""Memory of an accelerator that a saved step may use without taking it from the training.

Where an allocation fails, PyTorch gives back what it has kept for the training, in blocks that may not be had again: so
the agent asks for no more than is free beside that.
"""

from __future__ import annotations

import sys

import torch

from smd_agent.guard import attempt, say_once
from smd_agent.printable import size_text
from smd_agent.pytorch.tracing import probe

LEAST = 64 << 20
"""Bytes without which a step is not saved."""

MOST_ELEMENTS = 1 << 22
"""Elements that are reduced at once where there is enough room, at some 200 MB of the device's memory."""

# Bytes for each element that is reduced, with what an allocator rounds up, and the part of the room that they may take.
_BYTES, _PART = 64, 4

_fraction_of = probe(torch, "cuda.get_per_process_memory_fraction", 1.0)

# What was free when the step that is open began.
_rooms: dict[torch.device, int] = {}


def can_be_asked() -> bool:
    """True unless an operation on an accelerator has failed for good, as one does that reads beyond a tensor."""
    # Without a wait for what it has to do.
    asked = torch.cuda.is_initialized() and attempt(lambda: torch.cuda.current_stream().query())  # type: ignore[no-untyped-call]
    return not asked


def is_left() -> bool:
    """True if a step can be saved, which begins now; if not, it is said."""
    found = look()
    if found >= LEAST:
        return True
    free, least = size_text(max(found, 0)), size_text(LEAST)
    say_once("room", f"a step is not saved while less than {least} of an accelerator's memory are free; {free} are")
    return False


def look() -> int:
    """Note how much room there is on the devices that have tensors; returns the bytes of the smallest."""
    _rooms.clear()
    if torch.cuda.is_initialized():  # type: ignore[no-untyped-call]
        devices = (torch.device("cuda", index) for index in range(torch.cuda.device_count()))
        # To ask others would begin to use them, which takes memory.
        _rooms.update({device: _room_on(device) for device in devices if torch.cuda.memory_reserved(device)})
    return min(_rooms.values(), default=sys.maxsize)


def elements(device: torch.device) -> int:
    """Number of elements that may be reduced at once on a device."""
    room = _rooms.get(device, sys.maxsize)
    return min(max(room // (_BYTES * _PART), 1), MOST_ELEMENTS)


def bytes_left(device: torch.device) -> int:
    """Bytes that were free on a device when the last step was opened; of the host's memory nothing is known."""
    return _rooms.get(device, sys.maxsize if device.type == "cpu" else 0)


def _room_on(device: torch.device) -> int:
    free, total = torch.cuda.mem_get_info(device)
    allowed = int(_fraction_of(device) * total) - torch.cuda.memory_reserved(device)
    return min(free, allowed)
