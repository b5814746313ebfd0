"""What a saved step costs more that has the facts which rules look at, beside one with its losses alone.

Facts are the collections of ``smd_agent.framework.training_facts``: how losses, optimizers and layers are used, how far
weights have moved, digests of inputs. The launcher saves them by default.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

from benchmarks.family import Family, middle
from benchmarks.saved_reductions import extra, measure
from benchmarks.table import Row, milliseconds

PERIOD = 2
OPTIONS = {"interval": PERIOD, "collections": ["losses"]}
ROUNDS = 40
CASES = (
    # workload, words
    ("three_layers", "MLP of 3 layers"),
    ("cnn", "CNN of 13 modules"),
    ("transformer", "transformer of 12 layers, 125 modules"),
)


def rows() -> Iterator[Row]:
    """Yield, for each model, what the losses of a saved step cost, and what its facts cost beside them."""
    for workload, words in CASES:
        with (
            tempfile.TemporaryDirectory() as folder,
            Family(workload, ["plain", "ours", "ours_facts"], Path(folder), options=OPTIONS) as workers,
        ):
            plain, losses, facts = measure(workers, ROUNDS)
        step = middle(plain, "wall") / PERIOD
        floor = f"plain step, {milliseconds(step)}"
        mine = extra(losses, plain, "wall")
        yield Row(f"saved step, losses alone, {words}: extra time", floor, milliseconds(mine), mine / step)
        mine = extra(facts, losses, "wall")
        yield Row("– facts for rules beside them", floor, milliseconds(mine), mine / step)
