"""Training loops with GradientTape: eager, compiled, nested, with several tapes, with random numbers."""

import numpy as np
import tensorflow as tf
from tape_loop import (
    batch,
    dense,
    expect,
    expect_gradients,
    expect_weights,
    layers,
    main,
    mse,
    next_step,
    rng,
    show,
    train_step,
)


def forms():
    for kind in ("eager", "graph", "jit"):
        train_forms(kind)


def train_forms(kind):
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
        optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
        return {"loss": loss, "nested": [(tf.shape(x), None)], "gradients": gradients}

    if kind != "eager":
        step = tf.function(step, jit_compile=kind == "jit")
    for _ in range(4):
        x, y = tf.constant(rng.integers(0, 20, (16, 10))), tf.constant(rng.integers(0, 3, 16))
        expect_weights(*model.trainable_variables)
        if kind != "eager":
            # Only a function that was traced shows the statistics that it uses.
            expect_weights(model.layers[2].moving_mean, model.layers[2].moving_variance)
        found = step(x, y)
        expect("loss", found["loss"])
        expect_gradients(model.trainable_variables, found["gradients"])
        next_step()
    counts = [len(traced)] if kind == "eager" else [len(traced), step.experimental_get_tracing_count()]
    show(f"{kind}", model.variables, *counts)


def byhand():
    # Nothing is returned: what was computed is known from NumPy alone.
    for number, wrap in enumerate((lambda step: step, tf.function, tf.function(jit_compile=True))):
        train_byhand(number, wrap)


def train_byhand(number, wrap):
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
        train_random(jit)


def train_random(jit):
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
        train_nested(jit)


def train_nested(jit):
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
        train_gan(kind)


def train_gan(kind):
    maker, critic = dense(5, 5), dense(1, 5)
    optimizers = [tf.keras.optimizers.Adam(0.01), tf.keras.optimizers.Adam(0.01)]
    for optimizer, model in zip(optimizers, (maker, critic), strict=True):
        optimizer.build(model.trainable_variables)

    def update(which, tape, loss):
        variables = (maker, critic)[which].trainable_variables
        gradients = tape.gradient(loss, variables)
        optimizers[which].apply_gradients(zip(gradients, variables, strict=True))
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
            losses, gradients = zip(first, of_maker(noise), strict=True)
        expect("loss", losses[0])
        expect("loss_1", losses[1])
        expect_gradients(critic.trainable_variables, gradients[0])
        expect_gradients(maker.trainable_variables, gradients[1])
        next_step()
    show("gan", [*maker.variables, *critic.variables])


def higher():
    # Gradients with respect to inputs are no step of their own; those of a variable, taken twice, are one.
    for number, wrap in enumerate((lambda step: step, tf.function)):
        train_higher(number, wrap)


def train_higher(number, wrap):
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
    for number, wrap in enumerate((lambda step: step, tf.function)):
        train_recomputed(number, wrap)


def train_recomputed(number, wrap):
    names = f"hidden{number}", f"last{number}"
    first, second = (
        tf.Variable(rng.normal(size=(5, n)).astype("f"), name=name) for n, name in zip((5, 3), names, strict=True)
    )
    hidden = tf.recompute_grad(lambda x: tf.tanh(x @ first))

    @wrap
    def step(x, y):
        with tf.GradientTape() as tape:
            loss = mse(hidden(x) @ second, y)
        gradients = tape.gradient(loss, [first, second])
        for variable, gradient in zip((first, second), gradients, strict=True):
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
        train_scaled(wrap)


def train_scaled(wrap):
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
        optimizer.apply_gradients(zip(gradients if new else unscaled, model.trainable_variables, strict=True))
        return loss, unscaled

    for _ in range(3):
        expect_weights(*model.trainable_variables)
        loss, gradients = step(*batch())
        expect("loss", loss)
        expect_gradients(model.trainable_variables, gradients, sign="~")
        next_step()
    show("scaled", model.variables)


main(globals())
