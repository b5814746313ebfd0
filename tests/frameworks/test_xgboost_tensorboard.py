"""Files for TensorBoard of a boosted training, as TensorBoard's own reader reads them."""

from __future__ import annotations

import pytest
from harness.boards import board_python, check_board, read_board

pytest.importorskip("xgboost")

SCRIPT = """
import numpy, xgboost
rng = numpy.random.default_rng(0)
x = rng.random((200, 5))
data = xgboost.DMatrix(x, label=x[:, 0] > 0.5)
xgboost.train({"objective": "binary:logistic", "nthread": 1}, data, 12, evals=[(data, "train")], verbose_eval=False)
"""


def test_what_a_run_has_is_shown(runner):
    board_python()
    script = runner.write(SCRIPT)
    done = runner.by_launcher("--out", "run", "--tensorboard", "board", "--every", "3", "--save", "all", script)
    assert done.returncode == 0, done.stderr
    found = check_board(runner.folder / "run", runner.folder / "board")
    assert len(found) == 1
    (shown,) = read_board(runner.folder / "board").values()
    assert [step for step, _ in shown["scalars"]["train-logloss"]] == [0, 3, 6, 9]
    assert any(tag.startswith("predictions/") for tag in shown["histograms"])
