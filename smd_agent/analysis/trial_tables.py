"""A run as a stream and as tables: what is saved of chosen tensors, read step by step."""

from __future__ import annotations

import functools
import inspect
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING, Any, TypedDict, TypeVar

import numpy.typing as npt

from smd_agent.analysis import dataframes, plots, tensorboard
from smd_agent.analysis.statistics import STATISTICS, TensorSource, measure
from smd_agent.analysis.tensor import Tensor
from smd_agent.core.collection import Collection
from smd_agent.core.collection_keys import CollectionKeys
from smd_agent.core.modes import ModeKeys
from smd_agent.core.reduction_config import OPS
from smd_agent.errors import InvalidWorker
from smd_agent.storage.index_files import StepIndex

if TYPE_CHECKING:
    from typing_extensions import Unpack

Function = TypeVar("Function", bound=Callable[..., Any])


class Choice(TypedDict, total=False):
    """The choice of what is read of a run, as keyword arguments; without any, all of it.

    regex: only tensors in whose name one of these is found.
    collection: only members of this collection. Not together with ``regex``. The numbers of the series are read where
        this is ``series``, and of their steps.
    mode: only steps of this mode, and how ``steps`` are counted.
    steps: only these of the saved steps.
    worker: only what this worker saved.
    """

    regex: str | Iterable[Any] | None
    collection: str | Collection | None
    mode: ModeKeys
    steps: Iterable[int] | None
    worker: str | None


WHOLE: Choice = {"regex": None, "collection": None, "mode": ModeKeys.GLOBAL, "steps": None, "worker": None}
"""The choice of everything: the defaults."""


def takes_choice(function: Function) -> Function:
    """Have a function that is declared with ``**choice`` show its arguments by name, and refuse others at once."""
    own = inspect.signature(function)
    named = [one for one in own.parameters.values() if one.kind is not one.VAR_KEYWORD]
    first = [one for one in named if one.kind is not one.KEYWORD_ONLY]
    chosen = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=_annotation(name))
        for name, default in WHOLE.items()
    ]
    whole = own.replace(parameters=[*first, *chosen, *named[len(first) :]])

    @functools.wraps(function)
    def called(*args: Any, **kwargs: Any) -> Any:
        whole.bind(*args, **kwargs)
        return function(*args, **kwargs)

    called.__signature__ = whole  # type: ignore[attr-defined]
    return called  # type: ignore[return-value]


def _annotation(name: str) -> str:
    # As it is written: what is imported for types only cannot be looked up.
    declared: Any = Choice.__annotations__[name]
    return str(getattr(declared, "__forward_arg__", declared))


@dataclass(frozen=True)
class Saved:
    """One tensor as one worker saved it at one step; its values are read when they are asked for.

    Attributes:
        step: the step over all modes.
        mode: of the step.
        mode_step: the step as the mode counts it.
        worker: who saved it.
        tensor: the tensor's name.
    """

    step: int
    mode: ModeKeys
    mode_step: int
    worker: str
    tensor: str
    _source: TensorSource = field(repr=False)
    _file: StepIndex = field(repr=False)

    def value(self) -> npt.NDArray[Any]:
        """Return the whole tensor.

        Raises:
            TensorUnavailableForStep: only reductions of it, or its shape, were saved.
            DamagedRecord: the saved bytes have changed.
        """
        return self._source.read(self._file, self.tensor).value

    def statistics(self) -> dict[str, float]:
        """Return the statistics that `Trial.to_pandas` has as columns, by name, as far as they can be known.

        Raises:
            SMDebugError: a record of it is damaged.
        """
        for measured in measure(self._source, self._file, [self.tensor]):
            if measured.problem is not None:
                raise measured.problem
            return measured.numbers
        return {}


