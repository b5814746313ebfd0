"""Data a script hands to its hook: a matrix, or a local file of one."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import xgboost

from smd_agent.errors import SMDebugError
from smd_agent.framework.plain_access import is_a

_CSV = ("csv", "text/csv")
_LIBSVM = ("libsvm", "text/libsvm", "text/x-libsvm")


def as_matrix(data: Any) -> xgboost.DMatrix | None:
    """The matrix that is meant.

    Args:
        data: a ``DMatrix``, None, or ``(path, content type)`` of a local file whose first column is the label; the
            types are csv, text/csv, libsvm, text/libsvm and text/x-libsvm, None stands for libsvm.

    Raises:
        SMDebugError: it is something else, or the file is missing or has other content.
    """
    if data is None or is_a(data, xgboost.DMatrix):
        matrix: xgboost.DMatrix | None = data
        return matrix
    if not (isinstance(data, tuple) and len(data) == 2 and isinstance(data[0], str)):
        raise SMDebugError(
            f"a {type(data).__name__} is no data for the hook: "
            "allowed are an xgboost.DMatrix and a tuple (file path, content type)"
        )
    path = os.path.abspath(os.path.expanduser(data[0]))
    if not os.path.isfile(path):
        raise SMDebugError(f"{data[0]} is no local file: only local files are supported as data for the hook")
    content_type = "libsvm" if data[1] is None else str(data[1]).lower()
    if content_type not in _CSV + _LIBSVM:
        raise SMDebugError(f"{data[1]!r} is no content type of {path}, allowed are {', '.join(_CSV + _LIBSVM)}")
    try:
        return _from_csv(path) if content_type in _CSV else xgboost.DMatrix(f"{path}?format=libsvm")
    except (ValueError, xgboost.core.XGBoostError) as error:
        reason = str(error).splitlines()[0]
        raise SMDebugError(f"{path} cannot be read as {content_type}: {reason}") from error


def _from_csv(path: str) -> xgboost.DMatrix:
    rows = np.genfromtxt(path, delimiter=",", dtype=np.float32, ndmin=2)
    if rows.shape[1] < 2 or np.isnan(rows).all():
        raise ValueError("there is no column beside the label")
    return xgboost.DMatrix(rows[:, 1:], label=rows[:, 0])
