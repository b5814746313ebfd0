"""Tables of statistics as pandas and xarray have them, and as a Parquet file, each with its collection.

The extra ``analysis`` installs what it takes.
"""

from __future__ import annotations

import os
from collections.abc import Collection as Names
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from importlib import import_module
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np
import numpy.typing as npt

from smd_agent.analysis.statistics import STATISTICS, Measured
from smd_agent.core.collection import Collection
from smd_agent.core.modes import ModeKeys
from smd_agent.errors import SMDebugRuntimeError

if TYPE_CHECKING:
    from smd_agent.analysis.series import SeriesTable
    from smd_agent.storage.index_files import StepIndex

    Row = tuple[StepIndex, Measured]

_Array = npt.NDArray[Any]
UNGROUPED = "(in no collection)"


def members_of(names: Names[str], collections: Mapping[str, Collection]) -> dict[str, set[str]]:
    """Return which of these tensors belong to each collection; many names are matched in seconds."""
    return {name: set(filter(collection.matches, names)) for name, collection in collections.items()}


def collections_of(names: Names[str], members: Mapping[str, set[str]]) -> dict[str, str]:
    """Return the name of the smallest collection of each tensor; `UNGROUPED` for those in none."""
    found: dict[str, str] = {}
    for group in sorted(members, key=lambda name: (len(members[name]), name)):
        for name in members[group]:
            found.setdefault(name, group)
    return {name: found.get(name, UNGROUPED) for name in names}


PLACE = ("step", "mode", "mode_step", "worker", "tensor")
_NAN = float("nan")


def to_pandas(rows: Iterable[Row], collections: Mapping[str, Collection]) -> Any:
    """Return a frame with a row for each tensor, step and worker; ``Trial.to_pandas`` says which columns.

    Raises:
        SMDebugRuntimeError: pandas is not installed.
    """
    pandas = imported("pandas", "to_pandas")
    columns: dict[str, list[Any]] = {name: [] for name in (*PLACE, "value", *STATISTICS)}
    problems = {}
    for length, (file, measured) in enumerate(rows):
        for name in measured.numbers.keys() - columns.keys():
            columns[name] = [_NAN] * length
        row = {**dict.fromkeys(columns, _NAN), **row_of(file, measured)}
        for name, cells in columns.items():
            cells.append(row[name])
        if measured.problem is not None:
            problems[file.step, file.worker, measured.name] = str(measured.problem)
    frame = pandas.DataFrame(columns)
    tensors = set(columns["tensor"])
    groups = collections_of(tensors, members_of(tensors, collections))
    frame.insert(len(PLACE), "collection", [groups[name] for name in columns["tensor"]])
    frame.attrs["problems"] = problems
    return frame


def to_xarray(rows: Iterable[Row], collections: Mapping[str, Collection]) -> Any:
    """Return a dataset of dimensions step, worker and tensor; ``Trial.to_xarray`` says which variables.

    Raises:
        SMDebugRuntimeError: xarray or pandas is not installed.
    """
    imported("xarray", "to_xarray")
    frame = to_pandas(rows, collections)
    steps = frame.drop_duplicates("step").set_index("step")
    tensors = frame.drop_duplicates("tensor").set_index("tensor")
    numbers = frame.drop(columns=["mode", "mode_step", "collection"])
    dataset = numbers.set_index(["step", "worker", "tensor"]).to_xarray()
    return dataset.assign_coords(
        mode=("step", steps["mode"].reindex(dataset["step"].to_index()).to_numpy(object)),
        mode_step=("step", steps["mode_step"].reindex(dataset["step"].to_index()).to_numpy()),
        collection=("tensor", tensors["collection"].reindex(dataset["tensor"].to_index()).to_numpy(object)),
    )


def row_of(file: StepIndex, measured: Measured) -> dict[str, Any]:
    """Return a row of a table: `PLACE`, value, and the statistics that are known."""
    index = file.index
    place = (file.step, index.mode.name, index.mode_step, file.worker, measured.name)
    return {**measured.numbers, **dict(zip(PLACE, place, strict=True)), "value": _single(measured)}


