"""One tensor of a run: its values, shapes and reductions over the steps."""

from __future__ import annotations

from bisect import bisect_right
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from smd_agent.analysis.steps import StepState
from smd_agent.core.modes import ModeKeys
from smd_agent.core.reduction_config import CHANNEL_SHARES, HISTOGRAM_OP, STORED_OPS
from smd_agent.core.reductions import count_by_size, reduce_one
from smd_agent.core.reductions.histogram import BUCKETS
from smd_agent.errors import (
    DamagedRecord,
    InvalidWorker,
    ReductionUnavailableForStep,
    ShapeUnavailableForStep,
    SMDebugNotImplementedError,
    SMDebugValueError,
    StepNotYetAvailable,
    StepUnavailable,
    TensorUnavailableForStep,
)

if TYPE_CHECKING:
    from smd_agent.analysis.statistics import TensorSource
    from smd_agent.core.names import Op
    from smd_agent.formats.event_decoder import Form, SavedTensor
    from smd_agent.storage.index_files import StepIndex


class Tensor:
    """A tensor that was saved at some steps of a run.

    Methods take a step as ``mode`` counts it; with GLOBAL it is the step over all modes. Without a ``worker`` they
    take the first one, by name, that saved what is asked for.
    """

    def __init__(self, name: str, trial: TensorSource) -> None:
        self.name = name
        self.trial = trial
        self.original_name: str | None = None

    def steps(self, mode: ModeKeys = ModeKeys.GLOBAL, show_incomplete_steps: bool = False) -> list[int]:
        """Return the steps at which the tensor was saved in any form, in order."""
        self.trial.maybe_refresh()
        table = self.trial.step_table
        steps = table.steps(mode, show_incomplete_steps)
        return [step for step in steps if self._files(step, mode)]

    def workers(self, step_num: int, mode: ModeKeys = ModeKeys.GLOBAL) -> list[str]:
        """Return the workers that saved the tensor at a step.

        Raises:
            TensorUnavailableForStep: none did.
        """
        workers = self._refreshed_files(step_num, mode)
        if not workers:
            raise TensorUnavailableForStep(self.name, step_num, mode)
        return sorted(workers)

    def value(self, step_num: int, mode: ModeKeys = ModeKeys.GLOBAL, worker: str | None = None) -> npt.NDArray[Any]:
        """Return the tensor as it was saved whole at a step.

        Raises:
            StepNotYetAvailable: the step may still come.
            StepUnavailable: the step was not saved.
            TensorUnavailableForStep: the step has no whole value of this tensor.
            InvalidWorker: the worker did not save the tensor at the step.
            DamagedRecord: the saved bytes have changed.
        """
        return self.record(step_num, mode, worker).value

    def record(self, step_num: int, mode: ModeKeys = ModeKeys.GLOBAL, worker: str | None = None) -> SavedTensor:
        """Return the value together with when it was saved and the dtype it had; raises what `value` raises."""
        for file in self._files_of(step_num, mode, worker):
            if file.index.payload.location(self.name) is not None:
                return self.trial.read(file, self.name)
        raise TensorUnavailableForStep(self.name, step_num, mode, self._has_reductions(step_num, mode))

    def form(self, step_num: int, mode: ModeKeys = ModeKeys.GLOBAL, worker: str | None = None) -> Form | None:
        """Tell dtype and shape at a step without reading the values; None if neither is known there."""
        forms = (self.trial.form(file, self.name) for file in self._files_of(step_num, mode, worker))
        return next((form for form in forms if form is not None), None)

    def values(self, mode: ModeKeys = ModeKeys.GLOBAL, worker: str | None = None) -> dict[int, npt.NDArray[Any]]:
        """Return the whole values by step; steps that have none, or none of this worker, are left out.

        Raises:
            TensorUnavailableForStep: no step has any.
            InvalidWorker: the run has no such worker.
        """
        if worker is not None and worker not in self.trial.workers():
            raise InvalidWorker(worker)
        values = {}
        steps = self.steps(mode)
        for step in steps:
            file = self._file_with_value(step, mode, worker)
            if file is not None:
                values[step] = self.trial.read(file, self.name).value
        if steps and not values:
            raise TensorUnavailableForStep(self.name, steps[0], mode, self._has_reductions(steps[0], mode))
        return values

    def shape(self, step_num: int, mode: ModeKeys = ModeKeys.GLOBAL, worker: str | None = None) -> tuple[int, ...]:
        """Return the shape noted at a step, else that of the saved value; raises what `value` raises.

        Raises:
            ShapeUnavailableForStep: the step has neither.
        """
        for file in self._files_of(step_num, mode, worker):
            noted = file.index.payload.shapes.get(self.name)
            if noted is not None:
                return noted.shape
        try:
            return self.value(step_num, mode, worker).shape
        except TensorUnavailableForStep:
            raise ShapeUnavailableForStep(self.name, step_num, mode) from None

    def reduction_value(
        self,
        step_num: int,
        reduction_name: str,
        mode: ModeKeys = ModeKeys.GLOBAL,
        worker: str | None = None,
        abs: bool = False,
    ) -> Any:
        """Return a reduction as a NumPy scalar: the stored one, else computed from the whole value.

        The histogram is an int64 array of shape (260,), which `smd_agent.core.reductions.histogram` describes.

        Args:
            step_num: step as the mode counts it.
            reduction_name: min, max, mean, median, std, variance, sum, prod, l1, l2, p5, p50, p95, zero_share,
                nan_count, inf_count, dead_share, saturated_share or histogram. The shares of channels are never
                computed from the value, which does not tell where its channels are.
            mode: whose steps are counted.
            worker: whose value is taken.
            abs: take the reduction of the absolute values.

        Raises:
            SMDebugValueError: there is no such reduction.
            TensorUnavailableForStep: the step has neither this reduction nor the value. Else as `value`.
        """
        op = reduction_name, bool(abs)
        if op not in STORED_OPS:
            raise SMDebugValueError(f"Invalid reduction type {reduction_name}")
        for file in self._files_of(step_num, mode, worker):
            stored = self._reductions(file).get(op)
            if stored is not None:
                return self._reduction(file, op, stored)
        if reduction_name in CHANNEL_SHARES:
            has_reductions = self._has_reductions(step_num, mode)
            raise ReductionUnavailableForStep(self.name, step_num, mode, has_reductions, reduction_name)
        value = self.value(step_num, mode, worker)
        if op == HISTOGRAM_OP:
            return count_by_size(value)
        return np.float64(reduce_one(value, reduction_name, abs))

    def reduction_values(
        self, step_num: int, mode: ModeKeys = ModeKeys.GLOBAL, worker: str | None = None
    ) -> dict[Op, Any]:
        """Return the stored reductions of a step by (name, on absolute values); raises what `value` raises.

        They are what `reduction_value` returns.
        """
        for file in self._files_of(step_num, mode, worker):
            stored = self._reductions(file)
            if stored:
                return {op: self._reduction(file, op, name) for op, name in stored.items()}
        return {}

    def prev_steps(self, step: int, n: int | None = None, mode: ModeKeys = ModeKeys.GLOBAL) -> list[int]:
        """Return the last ``n`` saved steps up to and including ``step``; all of them without ``n``."""
        steps = self.steps(mode)
        before = steps[: bisect_right(steps, step)]
        return before[-n:] if n else before

    def step(self, step_num: int, mode: ModeKeys = ModeKeys.GLOBAL, worker: str | None = None) -> None:
        """Not there any more.

        Raises:
            SMDebugNotImplementedError: always.
        """
        raise SMDebugNotImplementedError("Tensor.step is gone: use Tensor.value or Tensor.reduction_value")

    def _refreshed_files(self, step: int, mode: ModeKeys) -> dict[str, StepIndex]:
        """Return what ``_files`` returns, after a look for what is new if that is nothing."""
        files = self._files(step, mode)
        if not files:
            self.trial.maybe_refresh()
            files = self._files(step, mode)
        return files

    def _files(self, step: int, mode: ModeKeys) -> dict[str, StepIndex]:
        files = self.trial.step_table.files(step, mode)
        return {worker: files[worker] for worker in sorted(files) if self._is_in(files[worker])}

    def _file_with_value(self, step: int, mode: ModeKeys, worker: str | None) -> StepIndex | None:
        for name, file in self._files(step, mode).items():
            if worker in (None, name) and file.index.payload.location(self.name) is not None:
                return file
        return None

    def _has_reductions(self, step_num: int, mode: ModeKeys) -> bool:
        files = self._files(step_num, mode)
        return any(self._reductions(file) for file in files.values())

    def _is_in(self, file: StepIndex) -> bool:
        return self.name in self.trial.contents(file).names

    def _files_of(self, step_num: int, mode: ModeKeys, worker: str | None) -> list[StepIndex]:
        """Return the files that hold the tensor in some form, of one worker if one is named, else of all."""
        files = self._refreshed_files(step_num, mode)
        if not files:
            raise self._why_missing(step_num, mode)
        if worker is None:
            return list(files.values())
        if worker not in files:
            raise InvalidWorker(worker)
        return [files[worker]]

    def _why_missing(self, step_num: int, mode: ModeKeys) -> Exception:
        state = self.trial.step_table.state(step_num, mode)
        if state is StepState.AVAILABLE:
            return TensorUnavailableForStep(self.name, step_num, mode)
        if state is StepState.UNAVAILABLE:
            return StepUnavailable(step_num, mode)
        return StepNotYetAvailable(step_num, mode)

    def _reductions(self, file: StepIndex) -> dict[Op, str]:
        return self.trial.contents(file).reductions.get(self.name, {})

    def _reduction(self, file: StepIndex, op: Op, stored_name: str) -> Any:
        if op != HISTOGRAM_OP:
            return self.trial.number(file, stored_name)
        value = self.trial.read(file, stored_name).value
        if value.shape != (BUCKETS,) or value.dtype.kind != "i":
            raise DamagedRecord(str(file.index.event_file), stored_name, file.step, "it is no histogram")
        return value

    def _repr_html_(self) -> str:
        # What rules find stands on a floor above; it is loaded only where a notebook asks for it.
        return str(import_module("smd_agent.report.notebook").html_of_tensor(self))

    def __repr__(self) -> str:
        return f"Tensor({self.name!r})"
