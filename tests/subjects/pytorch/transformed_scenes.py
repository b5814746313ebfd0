"""PyTorch training loops that call their model inside of ``torch.func`` transforms too; knows nothing of the agent.

usage: python transformed_scenes.py [NOTES.npz]
"""

import torch
import torch.nn.functional as F
from nets import Net, batch, sgd
from notes import note, note_model, play
from torch import nn
from torch.func import functional_call, grad, jacrev, jvp, vmap


def _learn(model, optimizer, k, loss):
    """Learn from a loss whose step has begun."""
    note("Loss_output_0", k, loss)
    optimizer.zero_grad()
    loss.backward()
    note_model("Net", k, model, gradients=True)
    optimizer.step()


def _of_each(model, x, y):
    """Return the gradients of each sample's loss."""

    def loss(parameters, x, y):
        return nn.CrossEntropyLoss()(functional_call(model, parameters, (x[None],)), y[None])

    parameters = {name: parameter.detach() for name, parameter in model.named_parameters()}
    return vmap(grad(loss), (None, 0, 0))(parameters, x, y)


def samples_looked_at_after_each_update():
    model = Net()
    optimizer = sgd(model)
    for k in range(5):
        x, y = batch()
        note_model("Net", k, model)
        out = model(x)
        note("Net_output_0", k, out)
        _learn(model, optimizer, k, F.cross_entropy(out, y))
        print(_of_each(model, x, y)["fc1.weight"].norm().item())
        if k == 2:
            model.eval()
            with torch.no_grad():
                for j in range(2):
                    note("Net_output_0", j, model(x + j), "EVAL")
            model.train()
    return [model], 5, 2


def samples_looked_at_once():
    model = Net()
    optimizer = sgd(model)
    for k in range(5):
        x, y = batch()
        note_model("Net", k, model)
        _learn(model, optimizer, k, F.cross_entropy(model(x), y))
        if k == 2:
            print(_of_each(model, x, y)["fc1.weight"].norm().item())
    return [model], 5, 0


def jacobian_in_the_loss():
    model = Net()
    optimizer = sgd(model)
    for k in range(5):
        x, y = batch()
        note_model("Net", k, model)
        jacobian = vmap(jacrev(model))(x)
        out = model(x)
        note("Net_output_0", k, out)
        _learn(model, optimizer, k, F.cross_entropy(out, y) + 0.1 * jacobian.square().mean())
    return [model], 5, 0


def traced_in_the_first_iteration():
    model = Net()
    optimizer = sgd(model)
    for k in range(3):
        x, y = batch()
        note_model("Net", k, model)
        if k == 0:
            print(len(list(torch.jit.trace(model, x).graph.nodes())))
        out = model(x)
        note("Net_output_0", k, out)
        _learn(model, optimizer, k, F.cross_entropy(out, y))
    return [model], 3, 0


def only_called_for_a_derivative():
    model = Net()
    optimizer = sgd(model)
    for k in range(5):
        x, v = torch.randn(2, 6, 5)
        note_model("Net", k, model)
        score, along = jvp(model, (x,), (v,))
        _learn(model, optimizer, k, score.square().mean() + along.mean())
    return [model], 5, 0


def only_called_for_tasks_at_once():
    model = Net()
    optimizer = sgd(model)

    def loss(parameters, x, y):
        return F.cross_entropy(functional_call(model, parameters, (x,)), y)

    def adapted(x, y):
        parameters = dict(model.named_parameters())
        gradients = grad(loss)(parameters, x, y)
        return loss({name: p - 0.1 * gradients[name] for name, p in parameters.items()}, x + 1, y)

    for k in range(5):
        x, y = torch.randn(4, 6, 5), torch.randint(0, 3, (4, 6))
        note_model("Net", k, model)
        _learn(model, optimizer, k, vmap(adapted)(x, y).mean())
    return [model], 5, 0


# The last one ends with a call in a transform, which would have begun the next scene's first step.
SCENES = [
    samples_looked_at_once,
    jacobian_in_the_loss,
    traced_in_the_first_iteration,
    only_called_for_a_derivative,
    only_called_for_tasks_at_once,
    samples_looked_at_after_each_update,
]

if __name__ == "__main__":
    play(SCENES)
