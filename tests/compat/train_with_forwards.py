"""Trainings whose models are called several times for an update, with a hook of the old library or of ours.

usage: python train_with_forwards.py LIBRARY KIND HOOK.json

The hook file counts forwards where the library knows how to.
"""

import importlib
import itertools
import sys

import torch
from torch import nn


def net(*sizes):
    return nn.Sequential(*(nn.Linear(i, o) for i, o in itertools.pairwise(sizes)))


def plain(hook):
    model = net(4, 3, 2)
    hook.register_module(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(4):
        optimizer.zero_grad()
        model(torch.randn(8, 4)).pow(2).mean().backward()
        optimizer.step()


def siamese(hook):
    model = net(4, 3)
    hook.register_module(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(3):
        optimizer.zero_grad()
        (model(torch.randn(8, 4)) - model(torch.randn(8, 4))).pow(2).mean().backward()
        optimizer.step()


def accumulated(hook):
    model = net(4, 3, 2)
    hook.register_module(model)
    optimizer = torch.optim.Adam(model.parameters())
    for _ in range(2):
        optimizer.zero_grad()
        for _ in range(3):
            model(torch.randn(8, 4)).pow(2).mean().backward()
        optimizer.step()


def critic(hook):
    generator, judge = net(3, 4), net(4, 1)
    hook.register_module(judge)
    by_generator, by_judge = (torch.optim.SGD(each.parameters(), lr=0.1) for each in (generator, judge))
    for _ in range(3):
        by_judge.zero_grad()
        (judge(generator(torch.randn(8, 3)).detach()) - judge(torch.randn(8, 4))).mean().backward()
        by_judge.step()
        by_generator.zero_grad()
        judge(generator(torch.randn(8, 3))).mean().neg().backward()
        by_generator.step()


def validated(hook):
    model = net(4, 3, 2)
    hook.register_module(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(2):
        for _ in range(3):
            optimizer.zero_grad()
            model(torch.randn(8, 4)).pow(2).mean().backward()
            with torch.no_grad():
                model(torch.randn(8, 4))
            optimizer.step()


KINDS = {each.__name__: each for each in (plain, siamese, accumulated, critic, validated)}


def main(library, kind, hook_file):
    smd = importlib.import_module(f"{library}.pytorch")
    torch.manual_seed(0)
    hook = smd.Hook.create_from_json_file(hook_file)
    KINDS[kind](hook)
    hook.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