class Views(ABC):
    """The part of a trial that gives several tensors at once."""

    @abstractmethod
    def _as_source(self, choice: Choice) -> TensorSource: ...

    @abstractmethod
    def tensor(self, tname: str) -> Tensor:
        """Return a tensor."""

    @abstractmethod
    def collections(self) -> dict[str, Collection]:
        """Return the run's collections by name."""

    @abstractmethod
    def tensor_names(
        self,
        show_prefixed_tensors: bool = False,
        *,
        step: int | None = None,
        mode: ModeKeys = ModeKeys.GLOBAL,
        regex: str | Iterable[Any] | None = None,
        collection: str | Collection | None = None,
    ) -> list[str]:
        """Return the sorted names of saved tensors."""

    @takes_choice
    def iterate(self, **choice: Unpack[Choice]) -> Iterator[Saved]:
        """Go through what is saved, by complete steps, workers and names; nothing is held in memory.

        Args:
            regex: only tensors in whose name one of these is found.
            collection: only members of this collection. Not together with ``regex``.
            mode: only steps of this mode, and how ``steps`` are counted.
            steps: only these of the saved steps.
            worker: only what this worker saved.

        Raises:
            InvalidWorker: the run has no such worker.
        """
        return self._saved(choice)

    @takes_choice
    def to_pandas(self, **choice: Unpack[Choice]) -> Any:
        """Return a ``pandas.DataFrame`` with a row for each tensor, step and worker; `iterate` has the arguments.

        Columns are step (over all modes), mode (its name), mode_step, worker, tensor, collection (the smallest one
        that the tensor is in), value (of a tensor of one element), min, max, mean, std, l2, zero_share, nan_count,
        inf_count, and further reductions that are stored, such as dead_share. What cannot be known is NaN. Statistics
        that are not stored are computed from the whole tensor, one at a time.

        ``frame.attrs["problems"]`` names what is damaged, by (step, worker, tensor).

        Raises:
            SMDebugRuntimeError: pandas is not installed.
        """
        return dataframes.to_pandas(self._measured(choice), self.collections())

    @takes_choice
    def to_xarray(self, **choice: Unpack[Choice]) -> Any:
        """Return an ``xarray.Dataset`` of dimensions step, worker and tensor; `iterate` has the arguments.

        Its variables are value and the statistics of `to_pandas`; mode and mode_step are coordinates along step,
        collection along tensor.

        Raises:
            SMDebugRuntimeError: xarray or pandas is not installed.
        """
        return dataframes.to_xarray(self._measured(choice), self.collections())

    @takes_choice
    def to_parquet(self, path: str | os.PathLike[str], **choice: Unpack[Choice]) -> dict[tuple[int, str, str], str]:
        """Write the table of `to_pandas` into a Parquet file, and return what is damaged, by (step, worker, tensor).

        Whole tensors are not in it. What cannot be known is null. `iterate` has the other arguments.

        Raises:
            SMDebugRuntimeError: pyarrow is not installed, or the file cannot be written.
        """
        files = list(self._files(choice))
        source = self._as_source(choice)
        stored = dict.fromkeys(source.contents(file) for file, _ in files)
        ops = {op for contents in stored for own in contents.reductions.values() for op in own if op[0] in OPS}
        further = sorted({f"abs_{op}" if absolute else op for op, absolute in ops} - {*STATISTICS})
        rows = ((file, measured) for file, names in files for measured in measure(source, file, names))
        known = sorted({name for _, names in files for name in names})
        return dataframes.to_parquet(rows, known, further, self.collections(), os.fspath(path))

    @takes_choice
    def plot(
        self,
        named: str | Iterable[Any] | None = None,
        /,
        *,
        statistic: str | None = None,
        logarithmic: bool = False,
        **choice: Unpack[Choice],
    ) -> Any:
        """Draw tensors over the steps; return a ``matplotlib.figure.Figure``, which a notebook shows.

        Without a choice these are the losses; `iterate` has the arguments that choose. NaN and Inf are red crosses at
        the upper edge.

        Args:
            named: the same as ``regex``.
            statistic: one of the columns of `to_pandas`, such as ``"std"``; by default the value of a tensor of one
                element, and the l2 norm of a larger one.
            logarithmic: whether the axis of the numbers is.

        Raises:
            SMDebugRuntimeError: matplotlib is not installed.
            SMDebugValueError: nothing of that was saved.
        """
        if named is not None:
            choice["regex"] = named
        if choice.get("regex") is None and choice.get("collection") is None:
            choice["collection"] = CollectionKeys.LOSSES
        mode = choice.get("mode", WHOLE["mode"])
        return plots.plot(self._measured(choice), mode, statistic, logarithmic)

    def _repr_html_(self) -> str:
        # What rules find stands on a floor above; it is loaded only where a notebook asks for it.
        return str(import_module("smd_agent.report.notebook").html_of_trial(self))

    @takes_choice
    def to_tensorboard(
        self, folder: str | os.PathLike[str], **choice: Unpack[Choice]
    ) -> dict[tuple[int, str, str], str]:
        """Write files for TensorBoard, and return what is damaged, by (step, worker, tensor).

        They have the tags that a hook's have: numbers and stored reductions as scalars, and a histogram of each tensor
        that was saved whole or as ``histogram``. `iterate` has the other arguments.

        Args:
            folder: made where it is missing. It should hold no other run's files.

        Raises:
            SMDebugRuntimeError: the files cannot be written.
        """
        files = self._files(choice)
        return tensorboard.write(files, self._as_source(choice), self.collections(), os.fspath(folder))

    def inputs(self, step: int, mode: ModeKeys = ModeKeys.GLOBAL) -> list[npt.NDArray[Any]]:
        """Return the values of the collection ``inputs`` at a step, ordered by the numbers at the ends of their names.

        Raises what `tensor_names` and `Tensor.value` raise.
        """
        names = self.tensor_names(step=step, mode=mode, collection=CollectionKeys.INPUTS)
        return self._values(names, step, mode)

    def labels(self, step: int, mode: ModeKeys = ModeKeys.GLOBAL) -> list[npt.NDArray[Any]]:
        """Return the values at a step of tensors with ``label`` in their names; else as `inputs`."""
        return self._values(self.tensor_names(step=step, mode=mode, regex="labels*"), step, mode)

    def predictions(self, step: int, mode: ModeKeys = ModeKeys.GLOBAL) -> list[npt.NDArray[Any]]:
        """Return the values at a step of tensors with ``prediction`` in their names; else as `inputs`."""
        return self._values(self.tensor_names(step=step, mode=mode, regex="predictions*"), step, mode)

    def _values(self, names: list[str], step: int, mode: ModeKeys) -> list[npt.NDArray[Any]]:
        return [self.tensor(name).value(step, mode) for name in sorted(names, key=_number_at_end)]

    def _saved(self, choice: Choice) -> Iterator[Saved]:
        source = self._as_source(choice)
        for file, names in self._files(choice):
            index = file.index
            for name in names:
                yield Saved(file.step, index.mode, index.mode_step, file.worker, name, source, file)

    def _measured(self, choice: Choice) -> Iterator[dataframes.Row]:
        source = self._as_source(choice)
        for file, names in self._files(choice):
            for measured in measure(source, file, names):
                yield file, measured

    def _files(self, choice: Choice) -> Iterator[tuple[StepIndex, list[str]]]:
        chosen: Choice = {**WHOLE, **choice}
        mode, steps, worker = chosen["mode"], chosen["steps"], chosen["worker"]
        source = self._as_source(choice)
        names = self.tensor_names(regex=chosen["regex"], collection=chosen["collection"])
        if worker is not None and worker not in source.workers():
            raise InvalidWorker(worker)
        wanted = None if steps is None else set(steps)
        for step in source.step_table.steps(mode):
            if wanted is None or step in wanted:
                for name, file in sorted(source.step_table.files(step, mode).items()):
                    if worker in (None, name):
                        contents = source.contents(file).names
                        yield file, [name for name in names if name in contents]


def _number_at_end(name: str) -> int:
    end = name.rpartition("_")[2]
    return int(end) if end.isdecimal() else 0
