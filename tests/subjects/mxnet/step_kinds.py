"""Kinds of trainings, each as an author writes such a loop and counts its iterations; they know nothing of the agent.

usage: python step_kinds.py all|KIND[,KIND...] FOLDER [NOTES.npz]
"""

import random
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "shared"))

import mxnet as mx
import numpy as np
from acting_kinds import KINDS as ACTING
from adversary_kinds import KINDS as ADVERSARIES
from author import LENGTH, work
from learned import adam, gradients, perceptron, weights
from mxnet import autograd, gluon, nd
from mxnet.gluon import nn


def classifier(hidden=4):
    return perceptron("net_", 5, hidden, 3)


def batch():
    return nd.random.normal(shape=(6, 5)), nd.random.randint(0, 3, shape=(6,)).astype("float32")


def train(author, net, trainer, iterations):
    """Train a classifier."""
    loss_fn = gluon.loss.SoftmaxCrossEntropyLoss()
    for _ in range(iterations):
        x, y = batch()
        with autograd.record():
            loss = loss_fn(net(x), y)
        author.loss(loss.asnumpy())
        loss.backward()
        author.gradients(gradients(net))
        trainer.step(6)
        author.iteration()


def accuracy(author, net, batches):
    """Evaluate a classifier."""
    metric = mx.metric.Accuracy()
    for _ in range(batches):
        x, y = batch()
        metric.update(y, net(x))
        author.evaluated()
    return metric.get()[1]


def neural_ode(author):
    flow = perceptron("flow_", 3, 8, 2)
    trainer = adam(flow)
    loss_fn = gluon.loss.L2Loss()
    for _ in range(LENGTH):
        begin = nd.random.normal(shape=(6, 2))
        with autograd.record():
            z = begin
            for time in range(10):
                z = z + flow(nd.concat(z, nd.full((6, 1), time / 10), dim=1)) / 10
            loss = loss_fn(z, begin.flip(axis=1))
        author.loss(loss.asnumpy())
        loss.backward()
        author.gradients(gradients(flow))
        trainer.step(6)
        author.iteration()
    return weights(flow)


def accumulation(author):
    net = classifier()
    for parameter in net.collect_params().values():
        parameter.grad_req = "add"
    trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.1})
    loss_fn = gluon.loss.SoftmaxCrossEntropyLoss()
    for number in range(4 * LENGTH):
        x, y = batch()
        with autograd.record():
            loss = loss_fn(net(x), y)
        author.loss(loss.asnumpy())
        loss.backward()
        if (number + 1) % 4 == 0:
            author.gradients(gradients(net))
            trainer.step(4 * 6)
            for parameter in net.collect_params().values():
                parameter.zero_grad()
            author.iteration()
    return weights(net)


def two_towers(author):
    users, items = nn.HybridSequential(prefix="users_"), nn.HybridSequential(prefix="items_")
    for tower, rows in ((users, 9), (items, 7)):
        with tower.name_scope():
            tower.add(nn.Embedding(rows, 6), nn.Dense(4, in_units=6))
        tower.initialize(mx.init.Xavier())
    trainer = adam(users, items)
    loss_fn = gluon.loss.SoftmaxCrossEntropyLoss()
    for _ in range(LENGTH):
        user, item = nd.random.randint(0, 9, shape=(6,)), nd.random.randint(0, 7, shape=(6,))
        with autograd.record():
            scores = nd.dot(nd.L2Normalization(users(user)), nd.L2Normalization(items(item)), transpose_b=True)
            loss = loss_fn(scores / 0.1, nd.arange(6))
        author.loss(loss.asnumpy())
        loss.backward()
        author.gradients(gradients(users, items))
        trainer.step(6)
        author.iteration()
    return weights(users, items)


def models_in_turns(author):
    nets = [perceptron(prefix, 5, 4, 3) for prefix in ("world_", "judge_", "player_")]
    models = [(net, adam(net)) for net in nets]
    loss_fn = gluon.loss.SoftmaxCrossEntropyLoss()
    for _ in range(LENGTH):
        found = {}
        for net, trainer in models:
            x, y = batch()
            with autograd.record():
                loss = loss_fn(net(x), y)
            author.loss(loss.asnumpy())
            loss.backward()
            found.update(gradients(net))
            trainer.step(6)
        author.gradients(found)
        author.iteration()
    return weights(*nets)


