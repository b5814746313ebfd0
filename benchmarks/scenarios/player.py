"""One variant of a scenario: runs it, notes what it computes, and runs windows of it to be timed."""

from __future__ import annotations

import hashlib
import os
import random
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import nn
from torch._functorch.pyfunctorch import temporarily_clear_interpreter_stack

from benchmarks.arms import nothing, start_agent
from benchmarks.scenarios.scene import SCENES

Array = npt.NDArray[Any]

# The first iterations are those in which the agent finds the model.
ITERATIONS = 6
LOOKED_AT = (4, 5)
NEVER = 10**9
VARIANTS: dict[str, Callable[[Path], None]] = {
    "plain": nothing,
    "again": nothing,
    "watched": nothing,
    "unsaved": lambda folder: arm(folder, NEVER),
    "saved": lambda folder: arm(folder, 1),
}


def arm(folder: Path, interval: int) -> None:
    """Start the agent as its environment variable does, to save all there is of every ``interval``-th step."""
    start_agent(folder, {"save_interval": interval, "save_all": True}, ())


class Player:
    """A scenario in one process.

    Args:
        words: which scenario.
        variant: a name in VARIANTS. ``watched`` notes what the layers return; hooks on layers may change how a net is
            compiled, so it compiles nothing, and its times say nothing.
        folder: where the agent writes its run, ``run``, and where notes go.
    """

    def __init__(self, words: str, variant: str, folder: Path) -> None:
        torch.set_num_threads(1)
        self.folder = folder
        self.notes: dict[str, Array] = {}
        self._watching = variant == "watched"
        if self._watching:
            torch.compiler.set_stance("force_eager")
        VARIANTS[variant](folder)
        random.seed(3)
        np.random.seed(3)
        torch.manual_seed(3)
        self.scene = SCENES[words](folder)

    def serve(self, commands: Iterator[tuple[str, int]], reply: Callable[[dict[str, float]], None]) -> None:
        """Run windows until there are no more commands."""
        for operation, count in commands:
            reply(getattr(self, operation)(count))

    def note(self, count: int) -> dict[str, float]:
        """Run the first iterations, and store in ``notes.npz`` what the last of them computed.

        Keys: ``<iteration>|<kind>|<name>`` with the kinds ``weight`` (before the iteration), ``gradient``, ``loss`` and
        ``output`` (of a layer, of the watched variant); ``<iteration>|step``, the number of the last step of the
        agent's; ``digest``, of weights, buffers and random states after all.
        """
        for number in range(ITERATIONS):
            handles = self._watch(number) if self._watching and number in LOOKED_AT else []
            if number in LOOKED_AT:
                for name, key, value in self._parameters():
                    self._note(number, "weight", f"{name}_{key}", value)
            losses = self.scene.step()
            if number in LOOKED_AT:
                for place, loss in enumerate(losses):
                    self._note(number, "loss", str(place), loss)
                self._note_gradients(number)
            self.notes[f"{number}|step"] = np.array(last_step())
            for remove in handles:
                remove()
        self.notes["digest"] = np.frombuffer(self._digest(), np.uint8)
        np.savez(self.folder / "notes.npz", **self.notes)  # type: ignore[arg-type]
        return {}

    def steps(self, count: int) -> dict[str, float]:
        """Run iterations; return CPU time of this thread, of the process, and wall time."""
        step = self.scene.step
        process, wall, cpu = time.process_time(), time.perf_counter(), time.thread_time()
        for _ in range(count):
            step()
        cpu = time.thread_time() - cpu
        return {"cpu": cpu, "wall": time.perf_counter() - wall, "process": time.process_time() - process}

    def _parameters(self) -> Iterator[tuple[str, str, nn.Parameter]]:
        for name, model in self.scene.models.items():
            for key, parameter in model.named_parameters():
                yield name, key, parameter

    def _note(self, number: int, kind: str, name: str, value: torch.Tensor) -> None:
        self.notes[f"{number}|{kind}|{name}"] = to_array(value)

    def _note_gradients(self, number: int) -> None:
        for name, key, parameter in self._parameters():
            gradient = self.scene.gradients.get((name, key), parameter.grad)
            if parameter.requires_grad and gradient is not None:
                self._note(number, "gradient", f"{name}_{key}", gradient)

    def _watch(self, number: int) -> list[Callable[[], object]]:
        handles: list[Callable[[], object]] = []
        for place, (name, model) in enumerate(self.scene.models.items()):
            for key, layer in model.named_modules():
                full = f"{name}_{key}" if place else key
                if key and isinstance(layer, torch.jit.ScriptModule):
                    # It cannot be watched; there is nothing that a saved output could be equal to.
                    self.notes[f"{number}|output|{full}"] = np.empty(0)
                elif key:
                    handles.append(layer.register_forward_hook(self._noting_output(number, full)).remove)
        return handles

    def _noting_output(self, number: int, name: str) -> Callable[[Any, Any, Any], None]:
        def note(layer: Any, args: Any, output: Any) -> None:
            while isinstance(output, (list, tuple)):
                output = output[0]
            if layer.training and torch._C._current_graph_task_id() == -1:
                self._note(number, "output", name, output)

        return note

    def _digest(self) -> bytes:
        digest = hashlib.sha256()
        for _, model in sorted(self.scene.models.items()):
            for _, value in sorted(model.state_dict().items()):
                digest.update(to_array(value).tobytes())
        digest.update(torch.get_rng_state().numpy().tobytes())
        digest.update(repr((np.random.get_state(), random.getstate())).encode())
        return digest.digest()


def to_array(tensor: torch.Tensor) -> Array:
    """Return a copy of the values.

    bfloat16 becomes float32, a sparse tensor dense, a shard the values it holds, and a tensor that ``torch.func``
    differentiates or maps the one inside of it.
    """
    functorch: Any = torch._C._functorch
    if functorch.is_functorch_wrapped_tensor(tensor):
        while functorch.is_functorch_wrapped_tensor(tensor):
            tensor = functorch.get_unwrapped(tensor)
        with temporarily_clear_interpreter_stack():
            return to_array(tensor)
    tensor = tensor.detach()
    if hasattr(tensor, "to_local"):
        tensor = tensor.to_local()
    tensor = tensor.to_dense() if tensor.is_sparse else tensor
    array: Array = (tensor.float() if tensor.dtype == torch.bfloat16 else tensor).numpy().copy()
    return array


def last_step() -> int:
    """Return the number of the last step that the agent has counted, -1 where there is no agent."""
    from smd_agent import session

    hook = session.current()
    return -1 if hook is None else hook.step


def prepare() -> None:
    """Import what scenarios and agent need, so that it is not imported anew in each variant."""
    import torch._dynamo.backends.debugging
    import torch.distributed.fsdp  # noqa: F401

    from benchmarks.arms import load_ours

    load_ours()
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
