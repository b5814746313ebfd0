"""Kinds of trainings of two adversaries, each as an author writes such a loop; see ``step_kinds``."""

import torch
from author import LENGTH
from learned import gradients, weights
from torch import nn


class Generator(nn.Sequential):
    def __init__(self):
        super().__init__(nn.Linear(3, 8), nn.ReLU(), nn.Linear(8, 5))


class Critic(nn.Sequential):
    def __init__(self):
        super().__init__(nn.Linear(5, 8), nn.LeakyReLU(0.2), nn.Linear(8, 1))


def gan(author):
    generator, critic = Generator(), Critic()
    optimizers = [torch.optim.Adam(net.parameters(), lr=2e-3, betas=(0.5, 0.999)) for net in (generator, critic)]
    criterion = nn.BCEWithLogitsLoss()
    one, zero = torch.ones(6, 1), torch.zeros(6, 1)
    for _ in range(LENGTH):
        optimizers[1].zero_grad()
        on_real = criterion(critic(torch.randn(6, 5) + 1), one)
        author.loss(on_real.item())
        on_real.backward()
        fake = generator(torch.randn(6, 3))
        on_fake = criterion(critic(fake.detach()), zero)
        author.loss(on_fake.item())
        on_fake.backward()
        author.gradients(gradients(critic))
        optimizers[1].step()
        optimizers[0].zero_grad()
        fools = criterion(critic(fake), one)
        author.loss(fools.item())
        fools.backward()
        author.gradients(gradients(generator))
        optimizers[0].step()
        author.iteration()
    return weights(generator, critic)


def gan_with_five_critics(author):
    generator, critic = Generator(), Critic()
    of_generator, of_critic = (torch.optim.RMSprop(net.parameters(), lr=5e-4) for net in (generator, critic))
    for _ in range(LENGTH):
        for _ in range(5):
            of_critic.zero_grad()
            fake = generator(torch.randn(6, 3)).detach()
            loss = critic(fake).mean() - critic(torch.randn(6, 5) + 1).mean()
            author.loss(loss.item())
            loss.backward()
            author.first_gradients(gradients(critic))
            of_critic.step()
            for p in critic.parameters():
                p.data.clamp_(-0.01, 0.01)
        of_generator.zero_grad()
        loss = -critic(generator(torch.randn(6, 3))).mean()
        author.loss(loss.item())
        loss.backward()
        author.gradients(gradients(generator))
        of_generator.step()
        author.iteration()
    return weights(generator, critic)


def gan_that_samples_without_gradients(author):
    generator, critic = Generator(), Critic()
    of_generator, of_critic = (torch.optim.RMSprop(net.parameters(), lr=5e-4) for net in (generator, critic))
    for _ in range(LENGTH):
        for _ in range(5):
            of_critic.zero_grad()
            with torch.no_grad():
                fake = generator(torch.randn(6, 3))
            if author.iterations:
                author.evaluated()
            loss = critic(fake).mean() - critic(torch.randn(6, 5) + 1).mean()
            author.loss(loss.item())
            loss.backward()
            author.first_gradients(gradients(critic))
            of_critic.step()
        of_generator.zero_grad()
        loss = -critic(generator(torch.randn(6, 3))).mean()
        author.loss(loss.item())
        loss.backward()
        author.gradients(gradients(generator))
        of_generator.step()
        author.iteration()
    return weights(generator, critic)


def gan_with_a_generator_now_and_then(author):
    # The batches are counted; the generator has its turn in every fifth.
    generator, critic = Generator(), Critic()
    of_generator, of_critic = (torch.optim.RMSprop(net.parameters(), lr=5e-4) for net in (generator, critic))
    for i in range(LENGTH):
        of_critic.zero_grad()
        z = torch.randn(6, 3)
        loss = critic(generator(z).detach()).mean() - critic(torch.randn(6, 5) + 1).mean()
        author.loss(loss.item())
        loss.backward()
        author.gradients(gradients(critic))
        of_critic.step()
        if i % 5 == 0:
            of_generator.zero_grad()
            loss = -critic(generator(z)).mean()
            author.loss(loss.item())
            loss.backward()
            author.gradients(gradients(generator))
            of_generator.step()
        author.iteration()
    return weights(generator, critic)


KINDS = [gan, gan_with_five_critics, gan_that_samples_without_gradients, gan_with_a_generator_now_and_then]
