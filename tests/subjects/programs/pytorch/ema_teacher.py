"""A mean teacher: few labels, many unlabelled items, and a consistency cost towards an average of the student."""

import collections
import itertools
import math
import os
import random

import torch
from torch import nn
from torch.nn import functional as F
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn


class Meters:
    def __init__(self):
        self.values = collections.defaultdict(list)

    def add(self, **values):
        for name, value in values.items():
            self.values[name].append(float(value))

    def __str__(self):
        return "  ".join(f"{name} {sum(v) / len(v):.5f}" for name, v in self.values.items())


def network():
    return nn.Sequential(nn.Linear(2, 32), nn.ReLU(), nn.Dropout(0.2), nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 3))


def spirals(n, generator):
    y = torch.randint(3, (n,), generator=generator)
    t = torch.rand(n, generator=generator) * 3
    angle = t + y * 2 * math.pi / 3
    points = torch.stack([t * angle.cos(), t * angle.sin()], 1)
    return points + 0.05 * torch.randn(n, 2, generator=generator), y


def ramp_up(epoch, length=4):
    return math.exp(-5 * (1 - min(1.0, epoch / length)) ** 2)


def evaluate(net, x, y):
    net.eval()
    with torch.no_grad():
        logits = net(x)
    net.train()
    return F.cross_entropy(logits, y).item(), (logits.argmax(1) == y).float().mean().item()


def main():
    random.seed(0)
    torch.manual_seed(0)
    generator = torch.Generator().manual_seed(1)
    labelled, targets = spirals(24, generator)
    unlabelled, _ = spirals(240, generator)
    held_out = spirals(90, generator)
    student = network()
    teacher = AveragedModel(student, multi_avg_fn=get_ema_multi_avg_fn(0.9))
    optimizer = torch.optim.SGD(student.parameters(), lr=0.1, momentum=0.9, nesterov=True)
    best = 0.0
    for epoch in range(5):
        meters, weight = Meters(), ramp_up(epoch)
        endless = itertools.cycle(torch.arange(24).split(8))
        for rows in torch.randperm(240).split(40):
            few = next(endless)
            noisy = unlabelled[rows] + 0.1 * torch.randn(len(rows), 2)
            logits = student(torch.cat([labelled[few], noisy]))
            with torch.no_grad():
                wanted = teacher(unlabelled[rows] + 0.1 * torch.randn(len(rows), 2)).softmax(-1)
            class_loss = F.cross_entropy(logits[: len(few)], targets[few])
            consistency = F.mse_loss(logits[len(few) :].softmax(-1), wanted)
            loss = class_loss + 3 * weight * consistency
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            teacher.update_parameters(student)
            meters.add(loss=loss, classes=class_loss, consistency=consistency)
        ours, theirs = evaluate(student, *held_out), evaluate(teacher, *held_out)
        print(f"epoch {epoch}: {meters}")
        print(f"  student {ours[0]:.4f} {ours[1]:.3f}  teacher {theirs[0]:.4f} {theirs[1]:.3f}")
        if theirs[1] > best:
            best = theirs[1]
            torch.save(teacher.state_dict(), "best.pt.part")
            os.replace("best.pt.part", "best.pt")
    print(f"best {best:.3f}", random.random(), torch.rand(1).item())


if __name__ == "__main__":
    main()
