"""Kinds of trainings, each as an author writes such a loop and counts its iterations; they know nothing of the agent.

usage: python step_kinds.py KIND[,KIND...] FOLDER [NOTES.npz]
"""

import copy
import random
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "shared"))

import numpy as np
import torch
import torch.nn.functional as F
from acting_kinds import KINDS as ACTING
from author import work
from nets import Net, batch
from torch import nn
from torch.func import functional_call


def gradients(model, name=None):
    """A model's gradients by the names of its parameters."""
    title = name or type(model).__name__
    return {f"{title}_{key}": p.grad.clone() for key, p in model.named_parameters() if p.grad is not None}


def weights(*models):
    """All that the models have learned."""
    return [value.numpy() for model in models for _, value in sorted(model.state_dict().items())]


def train(author, model, optimizer, iterations):
    """Train a classifier."""
    criterion = nn.CrossEntropyLoss()
    model.train()
    for _ in range(iterations):
        x, y = batch()
        optimizer.zero_grad()
        loss = criterion(model(x), y)
        author.loss(loss.item())
        loss.backward()
        author.gradients(gradients(model))
        optimizer.step()
        author.iteration()


@torch.no_grad()
def accuracy(author, model, batches):
    """Evaluate a classifier."""
    model.eval()
    right = 0
    for _ in range(batches):
        x, y = batch()
        right += (model(x).argmax(1) == y).sum().item()
        author.evaluated()
    return right / (6 * batches)


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
    for _ in range(105):
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
    of_generator = torch.optim.RMSprop(generator.parameters(), lr=5e-4)
    of_critic = torch.optim.RMSprop(critic.parameters(), lr=5e-4)
    for _ in range(105):
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
    of_generator = torch.optim.RMSprop(generator.parameters(), lr=5e-4)
    of_critic = torch.optim.RMSprop(critic.parameters(), lr=5e-4)
    for _ in range(105):
        for _ in range(5):
            of_critic.zero_grad()
            with torch.no_grad():
                fake = generator(torch.randn(6, 3))
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
    of_generator = torch.optim.RMSprop(generator.parameters(), lr=5e-4)
    of_critic = torch.optim.RMSprop(critic.parameters(), lr=5e-4)
    for i in range(105):
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


class Flow(nn.Module):
    """The right side of an ordinary differential equation."""

    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 2))

    def forward(self, t, z):
        return self.net(torch.cat([z, t.expand(len(z), 1)], 1))


def euler(flow, z, calls=10):
    """Integrate from 0 to 1."""
    for t in torch.linspace(0, 1, calls + 1)[:-1]:
        z = z + flow(t, z) / calls
    return z


def neural_ode(author):
    flow = Flow()
    optimizer = torch.optim.Adam(flow.parameters(), lr=1e-2)
    for _ in range(105):
        z = torch.randn(6, 2)
        optimizer.zero_grad()
        loss = F.mse_loss(euler(flow, z), z.flip(1))
        author.loss(loss.item())
        loss.backward()
        author.gradients(gradients(flow))
        optimizer.step()
        author.iteration()
    return weights(flow)


def accumulation(author):
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    criterion = nn.CrossEntropyLoss()
    optimizer.zero_grad()
    for number in range(4 * 105):
        x, y = batch()
        loss = criterion(model(x), y) / 4
        author.loss(loss.item() * 4)
        loss.backward()
        if (number + 1) % 4 == 0:
            author.gradients(gradients(model))
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad()
            author.iteration()
    return weights(model)


def lbfgs(author):
    model = Net()
    optimizer = torch.optim.LBFGS(model.parameters(), lr=0.1, max_iter=4)
    x, y = batch()

    def closure():
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        author.loss(loss.item())
        loss.backward()
        author.gradients(gradients(model))
        return loss

    for _ in range(105):
        x, y = batch()
        optimizer.step(closure)
        author.iteration()
    return weights(model)


class UserTower(nn.Sequential):
    def __init__(self):
        super().__init__(nn.Embedding(9, 6), nn.Linear(6, 4))


class ItemTower(nn.Sequential):
    def __init__(self):
        super().__init__(nn.Embedding(7, 6), nn.Linear(6, 4))


def two_towers(author):
    users, items = UserTower(), ItemTower()
    optimizer = torch.optim.Adam([*users.parameters(), *items.parameters()], lr=1e-2)
    for _ in range(105):
        user, item = torch.randint(0, 9, (6,)), torch.randint(0, 7, (6,))
        scores = F.normalize(users(user)) @ F.normalize(items(item)).T
        loss = F.cross_entropy(scores / 0.1, torch.arange(6))
        author.loss(loss.item())
        optimizer.zero_grad()
        loss.backward()
        author.gradients({**gradients(users), **gradients(items)})
        optimizer.step()
        author.iteration()
    return weights(users, items)


