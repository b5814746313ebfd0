"""Kinds of trainings, each as an author writes such a loop and counts its iterations; they know nothing of the agent.

usage: python step_kinds.py KIND[,KIND...] FOLDER [NOTES.npz]
"""

import random
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "shared"))

import mxnet as mx
import numpy as np
from acting_kinds import KINDS as ACTING
from author import work
from mxnet import autograd, gluon, nd
from mxnet.gluon import nn


def perceptron(prefix, inputs, hidden, outputs):
    """A net of two layers."""
    net = nn.HybridSequential(prefix=prefix)
    with net.name_scope():
        net.add(nn.Dense(hidden, activation="relu", in_units=inputs), nn.Dense(outputs, in_units=hidden))
    net.initialize(mx.init.Xavier())
    return net


def classifier(hidden=4):
    return perceptron("net_", 5, hidden, 3)


def batch():
    return nd.random.normal(shape=(6, 5)), nd.random.randint(0, 3, shape=(6,)).astype("float32")


def gradients(*nets):
    """The nets' gradients by the names of their parameters."""
    found = [pair for net in nets for pair in net.collect_params().items() if pair[1].grad_req != "null"]
    return {name: parameter.grad().asnumpy() for name, parameter in found}


def weights(*nets):
    """All that the nets have learned."""
    return [parameter.data().asnumpy() for net in nets for parameter in net.collect_params().values()]


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


def adam(*nets, rate=1e-2, kind="adam"):
    parameters = gluon.ParameterDict()
    for net in nets:
        parameters.update(net.collect_params())
    return gluon.Trainer(parameters, kind, {"learning_rate": rate})


def gan(author):
    generator, critic = perceptron("gen_", 3, 8, 5), perceptron("dis_", 5, 8, 1)
    loss_fn = gluon.loss.SigmoidBinaryCrossEntropyLoss()
    trainers = adam(generator), adam(critic)
    for _ in range(105):
        with autograd.record():
            on_real = loss_fn(critic(nd.random.normal(1, shape=(6, 5))), nd.ones(6))
            fake = generator(nd.random.normal(shape=(6, 3)))
            on_fake = loss_fn(critic(fake.detach()), nd.zeros(6))
            loss = on_real + on_fake
        for part in (on_real, on_fake, loss):
            author.loss(part.asnumpy())
        loss.backward()
        author.gradients(gradients(critic))
        trainers[1].step(6)
        with autograd.record():
            fake = generator(nd.random.normal(shape=(6, 3)))
            loss = loss_fn(critic(fake), nd.ones(6))
        author.loss(loss.asnumpy())
        loss.backward()
        author.gradients(gradients(generator))
        trainers[0].step(6)
        author.iteration()
    return weights(generator, critic)


def gan_with_five_critics(author):
    generator, critic = perceptron("gen_", 3, 8, 5), perceptron("dis_", 5, 8, 1)
    trainers = adam(generator, kind="rmsprop"), adam(critic, kind="rmsprop")
    for _ in range(105):
        for _ in range(5):
            with autograd.record():
                fake = generator(nd.random.normal(shape=(6, 3))).detach()
                loss = (critic(fake) - critic(nd.random.normal(1, shape=(6, 5)))).mean()
            author.loss(loss.asnumpy())
            loss.backward()
            author.first_gradients(gradients(critic))
            trainers[1].step(1)
            for parameter in critic.collect_params().values():
                parameter.set_data(parameter.data().clip(-0.01, 0.01))
        with autograd.record():
            loss = -critic(generator(nd.random.normal(shape=(6, 3)))).mean()
        author.loss(loss.asnumpy())
        loss.backward()
        author.gradients(gradients(generator))
        trainers[0].step(1)
        author.iteration()
    return weights(generator, critic)


def gan_that_samples_without_gradients(author):
    generator, critic = perceptron("gen_", 3, 8, 5), perceptron("dis_", 5, 8, 1)
    trainers = adam(generator, kind="rmsprop"), adam(critic, kind="rmsprop")
    for _ in range(105):
        for _ in range(5):
            fake = generator(nd.random.normal(shape=(6, 3)))
            if author.iterations:
                author.evaluated()
            with autograd.record():
                loss = (critic(fake) - critic(nd.random.normal(1, shape=(6, 5)))).mean()
            author.loss(loss.asnumpy())
            loss.backward()
            author.first_gradients(gradients(critic))
            trainers[1].step(1)
        with autograd.record():
            loss = -critic(generator(nd.random.normal(shape=(6, 3)))).mean()
        author.loss(loss.asnumpy())
        loss.backward()
        author.gradients(gradients(generator))
        trainers[0].step(1)
        author.iteration()
    return weights(generator, critic)


