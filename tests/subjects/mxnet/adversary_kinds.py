"""Kinds of trainings of two adversaries, each as an author writes such a loop; see ``step_kinds``."""

from author import LENGTH
from learned import adam, gradients, perceptron, weights
from mxnet import autograd, gluon, nd


def gan(author):
    generator, critic = perceptron("gen_", 3, 8, 5), perceptron("dis_", 5, 8, 1)
    loss_fn = gluon.loss.SigmoidBinaryCrossEntropyLoss()
    trainers = adam(generator), adam(critic)
    for _ in range(LENGTH):
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
    trainers = [adam(net, kind="rmsprop") for net in (generator, critic)]
    for _ in range(LENGTH):
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
    trainers = [adam(net, kind="rmsprop") for net in (generator, critic)]
    for _ in range(LENGTH):
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
    trainers = [adam(net, kind="rmsprop") for net in (generator, critic)]
    for i in range(LENGTH):
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


KINDS = [gan, gan_with_five_critics, gan_that_samples_without_gradients, gan_with_a_generator_now_and_then]
