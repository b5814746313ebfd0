"""Training loops with GradientTape that know nothing of the agent; each writes down what a saved step has to hold.

usage: python tape_programs.py EXPECTED.npz PROGRAM...

A key of the file is "<step>|<name>", or "<step>~<name>" for what NumPy computed and rounds otherwise.
"""

import hashlib
import sys

import numpy as np
import tensorflow as tf

EXPECTED, STEP = {}, 0
rng = np.random.default_rng(0)
layers = tf.keras.layers


def name_of(variable):
    return getattr(variable, "path", None) or variable.name.split(":")[0]


def expect(name, value, sign="|"):
    EXPECTED[f"{STEP}{sign}{name}"] = np.array(tf.convert_to_tensor(value))


def expect_weights(*variables):
    for variable in variables:
        expect(f"weights/{name_of(variable)}:0", variable)


def expect_gradients(variables, gradients, suffix="", sign="|"):
    for variable, gradient in zip(variables, gradients):
        expect(f"gradients/{name_of(variable)}Grad{suffix}", gradient, sign)


def next_step():
    global STEP
    STEP += 1


def show(program, variables, *more):
    text = b"".join(np.asarray(variable.numpy()).tobytes() for variable in variables)
    print(program, hashlib.sha256(text).hexdigest(), *more)


def dense(units=3, inputs=5):
    model = tf.keras.Sequential([layers.Dense(8, activation="tanh"), layers.Dense(units)])
    model.build((None, inputs))
    return model


def batch(rows=16, inputs=5):
    draw = rng.normal(size=(rows, inputs)), rng.normal(size=(rows, 3))
    return tuple(tf.constant(part, tf.float32) for part in draw)


def mse(a, b):
    return tf.reduce_mean((a - b) ** 2)


def train_step(model, optimizer, **options):
    @tf.function(**options)
    def step(x, y):
        with tf.GradientTape() as tape:
            loss = mse(model(x), y)
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables))
        return loss, gradients

    return step


def forms():
    for kind in ("eager", "graph", "jit"):
        model = tf.keras.Sequential(
            [
                layers.Embedding(20, 6),
                layers.Conv1D(8, 3, padding="same", activation="relu"),
                layers.BatchNormalization(),
                layers.Dropout(0.3),
                layers.GlobalAveragePooling1D(),
                layers.Dense(3),
            ]
        )
        model.build((None, 10))
        optimizer = tf.keras.optimizers.Adam(1e-2)
        loss_of = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
        traced = []

        def step(x, y):
            traced.append(1)
            with tf.GradientTape() as tape:
                loss = loss_of(y, model(x, training=True))
            gradients = tape.gradient(loss, model.trainable_variables)
            optimizer.apply_gradients(zip(gradients, model.trainable_variables))
            return {"loss": loss, "nested": [(tf.shape(x), None)], "gradients": gradients}

        if kind != "eager":
            step = tf.function(step, jit_compile=kind == "jit")
        for _ in range(4):
            x, y = tf.constant(rng.integers(0, 20, (16, 10))), tf.constant(rng.integers(0, 3, 16))
            expect_weights(*model.trainable_variables)
            found = step(x, y)
            expect("loss", found["loss"])
            expect_gradients(model.trainable_variables, found["gradients"])
            next_step()
        counts = [len(traced)] if kind == "eager" else [len(traced), step.experimental_get_tracing_count()]
        show(f"{kind}", model.variables, *counts)


def byhand():
    # Nothing is returned: what was computed is known from NumPy alone.
    for number, wrap in enumerate((lambda step: step, tf.function, tf.function(jit_compile=True))):
        w = tf.Variable(rng.normal(size=(5, 3)).astype("f"), name=f"byhand{number}")
        table = tf.Variable(rng.normal(size=(9, 4)).astype("f"), name=f"table{number}")

        @wrap
        def step(x, y, rows):
            with tf.GradientTape(persistent=True) as tape:
                loss = mse(x @ w, y)
                other = tf.reduce_mean(tf.gather(table, rows) ** 4)
            gradient, sparse = tape.gradient(loss, w), tape.gradient(other, table)
            del tape
            w.assign_sub(0.1 * gradient)
            table.assign_sub(0.1 * tf.convert_to_tensor(sparse))

        for count in (4, 6, 4):
            (x, y), rows = batch(), rng.integers(0, 9, count)
            expect_weights(w, table)
            away = x.numpy() @ w.numpy() - y.numpy()
            expect("loss", (away**2).mean(), "~")
            expect_gradients([w], [2 * x.numpy().T @ away / away.size], sign="~")
            picked = table.numpy()[rows]
            expect("loss_1", (picked**4).mean(), "~")
            whole = np.zeros((9, 4), "f")
            np.add.at(whole, rows, 4 * picked**3 / picked.size)
            expect_gradients([table], [whole], sign="~")
            step(x, y, tf.constant(rows))
            next_step()
        show("byhand", [w, table])


