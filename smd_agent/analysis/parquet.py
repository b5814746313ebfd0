"""A run as a Parquet file: the table of statistics that `Trial.to_pandas` gives, written piece by piece."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from smd_agent.analysis.frames import PLACE, imported, row_of
from smd_agent.analysis.groups import collections_of, members_of
from smd_agent.analysis.statistics import STATISTICS
from smd_agent.errors import SMDebugRuntimeError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from smd_agent.analysis.frames import Row
    from smd_agent.core.collection import Collection

_ROWS_AT_ONCE = 20_000
_TEXTS = ("mode", "worker", "tensor", "collection")


def write(
    rows: Iterable[Row],
    names: Sequence[str],
    further: Sequence[str],
    collections: Mapping[str, Collection],
    path: str,
) -> dict[tuple[int, str, str], str]:
    """Write a table with a row for each tensor, step and worker, and return what is damaged, by these.

    Args:
        rows: the tensors.
        names: theirs.
        further: names of stored reductions that are not among `STATISTICS`.
        collections: of the run.
        path: of the file, which must not be there.

    Raises:
        SMDebugRuntimeError: pyarrow is not installed, or the file cannot be written.
    """
    arrow, parquet = imported("pyarrow", "Parquet"), imported("pyarrow.parquet", "Parquet")
    tensors = set(names)
    groups = collections_of(tensors, members_of(tensors, collections))
    numbers = ("value", *STATISTICS, *further)
    types = {name: arrow.string() if name in _TEXTS else arrow.int64() for name in (*PLACE, "collection")}
    schema = arrow.schema([*types.items(), *((name, arrow.float64()) for name in numbers)])
    problems: dict[tuple[int, str, str], str] = {}
    kept: list[dict[str, Any]] = []
    # Under another name first: what has its final name is whole.
    unfinished = f"{path}.unfinished"
    try:
        with open(unfinished, "xb") as file, parquet.ParquetWriter(file, schema) as writer:
            for row in rows:
                cells = row_of(*row)
                kept.append({**cells, "collection": groups[cells["tensor"]]})
                if row[1].problem is not None:
                    problems[cells["step"], cells["worker"], cells["tensor"]] = str(row[1].problem)
                if len(kept) >= _ROWS_AT_ONCE:
                    writer.write_table(arrow.Table.from_pylist(kept, schema))
                    kept.clear()
            writer.write_table(arrow.Table.from_pylist(kept, schema))
        os.rename(unfinished, path)
    except OSError as error:
        with suppress(OSError):
            os.remove(unfinished)
        raise SMDebugRuntimeError(f"{path} cannot be written: {error.strerror or error}") from error
    return problems
