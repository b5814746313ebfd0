"""Trainings of XGBoost, Gluon and TensorFlow that are killed and started again: their numbers go on, in one run."""

from __future__ import annotations

import importlib.util
import json
import signal

import pytest
from harness.slow_disk import SLOW_DISK

from smd_agent import create_trial
from smd_agent.core.modes import ModeKeys

# Each keeps its own checkpoint every 4 steps, goes on from it, and is killed in a step of 14 when it has none.
XGBOOST = """
import os, signal, sys
import numpy as np, xgboost as xgb
folder, kill = sys.argv[1], int(sys.argv[2])
path = os.path.join(folder, "model.json")
os.makedirs(folder, exist_ok=True)
rng = np.random.default_rng(0)
data = xgb.DMatrix(rng.normal(size=(60, 3)), rng.integers(0, 2, 60))
model = xgb.Booster(model_file=path) if os.path.exists(path) else None
done = model.num_boosted_rounds() if model else 0
class Checkpoint(xgb.callback.TrainingCallback):
    def after_iteration(self, model, epoch, evals_log):
        if epoch % 4 == 3:
            model.save_model(path)
        if not done and epoch == kill:
            os.kill(os.getpid(), signal.SIGKILL)
        return False
xgb.train({"nthread": 1}, data, 14 - done, evals=[(data, "train")], xgb_model=model, callbacks=[Checkpoint()])
"""
GLUON = """
import os, signal, sys
import mxnet as mx
from mxnet import autograd, gluon, nd
folder, kill = sys.argv[1], int(sys.argv[2])
path = os.path.join(folder, "net.params")
os.makedirs(folder, exist_ok=True)
mx.random.seed(0)
net = gluon.nn.Dense(2, in_units=3)
first = 0
if os.path.exists(path):
    net.load_parameters(path)
    first = int(open(os.path.join(folder, "step")).read()) + 1
else:
    net.initialize()
trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.1})
loss_fn = gluon.loss.L2Loss()
for step in range(first, 14):
    with autograd.record():
        loss = loss_fn(net(nd.ones((4, 3)) * step), nd.ones((4, 2)))
    loss.backward()
    trainer.step(4)
    if step % 4 == 3:
        net.save_parameters(path)
        open(os.path.join(folder, "step"), "w").write(str(step))
    if not first and step == kill:
        os.kill(os.getpid(), signal.SIGKILL)
"""
KERAS = """
import os, signal, sys
import numpy as np, keras
folder, kill = sys.argv[1], int(sys.argv[2])
path = os.path.join(folder, "model.keras")
keras.utils.set_random_seed(0)
made = os.path.exists(path)
if made:
    model = keras.models.load_model(path)
else:
    model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(1)])
    model.compile("sgd", "mse")
class Kill(keras.callbacks.Callback):
    def on_train_batch_end(self, batch, logs=None):
        if not made and self.model.optimizer.iterations == kill + 1:
            os.kill(os.getpid(), signal.SIGKILL)
rng = np.random.default_rng(0)
keep = keras.callbacks.ModelCheckpoint(path, verbose=0)
data = rng.normal(size=(16, 3)), rng.normal(size=(16, 1))
first = 2 if made else 0
model.fit(*data, batch_size=4, epochs=3, initial_epoch=first, shuffle=False, verbose=0, callbacks=[keep, Kill()])
if made:
    model.fit(*data, batch_size=4, epochs=1, steps_per_epoch=2, shuffle=False, verbose=0)
"""
PROGRAMS = {
    "xgboost": (XGBOOST, ModeKeys.GLOBAL),
    "mxnet": (GLUON, ModeKeys.TRAIN),
    "keras": (KERAS, ModeKeys.TRAIN),
}


@pytest.mark.parametrize("disk, kill", [("", 9), (SLOW_DISK, 8)], ids=["usual", "slow"])
@pytest.mark.parametrize("framework", PROGRAMS)
def test_it_goes_on_in_its_run(runner, tmp_path, framework, disk, kill):
    if importlib.util.find_spec(framework) is None:
        pytest.skip(f"there is no {framework}")
    program, mode = PROGRAMS[framework]
    script, checkpoints = runner.write(disk + program), tmp_path / "checkpoints"
    named = tmp_path / "checkpointconfig.json"
    named.write_text(json.dumps({"LocalPath": str(checkpoints)}))
    config = {"HookParameters": {"save_interval": 1}}
    codes = [
        runner.by_variable(
            script,
            str(checkpoints),
            str(kill),
            config=config,
            CHECKPOINT_CONFIG_FILE_PATH=str(named),
            TF_CPP_MIN_LOG_LEVEL="3",
        ).returncode
        for _ in range(2)
    ]
    assert codes == [-signal.SIGKILL, 0]
    trial = create_trial(str(tmp_path / "run"))
    assert trial.steps() == [*range(14)]
    assert trial.steps(mode=mode) == [*range(14)]
    states = json.loads((checkpoints / "metadata.json").read_text())
    keys = ("training-run", "latest-global-step-seen", "latest-global-step-saved")
    assert [tuple(state[key] for key in keys) for state in states] == [(1, 3, 3), (1, 7, 7), (2, 11, 11)]
