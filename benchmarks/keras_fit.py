"""What a step of Keras's ``fit`` costs, unsaved and saved, with and without XLA.

A window is an epoch, at whose end the agent saves the logs of the epoch, which makes its last step a saved one.
So epochs of unsaved steps are longer.
"""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.table import Row
from benchmarks.tensorflow_steps import rows_of

CASES = (
    # workload, words, saved and unsaved steps a window, the old library's hook for it, which saves no gradients
    ("small_fit", "Keras fit of 3 layers", 60, 600, "KerasHook"),
    ("fit", "Keras fit of 7 layers", 30, 200, "KerasHook"),
    ("fit_jit", "Keras fit of 7 layers with jit_compile", 30, 200, "KerasHook"),
    ("convolutions", "Keras fit of a residual net of 14 convolutions", 3, 12, "KerasHook"),
)


def rows() -> Iterator[Row]:
    """Yield the rows of the installed TensorFlow; none, and a word about it, where there is none."""
    yield from rows_of("keras", CASES)