def gan_with_a_generator_now_and_then(author):
    # The batches are counted; the generator has its turn in every fifth.
    generator, critic = perceptron("gen_", 3, 8, 5), perceptron("dis_", 5, 8, 1)
    trainers = adam(generator, kind="rmsprop"), adam(critic, kind="rmsprop")
    for i in range(105):
        z = nd.random.normal(shape=(6, 3))
        with autograd.record():
            loss = (critic(generator(z).detach()) - critic(nd.random.normal(1, shape=(6, 5)))).mean()
        author.loss(loss.asnumpy())
        loss.backward()
        author.gradients(gradients(critic))
        trainers[1].step(1)
        if i % 5 == 0:
            with autograd.record():
                loss = -critic(generator(z)).mean()
            author.loss(loss.asnumpy())
            loss.backward()
            author.gradients(gradients(generator))
            trainers[0].step(1)
        author.iteration()
    return weights(generator, critic)


def neural_ode(author):
    flow = perceptron("flow_", 3, 8, 2)
    trainer = adam(flow)
    loss_fn = gluon.loss.L2Loss()
    for _ in range(105):
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
    for number in range(4 * 105):
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
    for _ in range(105):
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


def distillation(author):
    teacher = perceptron("teacher_", 5, 16, 3)
    teacher.collect_params().setattr("grad_req", "null")
    return distilled(author, teacher, 105)


def distillation_of_a_teacher_trained_before(author):
    teacher = perceptron("teacher_", 5, 16, 3)
    train(author, teacher, adam(teacher), 40)
    accuracy(author, teacher, 3)
    return distilled(author, teacher, 65)


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
    for p, q in zip(source.collect_params().values(), target.collect_params().values()):
        q.set_data(p.data())


def reptile(author):
    net = classifier()
    for k in range(21):
        fast = classifier()
        copy_weights(net, fast)
        train(author, fast, gluon.Trainer(fast.collect_params(), "sgd", {"learning_rate": 0.1}), 5)
        for p, q in zip(net.collect_params().values(), fast.collect_params().values()):
            p.set_data(p.data() + (1 - k / 21) * (q.data() - p.data()))
    return weights(net)


def k_fold(author):
    scores = []
    for _ in range(5):
        net = classifier()
        trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.1, "momentum": 0.9})
        for _ in range(3):
            train(author, net, trainer, 7)
            scores.append(accuracy(author, net, 2))
    return [np.array(scores), *weights(net)]


def search(author):
    """Hyperparameters are tried one after the other, in one process."""

    def trial(rate, hidden):
        net = classifier(hidden)
        trainer = adam(net, rate=rate)
        for _ in range(3):
            train(author, net, trainer, 6)
            trainer.set_learning_rate(trainer.learning_rate / 10)
        return accuracy(author, net, 4), weights(net)

    tried = [trial(rate, hidden) for rate in (1e-3, 1e-2, 1e-1) for hidden in (4, 8)]
    score, best = max(tried, key=lambda found: found[0])
    return [np.array(score), *best]


def resume(author):
    """Go on from a checkpoint, in the same process."""
    net = classifier()
    trainer = adam(net)
    train(author, net, trainer, 50)
    files = [str(author.folder / name) for name in ("net.params", "trainer.states")]
    net.save_parameters(files[0])
    trainer.save_states(files[1])
    net = classifier()
    trainer = adam(net)
    net.load_parameters(files[0])
    trainer.load_states(files[1])
    train(author, net, trainer, 55)
    return weights(net)


def resume_in_a_second_process(author):
    """Go on from a checkpoint if there is one, and leave one behind."""
    net = classifier()
    trainer = adam(net)
    files = [author.folder / name for name in ("last.params", "last.states")]
    if files[0].exists():
        net.load_parameters(str(files[0]))
        trainer.load_states(str(files[1]))
    train(author, net, trainer, 105)
    net.save_parameters(str(files[0]))
    trainer.save_states(str(files[1]))
    return weights(net)


KINDS = {
    kind.__name__: kind
    for kind in (
        gan,
        gan_with_five_critics,
        gan_that_samples_without_gradients,
        gan_with_a_generator_now_and_then,
        *ACTING,
        neural_ode,
        accumulation,
        two_towers,
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
