"""PyTorch trainings of one process with and without optimizers of ``torch.optim``; knows nothing of the agent.

usage: python later_scenes.py [NOTES.npz]
"""

import torch
import torch.nn.functional as F
from nets import Net, batch, sgd
from notes import note, note_model, play
from torch import nn


class Head(nn.Linear):
    def __init__(self):
        super().__init__(5, 3)


class Judge(nn.Linear):
    def __init__(self):
        super().__init__(3, 1)


def _loss_of_step(name, model, k):
    x, y = batch()
    note_model(name, k, model)
    out = model(x)
    note(f"{name}_output_0", k, out)
    loss = F.cross_entropy(out, y)
    note("Loss_output_0", k, loss)
    model.zero_grad()
    loss.backward()
    note_model(name, k, model, gradients=True)


def _by_hand(name, model, steps, first=0):
    for k in range(steps):
        if k == 0:
            # Not saved: only its backward pass shows that the model is trained.
            F.cross_entropy(model(batch()[0]), batch()[1]).backward()
        else:
            _loss_of_step(name, model, first + k)
        for parameter in model.parameters():
            # Leaves the parameter's version as it is.
            parameter.data.sub_(0.1 * parameter.grad)


def _by_optimizer(model, optimizer, first, steps):
    """Two batches for each update."""
    for k in range(first, first + steps):
        note_model("Net", k, model)
        optimizer.zero_grad()
        for part in range(2):
            x, y = batch()
            loss = F.cross_entropy(model(x), y) / 2
            note(f"Loss_output_{part}", k, loss)
            loss.backward()
        note_model("Net", k, model, gradients=True)
        optimizer.step()


def by_an_optimizer():
    model = Net()
    _by_optimizer(model, sgd(model), 0, 3)
    return [model], 3, 0


def by_hand():
    model = Head()
    _by_hand("Head", model, 4)
    model.eval()
    with torch.no_grad():
        for j in range(2):
            note("Head_output_0", j, model(batch()[0]), "EVAL")
    return [model], 4, 2


def by_hand_again():
    model = Net()
    _by_hand("Net", model, 3)
    return [model], 3, 0


def by_an_optimizer_again():
    model = Net()
    _by_optimizer(model, sgd(model), 0, 2)
    return [model], 2, 0


def by_hand_amid_a_training():
    model = Net()
    optimizer = sgd(model)
    _by_optimizer(model, optimizer, 0, 2)
    head = Head()
    _by_hand("Head", head, 3, first=2)
    _by_optimizer(model, optimizer, 5, 2)
    return [model, head], 7, 0


def with_a_judge_that_nothing_trains():
    # It gets gradients beside the model that is trained, and others where only an input is looked for.
    model = Net()
    optimizer = sgd(model)
    judge = Judge()
    for k in range(3):
        note_model("Net", k, model)
        optimizer.zero_grad()
        judge(model(batch()[0])).mean().backward()
        note_model("Net", k, model, gradients=True)
        optimizer.step()
    judge.eval()
    for _ in range(3):
        judge(torch.randn(6, 3, requires_grad=True)).mean().backward()
    return [model, judge], 3, 0


SCENES = [
    by_an_optimizer,
    by_hand,
    by_hand_again,
    by_an_optimizer_again,
    by_hand_amid_a_training,
    with_a_judge_that_nothing_trains,
]

if __name__ == "__main__":
    play(SCENES)
