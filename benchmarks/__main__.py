"""Measure the named costs (all without a name) and print them as a markdown table, rows as they come."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator

from benchmarks.table import Row, heading, line, milliseconds

NAMES = (
    "startup",
    "unsaved_step",
    "default_launch",
    "parameter_sets",
    "saved_reductions",
    "saved_raw",
    "facts",
    "accelerator",
    "board",
    "xgboost_rounds",
    "keras_fit",
    "tensorflow_steps",
    "gluon_steps",
    "reading",
    "judging",
    "series",
    "tap",
    "live",
)


def startup_rows() -> Iterator[Row]:
    """Yield the rows of the interpreter's start in this table's form."""
    from benchmarks import startup

    plain, *cases = startup.measure()
    for case in cases:
        floor = f"plain interpreter, {milliseconds(plain.milliseconds / 1e3)}"
        yield Row(f"start: {case.name}", floor, milliseconds(case.milliseconds / 1e3), case.ratio, case.target)


def main() -> int:
    """Print the table; return 2 for a name that does not exist."""
    names = sys.argv[1:] or list(NAMES)
    unknown = [name for name in names if name not in NAMES]
    if unknown:
        print(f"no such benchmark: {', '.join(unknown)}; there are: {', '.join(NAMES)}", file=sys.stderr)
        return 2
    print(heading(), flush=True)
    for name in names:
        rows = startup_rows if name == "startup" else importlib.import_module(f"benchmarks.{name}").rows
        for row in rows():
            print(line(row), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
