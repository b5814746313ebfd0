"""Facts that PyTorch knows of where it runs: versions, devices in use, settings that change numbers, seeds."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from smd_agent.framework.environment import (
    MACHINE,
    RANDOM,
    SEEDS,
    SETTINGS,
    VERSIONS,
    Fact,
    fingerprint,
    library_version,
)
from smd_agent.pytorch.own_operations import apart


def facts() -> Iterator[Fact]:
    """Yield them; a GPU is asked only where the program uses it already."""
    yield VERSIONS, "PyTorch", library_version("torch")
    yield SETTINGS, "default dtype", str(torch.get_default_dtype()).removeprefix("torch.")
    yield SETTINGS, "deterministic algorithms", "on" if torch.are_deterministic_algorithms_enabled() else "off"
    yield SETTINGS, "threads", torch.get_num_threads()
    yield SEEDS, "PyTorch", torch.initial_seed()
    yield RANDOM, "PyTorch", fingerprint(_random_state())
    if torch.cuda.is_available() and torch.cuda.is_initialized():  # type: ignore[no-untyped-call]
        yield from _of_gpu()


@apart
def _random_state() -> bytes:
    return torch.random.get_rng_state().numpy().tobytes()


def _of_gpu() -> Iterator[Fact]:
    yield VERSIONS, "CUDA", torch.version.cuda
    yield VERSIONS, "ROCm", torch.version.hip
    yield MACHINE, "GPU", torch.cuda.get_device_name()
    yield MACHINE, "GPUs", torch.cuda.device_count()
    yield SETTINGS, "cuDNN benchmark", "on" if torch.backends.cudnn.benchmark else "off"
    yield SETTINGS, "cuDNN deterministic", "on" if torch.backends.cudnn.deterministic else "off"
    if torch.cuda.initial_seed() != torch.initial_seed():
        yield SEEDS, "GPU", torch.cuda.initial_seed()
    yield VERSIONS, "cuDNN", torch.backends.cudnn.version()  # type: ignore[no-untyped-call]