def distillation(author):
    teacher = perceptron("teacher_", 5, 16, 3)
    teacher.collect_params().setattr("grad_req", "null")
    return distilled(author, teacher, LENGTH)


def distillation_of_a_teacher_trained_before(author):
    teacher = perceptron("teacher_", 5, 16, 3)
    train(author, teacher, adam(teacher), 12)
    accuracy(author, teacher, 3)
    return distilled(author, teacher, LENGTH)


def distilled(author, teacher, iterations):
    """Train a student."""
    student = classifier()
    trainer = adam(student)
    hard_loss, soft_loss = gluon.loss.SoftmaxCrossEntropyLoss(), gluon.loss.KLDivLoss(from_logits=False)
    for _ in range(iterations):
        x, y = batch()
        soft = nd.softmax(teacher(x) / 2)
        with autograd.record():
            out = student(x)
            hard, by_teacher = hard_loss(out, y), soft_loss(out / 2, soft)
            loss = 0.25 * hard + 3 * by_teacher
        for part in (hard, by_teacher, loss):
            author.loss(part.asnumpy())
        loss.backward()
        author.gradients(gradients(student))
        trainer.step(6)
        author.iteration()
    accuracy(author, student, 3)
    return weights(teacher, student)


def copy_weights(source, target):
    for p, q in zip(source.collect_params().values(), target.collect_params().values(), strict=True):
        q.set_data(p.data())


def reptile(author):
    net = classifier()
    for k in range(5):
        fast = classifier()
        copy_weights(net, fast)
        train(author, fast, gluon.Trainer(fast.collect_params(), "sgd", {"learning_rate": 0.1}), 5)
        for p, q in zip(net.collect_params().values(), fast.collect_params().values(), strict=True):
            p.set_data(p.data() + (1 - k / 5) * (q.data() - p.data()))
    return weights(net)


def k_fold(author):
    scores = []
    for _ in range(3):
        net = classifier()
        trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.1, "momentum": 0.9})
        for _ in range(3):
            train(author, net, trainer, 3)
            scores.append(accuracy(author, net, 2))
    return [np.array(scores), *weights(net)]


def search(author):
    """Hyperparameters are tried one after the other, in one process."""

    def trial(rate, hidden):
        net = classifier(hidden)
        trainer = adam(net, rate=rate)
        for _ in range(3):
            train(author, net, trainer, 3)
            trainer.set_learning_rate(trainer.learning_rate / 10)
        return accuracy(author, net, 4), weights(net)

    tried = [trial(rate, hidden) for rate in (1e-3, 1e-1) for hidden in (4, 8)]
    score, best = max(tried, key=lambda found: found[0])
    return [np.array(score), *best]


def resume(author):
    """Go on from a checkpoint, in the same process."""
    net = classifier()
    trainer = adam(net)
    train(author, net, trainer, 10)
    files = [str(author.folder / name) for name in ("net.params", "trainer.states")]
    net.save_parameters(files[0])
    trainer.save_states(files[1])
    net = classifier()
    trainer = adam(net)
    net.load_parameters(files[0])
    trainer.load_states(files[1])
    train(author, net, trainer, LENGTH)
    return weights(net)


def resume_in_a_second_process(author):
    """Go on from a checkpoint if there is one, and leave one behind."""
    net = classifier()
    trainer = adam(net)
    files = [author.folder / name for name in ("last.params", "last.states", "iteration")]
    if files[0].exists():
        net.load_parameters(str(files[0]))
        trainer.load_states(str(files[1]))
        author.iterations = int(files[2].read_text())
    train(author, net, trainer, LENGTH)
    net.save_parameters(str(files[0]))
    trainer.save_states(str(files[1]))
    files[2].write_text(str(author.iterations))
    return weights(net)


KINDS = {
    kind.__name__: kind
    for kind in (
        *ADVERSARIES,
        *ACTING,
        neural_ode,
        accumulation,
        two_towers,
        models_in_turns,
        distillation,
        distillation_of_a_teacher_trained_before,
        reptile,
        k_fold,
        search,
        resume,
        resume_in_a_second_process,
    )
}


def seed():
    """Begin anew."""
    mx.random.seed(3)
    random.seed(3)
    np.random.seed(3)
    return lambda: [nd.random.uniform(shape=(3,)).asnumpy(), np.random.rand(3), np.array(random.random())]


if __name__ == "__main__":
    work(KINDS, seed)
