"""Training loops on an accelerator of CUDA, run a window at a time. A window ends when the accelerator is done."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import torch

from benchmarks import workloads
from benchmarks.disk import touch_page_cache
from benchmarks.nets import Transformer
from benchmarks.workloads import Training, prepare, start_threads

__all__ = ["WORKLOADS", "prepare", "start_threads"]


class AcceleratorTraining(Training):
    """A model in training on the accelerator.

    Args:
        training: of the model on the host, with its batch.
    """

    def __init__(self, training: Training) -> None:
        super().__init__(training.model.cuda(), training.batch.cuda(), training.folder)
        self.labels = self.labels.cuda()

    def steps(self, count: int) -> dict[str, float]:
        """Train `count` steps; return wall time and CPU time of the process."""
        torch.cuda.synchronize()
        process, wall = time.process_time(), time.perf_counter()
        for _ in range(count):
            self.one_step()
        torch.cuda.synchronize()
        return {"wall": time.perf_counter() - wall, "process": time.process_time() - process}

    def saved_steps(self, count: int) -> dict[str, float]:
        """Train one period of `count` steps, the first of which is saved; what it has written is not waited for."""
        while self.steps_done % count:
            self.one_step()
        touch_page_cache(self.folder)
        return self.steps(count)

    def written(self, count: int) -> dict[str, float]:
        """Train until all but the last period's step is on disk; return how many are, and the bytes of all."""
        run = self.folder / "run"
        wanted = self.steps_done // count
        deadline = time.perf_counter() + 30
        while run.exists() and time.perf_counter() < deadline:
            self.steps(1)
            if len([*(run / "index").rglob("*.json")]) >= wanted:
                break
        files = [file for file in (run / "events").rglob("*") if file.is_file()]
        steps = len([*(run / "index").rglob("*.json")])
        return {"bytes": float(sum(file.stat().st_size for file in files)), "steps": float(steps)}

    def sums(self, count: int) -> dict[str, float]:
        """Time `count` passes of torch.sum over all weights and all gradients."""
        tensors = self._saved()
        torch.cuda.synchronize()
        wall = time.perf_counter()
        for _ in range(count):
            for tensor in tensors:
                tensor.sum()
        torch.cuda.synchronize()
        return {"wall": time.perf_counter() - wall}

    def copies(self, count: int) -> dict[str, float]:
        """Time `count` copies of all weights and all gradients to memory of the host that is there."""
        pairs = [(torch.empty(t.shape, dtype=t.dtype, pin_memory=True), t) for t in self._saved()]
        torch.cuda.synchronize()
        wall = time.perf_counter()
        for _ in range(count):
            for host, tensor in pairs:
                host.copy_(tensor, non_blocking=True)
        torch.cuda.synchronize()
        return {"wall": time.perf_counter() - wall, "bytes": float(sum(t.nbytes for _, t in pairs))}

    def memory(self, count: int) -> dict[str, float]:
        """Return the most memory of the accelerator that `count` further steps take, bytes."""
        torch.cuda.reset_peak_memory_stats()
        self.steps(count)
        return {"bytes": float(torch.cuda.max_memory_allocated())}

    def _saved(self) -> list[torch.Tensor]:
        parameters = [*self.model.parameters()]
        return [p.detach() for p in parameters] + [p.grad for p in parameters if p.grad is not None]


def wide_transformer(folder: Path) -> Training:
    """Build a transformer of 12 layers and 85 million weights, for 16 texts of 32 words."""
    torch.manual_seed(0)
    return Training(Transformer(768), torch.randint(0, 1000, (16, 32)), folder)


def _on_accelerator(make: Callable[[Path], Training]) -> Callable[[Path], Training]:
    return lambda folder: AcceleratorTraining(make(folder))


WORKLOADS: dict[str, Callable[[Path], Training]] = {
    "three_layers": _on_accelerator(workloads.three_layers),
    "cnn": _on_accelerator(workloads.cnn),
    "transformer": _on_accelerator(workloads.transformer),
    "wide_transformer": _on_accelerator(wide_transformer),
}
