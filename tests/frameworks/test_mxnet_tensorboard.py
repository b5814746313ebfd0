"""Files for TensorBoard of a training with Gluon, as TensorBoard's own reader reads them."""

from __future__ import annotations

import pytest
from harness.boards import board_python, check_board, read_board

pytest.importorskip("mxnet")

SCRIPT = """
import mxnet as mx
from mxnet import autograd, gluon, nd
mx.random.seed(0)
net = gluon.nn.Sequential()
net.add(gluon.nn.Dense(30, activation="relu"), gluon.nn.Dense(3))
net.initialize(mx.init.Xavier())
loss_of = gluon.loss.SoftmaxCrossEntropyLoss()
trainer = gluon.Trainer(net.collect_params(), "adam", {"learning_rate": 0.01})
for step in range(9):
    x, y = nd.random.normal(shape=(16, 10)), nd.random.randint(0, 3, shape=(16,)).astype("float32")
    with autograd.record():
        loss = loss_of(net(x), y)
    loss.backward()
    trainer.step(16)
"""


@pytest.mark.parametrize("form", [(), ("--raw",)], ids=str)
def test_what_a_run_has_is_shown(runner, form):
    board_python()
    script = runner.write(SCRIPT)
    done = runner.by_launcher("--out", "run", "--tensorboard", "board", "--every", "4", *form, script)
    assert done.returncode == 0, done.stderr
    found = check_board(runner.folder / "run", runner.folder / "board")
    assert list(found) == ["TRAIN"]
    train = read_board(runner.folder / "board")["TRAIN"]
    assert any(tag.startswith("weights/") for tag in train["histograms"])
    assert any(tag.startswith("gradients/") for tag in train["histograms"])