class Teacher(Net):
    pass


def distillation(author):
    teacher, student = Teacher(width=16), Net()
    train(author, teacher, torch.optim.Adam(teacher.parameters(), lr=1e-2), 40)
    accuracy(author, teacher, 3)
    optimizer = torch.optim.Adam(student.parameters(), lr=1e-2)
    criterion = nn.CrossEntropyLoss()
    student.train()
    for _ in range(65):
        x, y = batch()
        optimizer.zero_grad()
        with torch.no_grad():
            soft = F.softmax(teacher(x) / 2, 1)
        out = student(x)
        hard = criterion(out, y)
        author.loss(hard.item())
        loss = 0.75 * F.kl_div(F.log_softmax(out / 2, 1), soft, reduction="batchmean") * 4 + 0.25 * hard
        author.loss(loss.item())
        loss.backward()
        author.gradients(gradients(student))
        optimizer.step()
        author.iteration()
    accuracy(author, student, 3)
    return weights(teacher, student)


def maml(author):
    model = Net()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    for _ in range(105):
        optimizer.zero_grad()
        losses = []
        for _ in range(3):
            fast = dict(model.named_parameters())
            x, y = batch()
            for _ in range(2):
                inner = F.cross_entropy(functional_call(model, fast, (x,)), y)
                found = torch.autograd.grad(inner, fast.values(), create_graph=True)
                fast = {name: p - 0.1 * g for (name, p), g in zip(fast.items(), found, strict=True)}
            x, y = batch()
            losses.append(F.cross_entropy(functional_call(model, fast, (x,)), y))
            author.loss(losses[-1].item())
        loss = torch.stack(losses).mean()
        author.loss(loss.item())
        loss.backward()
        author.gradients(gradients(model))
        optimizer.step()
        author.iteration()
    return weights(model)


def reptile(author):
    model = Net()
    for k in range(21):
        fast = copy.deepcopy(model)
        train(author, fast, torch.optim.SGD(fast.parameters(), lr=0.1), 5)
        with torch.no_grad():
            for p, q in zip(model.parameters(), fast.parameters(), strict=True):
                p += (1 - k / 21) * (q - p)
    return weights(model)


def k_fold(author):
    scores = []
    for _ in range(5):
        model = Net()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
        for _ in range(3):
            train(author, model, optimizer, 7)
            scores.append(accuracy(author, model, 2))
    return [np.array(scores), *weights(model)]


def search(author):
    """Hyperparameters are tried one after the other, in one process."""

    def trial(lr, width):
        model = Net(width)
        optimizer = torch.optim.AdamW(model.parameters(), lr=lr)
        schedule = torch.optim.lr_scheduler.StepLR(optimizer, 1)
        for _ in range(3):
            train(author, model, optimizer, 6)
            schedule.step()
        return accuracy(author, model, 4), copy.deepcopy(model.state_dict())

    tried = [trial(lr, width) for lr in (1e-3, 1e-2, 1e-1) for width in (4, 8)]
    score, best = max(tried, key=lambda found: found[0])
    return [np.array(score), *(value.numpy() for value in best.values())]


def resume(author):
    """Go on from a checkpoint, in the same process."""
    model = Net()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    train(author, model, optimizer, 50)
    file = author.folder / "checkpoint.pt"
    torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, file)
    model = Net()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    found = torch.load(file)
    model.load_state_dict(found["model"])
    optimizer.load_state_dict(found["optimizer"])
    train(author, model, optimizer, 55)
    return weights(model)


def resume_in_a_second_process(author):
    """Go on from a checkpoint if there is one, and leave one behind."""
    model = Net()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    file = author.folder / "last.pt"
    if file.exists():
        found = torch.load(file)
        model.load_state_dict(found["model"])
        optimizer.load_state_dict(found["optimizer"])
    train(author, model, optimizer, 105)
    torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, file)
    return weights(model)


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
        lbfgs,
        two_towers,
        distillation,
        maml,
        reptile,
        k_fold,
        search,
        resume,
        resume_in_a_second_process,
    )
}


def seed():
    """Begin anew."""
    torch.manual_seed(3)
    random.seed(3)
    np.random.seed(3)
    return lambda: [torch.rand(3).numpy(), np.random.rand(3), np.array(random.random())]


if __name__ == "__main__":
    torch.set_num_threads(1)
    work(KINDS, seed)
