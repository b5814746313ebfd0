"""Graphs of tf.compat.v1 trained in monitored sessions that know nothing of the agent.

usage: python session_programs.py EXPECTED.npz PROGRAM...

A key of the file is "<step>|<collection>|<name>": what a saved step has to hold in that collection.
"""

import hashlib
import sys

import numpy as np
import tensorflow as tf

v1 = tf.compat.v1
EXPECTED, STEP = {}, 0
rng = np.random.default_rng(0)


def expect(collection, values):
    for name, value in values.items():
        EXPECTED[f"{STEP}|{collection}|{name}"] = np.array(value)


def next_step():
    global STEP
    STEP += 1


def build(scope, optimizer, resource=True):
    """A graph with an embedding, whose gradient has rows, dropout, and two layers; what a run needs of it."""
    v1.set_random_seed(7)
    with v1.variable_scope(scope):
        x = v1.placeholder(tf.float32, [None, 6], "x")
        y = v1.placeholder(tf.int32, [None], "y")
        ids = v1.placeholder(tf.int32, [None, 4], "ids")
        shapes = {"emb": [12, 5], "w1": [11, 8], "bias1": [8], "w2": [8, 3]}
        variables = [v1.get_variable(name, shape, use_resource=resource) for name, shape in shapes.items()]
        emb, w1, bias, w2 = variables
        known = tf.concat([x, tf.reduce_sum(tf.nn.embedding_lookup(emb, ids), 1)], 1)
        hidden = tf.nn.dropout(tf.nn.relu(tf.matmul(known, w1) + bias), rate=0.2)
        loss = v1.losses.sparse_softmax_cross_entropy(y, hidden @ w2)
    steps = v1.train.get_or_create_global_step()
    if optimizer is None:
        return (x, y, ids), variables, loss, [], None, steps
    pairs = optimizer.compute_gradients(loss, variables)
    return (x, y, ids), variables, loss, pairs, optimizer.apply_gradients(pairs, steps), steps


def feed(places, rows=16):
    x, y, ids = places
    return {x: rng.normal(size=(rows, 6)), y: rng.integers(0, 3, rows), ids: rng.integers(0, 12, (rows, 4))}


def dense_gradients(pairs):
    return {
        (pair[0].values if isinstance(pair[0], tf.IndexedSlices) else pair[0]).name: tf.convert_to_tensor(pair[0])
        for pair in pairs
    }


def show(program, values):
    operations = len(v1.get_default_graph().get_operations())
    print(program, hashlib.sha256(b"".join(value.tobytes() for value in values)).hexdigest(), operations)


def train(scope, optimizer, make_session, resource=True):
    with tf.Graph().as_default():
        places, variables, loss, pairs, update, steps = build(scope, optimizer, resource)
        gradients = dense_gradients(pairs)
        slots = {v.name: v for v in optimizer.variables()}
        weights = {v.name: v for v in variables if "bias" not in v.name}
        biases = {v.name: v for v in variables if "bias" in v.name}
        with make_session() as session:
            for _ in range(4):
                # What is looked up between the steps is no step.
                for collection, found in (("weights", weights), ("biases", biases), ("optimizer_variables", slots)):
                    expect(collection, session.run(found))
                fetched = session.run({"update": update, "more": [(loss,), gradients]}, feed(places))
                expect("losses", {loss.name: fetched["more"][0][0]})
                expect("gradients", fetched["more"][1])
                session.run(steps)
                next_step()
            show(scope, session.run(variables))


def adam():
    train("adam", v1.train.AdamOptimizer(0.05), v1.train.MonitoredTrainingSession)


def momentum():
    # Variables by reference, and the session without recovery.
    train("momentum", v1.train.MomentumOptimizer(0.05, 0.9), v1.train.SingularMonitoredSession, resource=False)


def clipped():
    # The program takes gradients by itself: saved are those that it applies. Nobody but us fetches the loss.
    with tf.Graph().as_default():
        optimizer = v1.train.GradientDescentOptimizer(0.1)
        places, variables, loss, _, _, _ = build("clipped", None)
        clipped, _ = tf.clip_by_global_norm(tf.gradients(loss, variables), 0.5)
        pairs = list(zip(clipped, variables, strict=True))
        update = optimizer.apply_gradients(iter(pairs))
        with v1.train.MonitoredSession() as session:
            for _ in range(3):
                fed = feed(places)
                expect("weights", session.run({v.name: v for v in variables if "bias" not in v.name}))
                expect("biases", session.run({v.name: v for v in variables if "bias" in v.name}))
                session.run(update, fed)
                next_step()
            show("clipped", session.run(variables))


def data():
    # The run at the end of the data fails, and is no step. A value from within the graph is fed, so that what stands
    # behind it must not be touched.
    with tf.Graph().as_default():
        numbers = tf.data.Dataset.from_tensor_slices(rng.normal(size=(5, 3)).astype("f"))
        row = v1.data.make_one_shot_iterator(numbers).get_next()
        w = v1.get_variable("data/w", [3], initializer=v1.ones_initializer())
        never = v1.placeholder(tf.float32, [], "never")
        factor = never * 2.0
        loss = tf.reduce_sum((w * row) ** 2, name="squares") * factor
        pairs = v1.train.GradientDescentOptimizer(0.1).compute_gradients(loss, [w])
        update = v1.train.GradientDescentOptimizer(0.1).apply_gradients(pairs)
        with v1.train.MonitoredSession() as session:
            last = np.ones(3, "f")
            while not session.should_stop():
                expect("weights", {w.name: last})
                gradient, _, value = session.run([pairs[0][0], update, loss], {factor: 3.0})
                expect("gradients", {pairs[0][0].name: gradient})
                expect("losses", {loss.name: value})
                last = last - np.float32(0.1) * gradient
                next_step()
        # The session leaves with the error of the data; nothing was due then.
        for key in [key for key in EXPECTED if key.startswith(f"{STEP}|")]:
            del EXPECTED[key]
        show("data", [last])


for program in sys.argv[2:]:
    globals()[program]()
np.savez(sys.argv[1], **EXPECTED)