def random():
    for jit in (None, True):
        w = tf.Variable(rng.normal(size=(5, 3)).astype("f"), name=f"random_{jit}")
        generator = tf.random.Generator.from_seed(3)

        @tf.function(jit_compile=jit)
        def step(x, y):
            with tf.GradientTape() as tape:
                noise = tf.random.normal([3]) + generator.normal([3])
                loss = mse(tf.nn.dropout(x, 0.5) @ w + noise, y)
            gradient = tape.gradient(loss, w)
            w.assign_sub(0.1 * gradient)
            return loss, gradient

        losses = []
        for _ in range(5):
            expect_weights(w)
            loss, gradient = step(*batch())
            losses.append(float(loss))
            expect("loss", loss)
            expect_gradients([w], [gradient])
            next_step()
        show("random", [w], *([] if jit else losses))


def nested():
    for jit in (None, True):
        model, optimizer = dense(), tf.keras.optimizers.SGD(0.1)
        inner = train_step(model, optimizer, jit_compile=jit)
        middle = tf.function(lambda x, y: inner(x, y))

        @tf.function
        def outer(x, y):
            return {"twice": [inner(x, y), middle(x * 2, y)]}

        for _ in range(3):
            expect_weights(*model.trainable_variables)
            for number, (loss, gradients) in enumerate(outer(*batch())["twice"]):
                expect("loss_1" if number else "loss", loss)
                expect_gradients(model.trainable_variables, gradients, "_1" if number else "")
            next_step()
        counts = [function.experimental_get_tracing_count() for function in (outer, middle, inner)]
        show("nested", model.variables, *counts)


def shapes():
    model, optimizer = dense(), tf.keras.optimizers.Adam(0.1)
    optimizer.build(model.trainable_variables)
    signature = [tf.TensorSpec([None, 5]), tf.TensorSpec([None, 3])]
    steps = [
        train_step(model, optimizer, input_signature=signature),
        train_step(model, optimizer, reduce_retracing=True),
    ]
    concrete = steps[0].get_concrete_function()
    for rows in (4, 5, 6, 7):
        for step in (*steps, concrete):
            expect_weights(*model.trainable_variables)
            loss, gradients = step(*batch(rows))
            expect("loss", loss)
            expect_gradients(model.trainable_variables, gradients)
            next_step()
    show("shapes", model.variables, *(step.experimental_get_tracing_count() for step in steps))


def gan():
    for kind in ("one function", "eager", "one after the other", "two functions"):
        maker, critic = dense(5, 5), dense(1, 5)
        optimizers = [tf.keras.optimizers.Adam(0.01), tf.keras.optimizers.Adam(0.01)]
        for optimizer, model in zip(optimizers, (maker, critic)):
            optimizer.build(model.trainable_variables)

        def update(which, tape, loss):
            variables = (maker, critic)[which].trainable_variables
            gradients = tape.gradient(loss, variables)
            optimizers[which].apply_gradients(zip(gradients, variables))
            return gradients

        def both(noise, real):
            with tf.GradientTape() as tape_of_critic, tf.GradientTape() as tape_of_maker:
                made = maker(noise)
                right, wrong = mse(critic(real), 1.0), mse(critic(made), 0.0)
                losses = right + wrong, mse(critic(made), 1.0)
            gradients = update(1, tape_of_critic, losses[0]), update(0, tape_of_maker, losses[1])
            return losses, gradients

        def of_critic(noise, real):
            with tf.GradientTape() as tape:
                loss = mse(critic(real), 1.0) + mse(critic(maker(noise)), 0.0)
            return loss, update(1, tape, loss)

        def of_maker(noise):
            with tf.GradientTape() as tape:
                loss = mse(critic(maker(noise)), 1.0)
            return loss, update(0, tape, loss)

        if kind == "one function":
            both = tf.function(both)
        if kind == "two functions":
            of_critic, of_maker = tf.function(of_critic), tf.function(of_maker)
        for _ in range(3):
            noise, real = batch()[0], batch()[0]
            expect_weights(*critic.trainable_variables)
            if kind in ("eager", "one function"):
                expect_weights(*maker.trainable_variables)
                losses, gradients = both(noise, real)
            else:
                first = of_critic(noise, real)
                expect_weights(*maker.trainable_variables)
                losses, gradients = zip(first, of_maker(noise))
            expect("loss", losses[0])
            expect("loss_1", losses[1])
            expect_gradients(critic.trainable_variables, gradients[0])
            expect_gradients(maker.trainable_variables, gradients[1])
            next_step()
        show("gan", [*maker.variables, *critic.variables])


