"""SHAP values of a growing model, kept from saved round to saved round.

The contributions of a row are sums over trees (Lundberg et al., "Consistent Individualized Feature Attribution for
Tree Ensembles", 2018), which XGBoost adds up in float32, tree after tree. Adding the contributions of the new rounds
one by one therefore gives the same bits as computing all of them again, as long as a round adds one tree to each
class. It does not hold for DART, which weights earlier trees anew.
"""

from __future__ import annotations

import json
import math
from time import perf_counter

import numpy as np
import numpy.typing as npt
import xgboost

from smd_agent import guard
from smd_agent.xgboost.worker import rank_and_size

# Rows by which it is told at first how long a round takes: more of them as long as these take little time.
_FEW_ROWS = (1, 32, 1024)
_LITTLE_SECONDS = 0.005
_MOST_NUMBERS = 1 << 20


class Contributions:
    """SHAP values of one matrix under one model that is being trained.

    Args:
        data: the rows to explain; their features must be those of the model.
    """

    def __init__(self, data: xgboost.DMatrix) -> None:
        self._data = data
        self._sum: npt.NDArray[np.float32] | None = None
        self._rounds = 0
        self._seconds_of_round: float | None = None
        # Why rounds do not add up to the model; empty where they do.
        self._reason: str | None = None
        self._one_row: xgboost.DMatrix | None = None
        self._margin = np.empty(0, np.float32)

    def of(self, model: xgboost.Booster) -> npt.NDArray[np.float32]:
        """The result of ``model.predict(data, pred_contribs=True)``.

        Returns:
            float32 of shape (rows, features + 1), or (rows, classes, features + 1) for several classes, in units of the
            margin; the last column is the bias. It belongs to this object, and the next call changes it.

        Raises:
            XGBoostError: the model or the data cannot be explained.
        """
        pending, began = self._pending(model), perf_counter()
        if self._reason:
            _say_that_it_takes_long(self._reason)
        rounds = model.num_boosted_rounds()
        # None until it is complete again: a failure half-way would leave some rounds in it.
        total, self._sum = self._sum, None
        if total is None or self._reason or rounds < self._rounds:
            total = np.array(model.predict(self._data, pred_contribs=True), np.float32)
        else:
            self._add_rounds(model, total, rounds)
        self._sum, self._rounds = total, rounds
        if pending:
            self._seconds_of_round = (perf_counter() - began) / pending
        return total

    def seconds(self, model: xgboost.Booster) -> float:
        """The seconds that ``of`` will take, nearly: told by the last time, and before that by few rows of one round.

        It is infinite where there are no such rows.
        """
        pending = self._pending(model)
        if self._seconds_of_round is None:
            self._seconds_of_round = self._seconds_by_few_rows(model)
        return self._seconds_of_round * pending if pending else 0.0

    def _pending(self, model: xgboost.Booster) -> int:
        """The number of rounds that are to be explained."""
        if self._reason is None:
            self._reason = _reason_not_to_add(model, self._data)
        rounds = model.num_boosted_rounds()
        if self._sum is None or self._reason or rounds < self._rounds:
            return rounds
        return rounds - self._rounds

    def _seconds_by_few_rows(self, model: xgboost.Booster) -> float:
        if rank_and_size()[1] > 1 and not _is_sliceable(self._data):
            return math.inf
        rows, rounds, seconds = self._data.num_row(), model.num_boosted_rounds(), 0.0
        last = model[rounds - 1 : rounds]
        for most in _FEW_ROWS:
            count = max(min(most, rows, _MOST_NUMBERS // max(model.num_features(), 1)), 1)
            few = _few_rows(model, self._data, count)
            began = perf_counter()
            last.predict(few, pred_contribs=True)
            took = perf_counter() - began
            seconds = took / count * rows
            if took > _LITTLE_SECONDS:
                break
        return seconds

    def _add_rounds(self, model: xgboost.Booster, total: npt.NDArray[np.float32], rounds: int) -> None:
        for i in range(self._rounds, rounds):
            # All columns: without the last one they would not be contiguous, which takes several times as long.
            total += model[i : i + 1].predict(self._data, pred_contribs=True)
        # The bias of each part has the base score in it again.
        total[..., -1] = self._bias(model, total.shape[:-1])

    def _bias(self, model: xgboost.Booster, shape: tuple[int, ...]) -> npt.NDArray[np.float32]:
        """The bias column, bit for bit: the trees' part is the same for any row, so one row shows it."""
        if self._one_row is None:
            self._one_row = _few_rows(model, self._data, 1)
            self._margin = np.asarray(self._data.get_base_margin(), np.float32)
            if self._margin.size:
                # Rows with a margin of their own start from it and not from the model's base score.
                self._one_row.set_base_margin(np.zeros((1, *shape[1:]), np.float32))
        column = _last_column(model, self._one_row)
        return np.add(column, self._margin.reshape(shape), dtype=np.float32) if self._margin.size else column


def _reason_not_to_add(model: xgboost.Booster, data: xgboost.DMatrix) -> str:
    """The reason why contributions of rounds do not add up to those of the model; empty where they do."""
    booster = json.loads(model.save_config())["learner"]["gradient_booster"]
    if booster["name"] != "gbtree":
        return f"the booster {booster['name']} weights its trees anew in each round"
    if int(booster["gbtree_model_param"]["num_parallel_tree"]) > 1:
        return "a round of several parallel trees adds up in another order"
    if rank_and_size()[1] > 1 and not _is_sliceable(data):
        return "this data of a distributed training cannot be sliced"
    return ""


def _say_that_it_takes_long(reason: str) -> None:
    guard.say_once(
        ("shap", reason),
        f"SHAP values are computed over all trees in every saved round, which takes longer and longer: {reason}",
    )


def _few_rows(model: xgboost.Booster, data: xgboost.DMatrix, count: int) -> xgboost.DMatrix:
    """So many rows that the model can explain; what is in them makes no difference."""
    if rank_and_size()[1] > 1:
        # Making a matrix is something all workers have to do together; cutting one is not.
        return data.slice([0] * count)
    rows = np.full((count, model.num_features()), np.nan, np.float32)
    return xgboost.DMatrix(rows, feature_names=model.feature_names, feature_types=model.feature_types)


def _is_sliceable(data: xgboost.DMatrix) -> bool:
    try:
        data.slice([0])
    except (TypeError, ValueError, xgboost.core.XGBoostError):
        # Quantile matrices and data in groups cannot be sliced.
        return False
    return True


def _last_column(model: xgboost.Booster, data: xgboost.DMatrix) -> npt.NDArray[np.float32]:
    # Approximate contributions differ in the features only, and their bias takes an eighth of the time.
    values: npt.NDArray[np.float32] = model.predict(data, pred_contribs=True, approx_contribs=True)
    return values[..., -1]
