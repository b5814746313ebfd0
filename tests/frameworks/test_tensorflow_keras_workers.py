"""Several workers of MultiWorkerMirroredStrategy: the first one saves, all of them train as without the agent."""

from __future__ import annotations

import importlib.util
import json
import socket
import subprocess
import sys

import numpy as np
import pytest

if importlib.util.find_spec("tensorflow") is None:
    pytest.skip("there is no tensorflow", allow_module_level=True)

from importlib.metadata import version

from harness.compare import Both, assert_untouched

from smd_agent.analysis.trial import create_trial
from smd_agent.core.modes import ModeKeys

SCRIPT = """
import hashlib
import numpy as np, tensorflow as tf
strategy = tf.distribute.MultiWorkerMirroredStrategy()
tf.keras.utils.set_random_seed(1)
with strategy.scope():
    model = tf.keras.Sequential([tf.keras.layers.Input((6,)), tf.keras.layers.Dense(3, name="d")])
    model.compile(tf.keras.optimizers.SGD(1.0), "mse")
rng = np.random.default_rng(0)
rows = rng.normal(size=(80, 6)).astype("float32"), rng.normal(size=(80, 3)).astype("float32")
model.fit(tf.data.Dataset.from_tensor_slices(rows).batch(16), epochs=2, verbose=0)
print(hashlib.sha1(b"".join(v.numpy().tobytes() for v in model.variables)).hexdigest())
"""


def free_ports(number):
    sockets = [socket.create_server(("localhost", 0)) for _ in range(number)]
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


def train(script, base):
    cluster = {"worker": [f"localhost:{port}" for port in free_ports(2)]}
    workers = []
    for index in range(2):
        task = json.dumps({"cluster": cluster, "task": {"type": "worker", "index": index}})
        env = {**base, "TF_CONFIG": task, "TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": ""}
        command = [sys.executable, str(script)]
        workers.append(subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True))
    ended = [worker.communicate(timeout=200) for worker in workers]
    return [
        subprocess.CompletedProcess(worker.args, worker.returncode, *texts)
        for worker, texts in zip(workers, ended, strict=True)
    ]


@pytest.mark.skipif(not version("keras").startswith("2"), reason="fit of Keras 3 itself fails under this strategy")
def test_the_first_worker_saves(runner, tmp_path):
    script = runner.write(SCRIPT)
    named = [{"CollectionName": name} for name in ("weights", "biases", "gradients")]
    file = runner.hook_file("run", {"HookParameters": {"save_interval": 1}, "CollectionConfigurations": named})
    runs = train(script, runner.environment()), train(script, runner.environment(SMDEBUG_CONFIG_FILE_PATH=file))
    workers = [Both(*pair) for pair in zip(*runs, strict=True)]
    for both in workers:
        assert_untouched(both, stderr=False)
    assert [both.agent.stderr.count("smd_agent: saving ") for both in workers] == [1, 0]
    trial = create_trial(str(tmp_path / "run"))
    assert trial.steps(mode=ModeKeys.TRAIN) == list(range(10))
    for name in ("kernel", "bias"):
        for step in range(9):
            weight, gradient = (
                trial.tensor(full).value(step, mode=ModeKeys.TRAIN)
                for full in (f"d/weights/d/{name}:0", f"gradients/d/{name}Grad")
            )
            following = trial.tensor(f"d/weights/d/{name}:0").value(step + 1, mode=ModeKeys.TRAIN)
            np.testing.assert_array_equal(weight - gradient, following)
