"""SHAP values of a growing model, kept from saved round to saved round.

The contributions of a row are sums over trees (Lundberg et al., "Consistent Individualized Feature Attribution for
Tree Ensembles", 2018), which XGBoost adds up in float32, tree after tree. Adding the contributions of the new rounds
one by one therefore gives the same bits as computing all of them again, as long as a round adds one tree to each
class. It does not hold for DART, which weights earlier trees anew.
"""

from __future__ import annotations

import json

import numpy as np
import numpy.typing as npt
import xgboost

from smd_agent import guard
from smd_agent.xgboost.worker import rank_and_size


class Contributions:
    """SHAP values of one matrix under one model that is being trained.

    Args:
        data: the rows to explain; their features must be those of the model.
    """

    def __init__(self, data: xgboost.DMatrix) -> None:
        self._data = data
        self._sum: npt.NDArray[np.float32] | None = None
        self._rounds = 0
        self._additive: bool | None = None
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
        if self._additive is None:
            self._additive = _is_additive(model, self._data)
        rounds = model.num_boosted_rounds()
        # None until it is complete again: a failure half-way would leave some rounds in it.
        total, self._sum = self._sum, None
        if total is None or not self._additive or rounds < self._rounds:
            total = np.array(model.predict(self._data, pred_contribs=True), np.float32)
        else:
            self._add_rounds(model, total, rounds)
        self._sum, self._rounds = total, rounds
        return total

    def _add_rounds(self, model: xgboost.Booster, total: npt.NDArray[np.float32], rounds: int) -> None:
        for i in range(self._rounds, rounds):
            # All columns: without the last one they would not be contiguous, which takes several times as long.
            total += model[i : i + 1].predict(self._data, pred_contribs=True)
        # The bias of each part has the base score in it again.
        total[..., -1] = self._bias(model, total.shape[:-1])

    def _bias(self, model: xgboost.Booster, shape: tuple[int, ...]) -> npt.NDArray[np.float32]:
        """The bias column, bit for bit: the trees' part is the same for any row, so one row shows it."""
        if self._one_row is None:
            self._one_row = _one_row(model, self._data)
            self._margin = np.asarray(self._data.get_base_margin(), np.float32)
            if self._margin.size:
                # Rows with a margin of their own start from it and not from the model's base score.
                self._one_row.set_base_margin(np.zeros((1, *shape[1:]), np.float32))
        column = _last_column(model, self._one_row)
        return np.add(column, self._margin.reshape(shape), dtype=np.float32) if self._margin.size else column


def _is_additive(model: xgboost.Booster, data: xgboost.DMatrix) -> bool:
    booster = json.loads(model.save_config())["learner"]["gradient_booster"]
    if booster["name"] != "gbtree":
        reason = f"the booster {booster['name']} weights its trees anew in each round"
    elif int(booster["gbtree_model_param"]["num_parallel_tree"]) > 1:
        reason = "a round of several parallel trees adds up in another order"
    elif rank_and_size()[1] > 1 and not _is_sliceable(data):
        reason = "this data of a distributed training cannot be sliced"
    else:
        return True
    guard.say_once(
        ("shap", reason),
        f"SHAP values are computed over all trees in every saved round, which takes longer and longer: {reason}",
    )
    return False


def _one_row(model: xgboost.Booster, data: xgboost.DMatrix) -> xgboost.DMatrix:
    if rank_and_size()[1] > 1:
        # Making a matrix is something all workers have to do together; cutting one is not.
        return data.slice([0])
    row = np.full((1, model.num_features()), np.nan, np.float32)
    return xgboost.DMatrix(row, feature_names=model.feature_names, feature_types=model.feature_types)


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
