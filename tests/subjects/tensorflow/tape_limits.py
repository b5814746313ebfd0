"""Training loops with GradientTape of which not everything can be saved, and functions that are let go."""

import tensorflow as tf
from tape_loop import (
    batch,
    dense,
    expect,
    expect_gradients,
    expect_weights,
    main,
    mse,
    name_of,
    next_step,
    show,
    train_step,
)


def replicas():
    cpu = tf.config.list_physical_devices("CPU")[0]
    tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
    one_sum = tf.distribute.ReductionToOneDevice()
    strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"], cross_device_ops=one_sum)
    for kind in ("function", "eager", "function inside"):
        train_replicas(kind, strategy)


def train_replicas(kind, strategy):
    with strategy.scope():
        model, optimizer = dense(), tf.keras.optimizers.SGD(0.1)

    def body(x, y):
        with tf.GradientTape() as tape:
            loss = mse(model(x), y)
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
        return loss, gradients

    inside = tf.function(body) if kind == "function inside" else body
    step = lambda *parts: strategy.run(inside, parts)  # noqa: E731
    step = tf.function(step) if kind == "function" else step
    for _ in range(2):
        data = tf.data.Dataset.from_tensor_slices(batch()).batch(16)
        for x, y in strategy.experimental_distribute_dataset(data):
            for variable in model.trainable_variables:
                expect(f"weights/{name_of(variable).removesuffix('/replica_0')}:0", variable.numpy())
            loss, gradients = step(x, y)
            expect("loss", strategy.experimental_local_results(loss)[0])
            first = [strategy.experimental_local_results(gradient)[0] for gradient in gradients]
            expect_gradients(model.trainable_variables, first)
            next_step()
    show("replicas", model.variables)


def impossible():
    model, optimizer = dense(), tf.keras.optimizers.SGD(0.1)
    inner = train_step(model, optimizer)

    @tf.function
    def epoch(data):
        for x, y in data:
            inner(x, y)

    epoch(tf.data.Dataset.from_tensor_slices(batch(64)).batch(16))
    w = tf.Variable(tf.ones([5, 3]), name="w")

    @tf.function
    def sometimes(x, y):
        if tf.reduce_sum(x) > -1e9:
            with tf.GradientTape() as tape:
                loss = mse(x @ w, y)
            w.assign_sub(tape.gradient(loss, w))

    sometimes(*batch())

    @tf.function
    def returns_more(x, y):
        with tf.GradientTape() as tape:
            loss = mse(x @ w, y)
        w.assign_sub(tape.gradient(loss, w))
        return tf.TensorArray(tf.float32, 1).write(0, loss)

    expect_weights(w)
    returns_more(*batch())
    next_step()
    with tf.GradientTape() as outer:
        expect_weights(w)
        loss, _ = inner(*batch())
        scaled = loss + tf.reduce_sum(w)
    expect("loss", scaled)
    expect_gradients([w], [outer.gradient(scaled, w)])
    next_step()
    show("impossible", [*model.variables, w])


def gone():
    import gc
    import weakref

    from tensorflow.python.eager import context

    model, optimizer = dense(), tf.keras.optimizers.SGD(0.1)
    optimizer.build(model.trainable_variables)
    gc.collect()
    gc.disable()

    def train():
        step = train_step(model, optimizer)
        x, y = batch()
        for _ in range(2):
            step(x, y)
        return weakref.ref(step.get_concrete_function(x, y))

    reference = train()
    at_once = reference() is None
    gc.enable()
    gc.collect()
    left = [name for name in context.context().list_function_names() if "smd_agent" in str(name)]
    print("gone", at_once, reference() is None, left)


main(globals())
