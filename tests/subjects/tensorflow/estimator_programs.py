"""An estimator that is trained, evaluated, asked, and trained and evaluated in turn; it knows nothing of the agent.

usage: python estimator_programs.py EXPECTED.npz FOLDER [HOOK]     HOOK: hand this run a hook of its own
"""

import hashlib
import os
import sys

import numpy as np
import tensorflow as tf
from tensorflow.core.protobuf.meta_graph_pb2 import MetaGraphDef

tf.get_logger().setLevel("ERROR")
v1 = tf.compat.v1
rows = np.random.default_rng(0).normal(size=(64, 4)).astype("f")
labels = (rows.sum(1) > 0).astype("i4")
SEEN = {"train": [], "eval": []}
folder = sys.argv[2]
own = []
if len(sys.argv) > 3:
    import smd_agent.tensorflow as smd

    hook = smd.EstimatorHook(sys.argv[3], save_config=smd.SaveConfig(save_interval=1), include_collections=["weights"])
    own = [hook]


class Record(v1.train.SessionRunHook):
    def __init__(self, mode, loss):
        self.mode, self.loss = mode, loss

    def before_run(self, run_context):
        return v1.train.SessionRunArgs(self.loss)

    def after_run(self, run_context, run_values):
        SEEN[self.mode].append(run_values.results)


def layer(value, units, name, seed):
    kernel = v1.get_variable(
        f"{name}/kernel", [value.shape[1], units], initializer=v1.glorot_uniform_initializer(seed=seed)
    )
    return value @ kernel + v1.get_variable(f"{name}/bias", [units], initializer=v1.zeros_initializer())


def model(features, labels, mode):
    hidden = tf.nn.relu(layer(features["x"], 8, "first", 1))
    if mode == "train":
        hidden = tf.nn.dropout(hidden, 0.3, seed=5)
    logits = layer(hidden, 2, "second", 2)
    if mode == "infer":
        return tf.estimator.EstimatorSpec(mode, predictions={"logits": logits})
    loss = v1.losses.sparse_softmax_cross_entropy(labels, logits)
    recorder = [Record(mode, loss)]
    # Built in every mode, as many model functions do; evaluation does not run it.
    update = v1.train.AdamOptimizer(0.05).minimize(loss, v1.train.get_global_step())
    if mode == "eval":
        return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=update, evaluation_hooks=recorder)
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=update, training_hooks=recorder)


def data(repeat):
    return lambda: tf.data.Dataset.from_tensor_slices(({"x": rows}, labels)).repeat(repeat).batch(16)


config = tf.estimator.RunConfig(tf_random_seed=1, save_checkpoints_steps=6)
estimator = tf.estimator.Estimator(model, folder, config)
estimator.train(data(2), hooks=own)
print(estimator.evaluate(data(1), hooks=own)["loss"])
predictions = np.stack([row["logits"] for row in estimator.predict(data(1), hooks=own)])
training = tf.estimator.TrainSpec(data(None), max_steps=20, hooks=own)
evaluation = tf.estimator.EvalSpec(data(1), start_delay_secs=0, throttle_secs=0, hooks=own)
tf.estimator.train_and_evaluate(estimator, training, evaluation)
values = [estimator.get_variable_value(name) for name in sorted(estimator.get_variable_names())]
print(hashlib.sha256(b"".join(value.tobytes() for value in values)).hexdigest())
graphs = sorted(name for name in os.listdir(folder) if name.endswith(".meta"))
for name in graphs:
    # Nothing is added to the graph, neither operations nor collections.
    with open(os.path.join(folder, name), "rb") as file:
        stored = MetaGraphDef.FromString(file.read())
    print(name, len(stored.graph_def.node), sorted(stored.collection_def))
print(len(SEEN["train"]), len(SEEN["eval"]))
if own:
    own[0].close()
np.savez(sys.argv[1], predictions=predictions, **SEEN)
