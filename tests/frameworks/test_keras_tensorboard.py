"""Files for TensorBoard of a Keras training, as TensorBoard's own reader reads them."""

from __future__ import annotations

import pytest
from harness.boards import board_python, check_board, read_board

pytest.importorskip("tensorflow")

SCRIPT = """
import numpy as np
from tensorflow import keras
keras.utils.set_random_seed(0)
model = keras.Sequential([keras.layers.Dense(30, activation="relu", name="first"), keras.layers.Dense(3, name="last")])
loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
model.compile("adam", loss, metrics=["accuracy"])
rng = np.random.default_rng(0)
x, y = rng.random((96, 10), np.float32), rng.integers(0, 3, 96)
model.fit(x, y, batch_size=16, epochs=2, validation_data=(x, y), verbose=0)
"""


@pytest.mark.parametrize("form", [(), ("--raw",)], ids=str)
def test_what_a_run_has_is_shown(runner, form):
    board_python()
    done = runner.by_launcher(
        "--out", "run", "--tensorboard", "board", "--every", "3", *form, runner.write(SCRIPT), TF_CPP_MIN_LOG_LEVEL="3"
    )
    assert done.returncode == 0, done.stderr
    found = check_board(runner.folder / "run", runner.folder / "board")
    assert found.keys() == {"TRAIN", "EVAL"}
    train = read_board(runner.folder / "board")["TRAIN"]
    assert "loss" in train["scalars"]
    assert any(tag.startswith("weights/") for tag in train["histograms"])
    assert any(tag.startswith("gradients/") for tag in train["histograms"])
