"""Canned estimators that are trained, evaluated and asked, and trained and evaluated in turn; the agent is not in it.

usage: python canned_estimators.py KIND FOLDER
"""

import hashlib
import sys

import numpy as np
import tensorflow as tf

tf.get_logger().setLevel("ERROR")
v1 = tf.compat.v1
rows = np.random.default_rng(0).normal(size=(64, 4)).astype("f")
classes = (rows[:, 0] > 0).astype("i4") + (rows[:, 1] > 0)
columns = [tf.feature_column.numeric_column(f"f{i}") for i in range(4)]
# One that has rows for gradients.
words = tf.feature_column.categorical_column_with_hash_bucket("word", 10)
deep = [*columns, tf.feature_column.embedding_column(words, 3)]
kind, folder = sys.argv[1:]
config = tf.estimator.RunConfig(model_dir=folder, tf_random_seed=1, save_checkpoints_steps=6, log_step_count_steps=5)
schedule = tf.keras.optimizers.schedules.ExponentialDecay(0.05, 4, 0.9)


def model(features, labels, mode):
    first, last = (tf.keras.initializers.GlorotUniform(seed=seed) for seed in (1, 2))
    dense = tf.keras.layers.Dense
    net = tf.keras.Sequential([dense(8, "relu", kernel_initializer=first), dense(1, kernel_initializer=last)])
    values = tf.stack([features[f"f{i}"] for i in range(4)], 1)
    if mode == "infer":
        return tf.estimator.EstimatorSpec(mode, predictions={"predictions": net(values)})
    optimizer = tf.keras.optimizers.legacy.SGD(0.05, momentum=0.9)
    optimizer.iterations = v1.train.get_or_create_global_step()
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean((net(values, training=mode == "train") - labels[:, None]) ** 2)
    found = tape.gradient(loss, net.trainable_variables)
    update = optimizer.apply_gradients(zip(found, net.trainable_variables, strict=True))
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=update)


KINDS = {
    "classifier": lambda: tf.estimator.DNNClassifier([8, 6], deep, n_classes=3, optimizer="Adam", config=config),
    "scheduled": lambda: tf.estimator.DNNClassifier(
        [8], columns, n_classes=3, optimizer=lambda: tf.keras.optimizers.legacy.Adam(schedule), config=config
    ),
    "regressor": lambda: tf.estimator.DNNRegressor([8], deep, config=config),
    "linear": lambda: tf.estimator.LinearClassifier([*columns, words], n_classes=3, config=config),
    "wide_and_deep": lambda: tf.estimator.DNNLinearCombinedRegressor(
        linear_feature_columns=[words], dnn_feature_columns=columns, dnn_hidden_units=[8], config=config
    ),
    "old_classifier": lambda: v1.estimator.DNNClassifier(
        [8], deep, n_classes=3, optimizer=v1.train.AdagradOptimizer(0.05), config=config
    ),
    "old_wide_and_deep": lambda: v1.estimator.DNNLinearCombinedRegressor(
        linear_feature_columns=[words], dnn_feature_columns=columns, dnn_hidden_units=[8], config=config
    ),
    "own_with_a_tape": lambda: tf.estimator.Estimator(model, config=config),
}
labels = classes.astype("f") if kind.endswith(("regressor", "deep", "tape")) else classes


def data(repeat):
    features = {f"f{i}": rows[:, i] for i in range(4)}
    features["word"] = np.array(["abcdefgh"[i % 8] for i in range(64)])
    return lambda: tf.data.Dataset.from_tensor_slices((features, labels)).repeat(repeat).batch(16)


estimator = KINDS[kind]()
estimator.train(data(2))
print("loss", estimator.evaluate(data(1))["loss"])
for row in estimator.predict(data(1)):
    print({name: np.asarray(value).ravel()[:3].tolist() for name, value in row.items()})
evaluation = tf.estimator.EvalSpec(data(1), start_delay_secs=0, throttle_secs=0)
tf.estimator.train_and_evaluate(estimator, tf.estimator.TrainSpec(data(None), max_steps=20), evaluation)
values = [estimator.get_variable_value(name) for name in sorted(estimator.get_variable_names())]
print(hashlib.sha256(b"".join(np.asarray(value).tobytes() for value in values)).hexdigest())