def higher():
    # Gradients with respect to inputs are no step of their own; those of a variable, taken twice, are one.
    for number, wrap in enumerate((lambda step: step, tf.function)):
        w = tf.Variable(rng.normal(size=(5, 3)).astype("f"), name=f"higher{number}")

        @wrap
        def step(x, y):
            with tf.GradientTape() as outer:
                with tf.GradientTape() as middle:
                    with tf.GradientTape() as inner:
                        inner.watch(x)
                        total = tf.reduce_sum(tf.tanh(x @ w))
                    loss = mse(tf.tanh(x @ w), y) + tf.reduce_mean(inner.gradient(total, x) ** 2)
                first = middle.gradient(loss, w)
                size = tf.reduce_sum(first**2)
            second = outer.gradient(size, w)
            w.assign_sub(0.1 * first + 0.01 * second)
            return loss, size, first, second

        for _ in range(3):
            expect_weights(w)
            loss, size, first, second = step(*batch())
            expect("loss", loss)
            expect("loss_1", size)
            expect_gradients([w], [first])
            expect_gradients([w], [second], "_1")
            next_step()
        show("higher", [w])


def recomputed():
    # What is recomputed on the way to a gradient asks a tape of its own.
    first, second = (tf.Variable(rng.normal(size=(5, n)).astype("f"), name=f"recomputed{n}") for n in (5, 3))
    hidden = tf.recompute_grad(lambda x: tf.tanh(x @ first))
    for wrap in (lambda step: step, tf.function):

        @wrap
        def step(x, y):
            with tf.GradientTape() as tape:
                loss = mse(hidden(x) @ second, y)
            gradients = tape.gradient(loss, [first, second])
            for variable, gradient in zip((first, second), gradients):
                variable.assign_sub(0.1 * gradient)
            return loss, gradients

        for _ in range(2):
            expect_weights(first, second)
            loss, gradients = step(*batch())
            expect("loss", loss)
            expect_gradients([first, second], gradients)
            next_step()
    show("recomputed", [first, second])


def scaled():
    for wrap in (lambda step: step, tf.function):
        model = dense()
        optimizer = tf.keras.mixed_precision.LossScaleOptimizer(tf.keras.optimizers.SGD(0.1))

        @wrap
        def step(x, y):
            with tf.GradientTape() as tape:
                loss = mse(model(x), y)
                new = hasattr(optimizer, "scale_loss")
                times = optimizer.scale_loss(loss) if new else optimizer.get_scaled_loss(loss)
            gradients = tape.gradient(times, model.trainable_variables)
            # A scale is a power of two.
            unscaled = [gradient * (loss / times) for gradient in gradients]
            optimizer.apply_gradients(zip(gradients if new else unscaled, model.trainable_variables))
            return loss, unscaled

        for _ in range(3):
            expect_weights(*model.trainable_variables)
            loss, gradients = step(*batch())
            expect("loss", loss)
            expect_gradients(model.trainable_variables, gradients, sign="~")
            next_step()
        show("scaled", model.variables)


def replicas():
    cpu = tf.config.list_physical_devices("CPU")[0]
    tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
    one_sum = tf.distribute.ReductionToOneDevice()
    strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"], cross_device_ops=one_sum)
    for kind in ("function", "eager", "function inside"):
        with strategy.scope():
            model, optimizer = dense(), tf.keras.optimizers.SGD(0.1)

        def body(x, y):
            with tf.GradientTape() as tape:
                loss = mse(model(x), y)
            gradients = tape.gradient(loss, model.trainable_variables)
            optimizer.apply_gradients(zip(gradients, model.trainable_variables))
            return loss, gradients

        inside = tf.function(body) if kind == "function inside" else body
        step = lambda *parts: strategy.run(inside, parts)  # noqa: B023, E731
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


for program in sys.argv[2:]:
    tf.keras.utils.set_random_seed(3)
    globals()[program]()
np.savez(sys.argv[1], **EXPECTED)
