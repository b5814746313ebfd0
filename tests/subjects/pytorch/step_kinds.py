"""Kinds of trainings, each as an author writes such a loop and counts its iterations; they know nothing of the agent.

usage: python step_kinds.py all|KIND[,KIND...] FOLDER [NOTES.npz]
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
from adversary_kinds import KINDS as ADVERSARIES
from author import LENGTH, work
from learned import gradients, weights
from nets import Net, batch
from torch import nn
from torch.func import functional_call


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
    for _ in range(LENGTH):
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
    for number in range(4 * LENGTH):
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

    for _ in range(LENGTH):
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
    for _ in range(LENGTH):
        user, item = torch.randint(0, 9, (6,)), torch.randint(0, 7, (6,))
        scores = F.normalize(users(user)) @ F.normalize(items(item)).T
        loss = F.cross_entropy(scores / 0.1, torch.arange(6))
        author.loss(loss.item())
        optimizer.zero_grad()
        loss.backward()
        author.gradients(gradients(users, items))
        optimizer.step()
        author.iteration()
    return weights(users, items)


class World(Net):
    pass


class Judge(Net):
    pass


class Player(Net):
    pass


def models_in_turns(author):
    nets = World(), Judge(), Player()
    models = [(net, torch.optim.Adam(net.parameters(), lr=1e-2)) for net in nets]
    for _ in range(LENGTH):
        found = {}
        for net, optimizer in models:
            x, y = batch()
            loss = F.cross_entropy(net(x), y)
            author.loss(loss.item())
            optimizer.zero_grad()
            loss.backward()
            found |= gradients(net)
            optimizer.step()
        author.gradients(found)
        author.iteration()
    return weights(*nets)


class Teacher(Net):
    pass


def distillation(author):
    return distilled(author, Teacher(width=16), LENGTH)


def distillation_of_a_teacher_trained_before(author):
    teacher = Teacher(width=16)
    train(author, teacher, torch.optim.Adam(teacher.parameters(), lr=1e-2), 12)
    accuracy(author, teacher, 3)
    return distilled(author, teacher, LENGTH)


def distilled(author, teacher, iterations):
    """Train a student."""
    student = Net()
    optimizer = torch.optim.Adam(student.parameters(), lr=1e-2)
    criterion = nn.CrossEntropyLoss()
    teacher.eval()
    for _ in range(iterations):
        x, y = batch()
        optimizer.zero_grad()
        with torch.no_grad():
            soft = F.softmax(teacher(x) / 2, 1)
        out = student(x)
        hard = criterion(out, y)
        author.loss(hard.item())
        by_teacher = F.kl_div(F.log_softmax(out / 2, 1), soft, reduction="batchmean")
        loss = 0.25 * hard + 3 * by_teacher
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
    for _ in range(LENGTH):
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
    for k in range(5):
        fast = copy.deepcopy(model)
        train(author, fast, torch.optim.SGD(fast.parameters(), lr=0.1), 5)
        with torch.no_grad():
            for p, q in zip(model.parameters(), fast.parameters(), strict=True):
                p += (1 - k / 5) * (q - p)
    return weights(model)


def k_fold(author):
    scores = []
    for _ in range(3):
        model = Net()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
        for _ in range(3):
            train(author, model, optimizer, 3)
            scores.append(accuracy(author, model, 2))
    return [np.array(scores), *weights(model)]


def search(author):
    """Hyperparameters are tried one after the other, in one process."""

    def trial(lr, width):
        model = Net(width)
        optimizer = torch.optim.AdamW(model.parameters(), lr=lr)
        schedule = torch.optim.lr_scheduler.StepLR(optimizer, 1)
        for _ in range(3):
            train(author, model, optimizer, 3)
            schedule.step()
        return accuracy(author, model, 4), copy.deepcopy(model.state_dict())

    tried = [trial(lr, width) for lr in (1e-3, 1e-1) for width in (4, 8)]
    score, best = max(tried, key=lambda found: found[0])
    return [np.array(score), *(value.numpy() for value in best.values())]


def resume(author):
    """Go on from a checkpoint, in the same process."""
    model = Net()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    train(author, model, optimizer, 10)
    file = author.folder / "checkpoint.pt"
    torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, file)
    model = Net()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    found = torch.load(file)
    model.load_state_dict(found["model"])
    optimizer.load_state_dict(found["optimizer"])
    train(author, model, optimizer, LENGTH)
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
        author.iterations = found["iteration"]
    train(author, model, optimizer, LENGTH)
    state = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "iteration": author.iterations}
    torch.save(state, file)
    return weights(model)


KINDS = {
    kind.__name__: kind
    for kind in (
        *ADVERSARIES,
        *ACTING,
        neural_ode,
        accumulation,
        lbfgs,
        two_towers,
        models_in_turns,
        distillation,
        distillation_of_a_teacher_trained_before,
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
