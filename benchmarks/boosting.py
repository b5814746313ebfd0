"""A boosted training, run a window of rounds at a time: the windows begin and end in a callback of its own."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import xgboost
from xgboost.callback import TrainingCallback

# By workload: rows, features, and rounds of a training.
SIZES = {"boosting": (10_000, 40, 120), "short_rounds": (569, 30, 2_000), "long_rounds": (40_000, 50, 200)}
PARAMETERS = {
    "objective": "binary:logistic",
    "eval_metric": "logloss",
    "max_depth": 6,
    # What 1.7 takes by itself for so few rows is the exact method: a round then takes ten times as long.
    "tree_method": "hist",
    "nthread": 1,
}


class Pacer(TrainingCallback):
    """Holds a training up between its rounds until the next command comes.

    A window ends where the round after it would begin, so it holds every call of every other callback exactly once for
    each of its rounds, in whatever order XGBoost calls them. No window spans two trainings.
    """

    def __init__(
        self,
        train: xgboost.DMatrix,
        rounds: int,
        commands: Iterator[tuple[str, int]],
        reply: Callable[[dict[str, float]], None],
    ) -> None:
        super().__init__()
        self._rounds = rounds
        self.ended = False
        self._train = train
        self._commands = commands
        self._reply = reply
        self._postponed: tuple[str, int] | None = None
        self._left = 0
        self._start = now()
        self._settling = False

    def before_iteration(self, model: xgboost.Booster, epoch: int, evals_log: Any) -> bool:
        """End the window if its rounds are done, then obey until the next one begins."""
        if self._left:
            self._left -= 1
            if self._left:
                return False
            times = since(self._start)
            if self._settling:
                settle()
                times["process"] = since(self._start)["process"]
            self._reply(times)
        while (command := self._postponed or next(self._commands, None)) is not None:
            operation, count = command
            if not operation.endswith("rounds"):
                self._reply(self._timed(operation, model, count))
                continue
            self._postponed = command if epoch + count >= self._rounds else None
            if self._postponed is None:
                self._left = count
                self._settling = operation == "saved_rounds"
                self._start = now()
            return False
        self.ended = True
        return True

    def _timed(self, operation: str, model: xgboost.Booster, count: int) -> dict[str, float]:
        start = now()
        for _ in range(count):
            getattr(self, f"_{operation}")(model)
        return since(start)

    def _dump(self, model: xgboost.Booster) -> None:
        model.get_dump(with_stats=True)

    def _shap_of_one_tree(self, model: xgboost.Booster) -> None:
        trees = model.num_boosted_rounds()
        model[trees - 1 : trees].predict(self._train, pred_contribs=True)


class Boosting:
    """Trainings of one set of rows, one after the other, as often as commands come.

    Args:
        name: of the workload.
        folder: where the variant writes its run.
    """

    def __init__(self, name: str, folder: Path) -> None:
        self.folder = folder
        self.callbacks: list[TrainingCallback] = []
        self._rounds = SIZES[name][2]
        self.train, self.evaluation = data(name)

    def serve(self, commands: Iterator[tuple[str, int]], reply: Callable[[dict[str, float]], None]) -> None:
        """Train until there are no more commands; the first window begins with the first round."""
        pacer = Pacer(self.train, self._rounds, commands, reply)
        while not pacer.ended:
            xgboost.train(
                PARAMETERS,
                self.train,
                self._rounds,
                evals=[(self.train, "train"), (self.evaluation, "valid")],
                callbacks=[*self.callbacks, pacer],
                verbose_eval=False,
            )


@functools.cache
def data(name: str) -> tuple[xgboost.DMatrix, xgboost.DMatrix]:
    """Return the rows of a workload to train with, and those to evaluate with."""
    count, features, _ = SIZES[name]
    return rows(count, features, seed=0), rows(count // 5, features, seed=1)


def rows(count: int, features: int, seed: int) -> xgboost.DMatrix:
    """Make rows of two classes that no model separates, so that no tree is ever small."""
    random = np.random.default_rng(seed)
    values = random.standard_normal((count, features), dtype=np.float32)
    signal = values[:, :6].sum(axis=1) + 2 * values[:, 6] * values[:, 7]
    return xgboost.DMatrix(values, label=(signal + 2 * random.standard_normal(count) > 0).astype(np.float32))


def now() -> tuple[float, float, float]:
    """Read CPU time of the process, wall time, and CPU time of this thread."""
    return time.process_time(), time.perf_counter(), time.thread_time()


def since(start: tuple[float, float, float]) -> dict[str, float]:
    """Return the times that have passed."""
    cpu = time.thread_time() - start[2]
    return {"cpu": cpu, "wall": time.perf_counter() - start[1], "process": time.process_time() - start[0]}


def settle() -> None:
    """Wait until this process computes nothing: what other threads still write belongs to the rounds before."""
    busy = True
    while busy:
        before = time.process_time()
        time.sleep(0.005)
        busy = time.process_time() - before > 0.0003


def prepare() -> None:
    """Make the data before the variants are forked, so that it lies in the same memory for all of them."""
    # What XGBoost computes from it, it computes in the first training.
    for name in SIZES:
        xgboost.train(PARAMETERS, data(name)[0], 1)


def start_threads() -> None:
    """Let XGBoost start a thread of its own, as it does by itself on more than one core; see `benchmarks.workloads`."""
    xgboost.train({**PARAMETERS, "nthread": 2}, rows(1000, 40, seed=2), 2)


WORKLOADS: dict[str, Callable[[Path], Boosting]] = {name: functools.partial(Boosting, name) for name in SIZES}