def imported(name: str, method: str) -> Any:
    """Return a library that may not be there.

    Raises:
        SMDebugRuntimeError: it is not.
    """
    try:
        return import_module(name)
    except ImportError as error:
        raise SMDebugRuntimeError(
            f"{method} needs {name}, which cannot be imported ({error}): pip install {name.partition('.')[0]}"
        ) from error


def _single(measured: Measured) -> float:
    if measured.record is None or measured.record.value.size != 1:
        return _NAN
    value = measured.record.value.reshape(-1)[0]
    return float(value) if value.dtype.kind in "fiub" else _NAN


_ROWS_AT_ONCE = 20_000
_TEXTS = ("mode", "worker", "tensor", "collection")


def to_parquet(
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
    with _whole(path) as file, parquet.ParquetWriter(file, schema) as writer:
        for row in rows:
            cells = row_of(*row)
            kept.append({**cells, "collection": groups[cells["tensor"]]})
            if row[1].problem is not None:
                problems[cells["step"], cells["worker"], cells["tensor"]] = str(row[1].problem)
            if len(kept) >= _ROWS_AT_ONCE:
                writer.write_table(arrow.Table.from_pylist(kept, schema))
                kept.clear()
        writer.write_table(arrow.Table.from_pylist(kept, schema))
    return problems


def series_to_parquet(tables: Mapping[str, Mapping[str, SeriesTable]], path: str) -> None:
    """Write the series as a table with a row for each step and worker, and a column for each number.

    Args:
        tables: by worker and name.
        path: of the file, which must not be there.

    Raises:
        SMDebugRuntimeError: pyarrow is not installed, or the file cannot be written.
    """
    arrow, parquet = imported("pyarrow", "Parquet"), imported("pyarrow.parquet", "Parquet")
    names = list(dict.fromkeys(name for own in tables.values() for table in own.values() for name in table))
    texts, numbers = arrow.string(), arrow.float64()
    head = [("step", arrow.int64()), ("mode", texts), ("mode_step", arrow.int64()), ("worker", texts)]
    schema = arrow.schema([*head, ("seconds", numbers), *((name, numbers) for name in names)])
    with _whole(path) as file, parquet.ParquetWriter(file, schema) as writer:
        for worker, own in tables.items():
            steps = np.unique(np.concatenate([table.steps for table in own.values()]))
            columns = _aligned(steps, own.values())
            columns["step"] = steps, np.zeros(len(steps), bool)
            columns["worker"] = np.full(len(steps), worker, object), np.zeros(len(steps), bool)
            none = np.zeros(len(steps)), np.ones(len(steps), bool)
            cells = (columns.get(field.name, none) for field in schema)
            arrays = [arrow.array(cell, field.type, mask=no) for field, (cell, no) in zip(schema, cells, strict=True)]
            writer.write_table(arrow.Table.from_arrays(arrays, schema=schema))


def _aligned(steps: npt.NDArray[np.int64], tables: Iterable[SeriesTable]) -> dict[str, tuple[_Array, _Array]]:
    """Columns of tables by name, at these steps, and where each has no number."""
    found: dict[str, tuple[_Array, _Array]] = {}
    names = np.array([mode.name for mode in ModeKeys], object)
    for table in tables:
        rows = np.searchsorted(steps, table.steps)
        every = np.ones(len(rows), bool)
        modes = names[np.clip(table.modes.astype(np.int64), 1, len(names)) - 1]
        columns = {"mode": (modes, every), "mode_step": (table.mode_steps, every), "seconds": (table.seconds, every)}
        for name, (values, there) in {
            **columns,
            **{name: (table[name], table.is_there(name)) for name in table},
        }.items():
            empty = np.zeros(len(steps), values.dtype), np.ones(len(steps), bool)
            own, lacks = found.setdefault(name, empty)
            own[rows], lacks[rows] = values, ~there
    return found


@contextmanager
def _whole(path: str) -> Iterator[BinaryIO]:
    """Context with a new file, which has its name when it is whole."""
    unfinished = f"{path}.unfinished"
    try:
        with open(unfinished, "xb") as file:
            yield file
        os.rename(unfinished, path)
    except OSError as error:
        with suppress(OSError):
            os.remove(unfinished)
        raise SMDebugRuntimeError(f"{path} cannot be written: {error.strerror or error}") from error
