"""Models inside of wrappers, compiled, scripted, sharded; knows nothing of the agent.

usage: python wrapper_scenes.py [NOTES.npz]
"""

import copy
import functools
import logging

import torch
import torch.distributed as dist
import torch.nn.functional as F
from nets import Net, batch, sgd
from notes import note, note_model, play
from torch import nn
from torch._dynamo.utils import counters
from torch.distributed.fsdp import fully_shard
from torch.distributed.optim import ZeroRedundancyOptimizer
from torch.nn.parallel import DistributedDataParallel


def local(tensor):
    return tensor.to_local() if hasattr(tensor, "to_local") else tensor


def train(call, model, optimizer, steps=3, first=0, name="Net"):
    """Train with ``call``; note weights and gradients of ``model``, under the names that it has by itself."""
    for k in range(first, first + steps):
        x, y = batch()
        for key, parameter in model.named_parameters():
            note(f"{name}_{key}", k, local(parameter).clone())
        optimizer.zero_grad()
        out = call(x)
        note(f"{name}_output_0", k, out)
        loss = F.cross_entropy(out, y)
        note("Loss_output_0", k, loss)
        loss.backward()
        for key, parameter in model.named_parameters():
            note(f"gradient/{name}_{key}", k, local(parameter.grad))
        optimizer.step()


def evaluate(call, steps=2, first=0, name="Net"):
    with torch.no_grad():
        for k in range(first, first + steps):
            note(f"{name}_output_0", k, call(batch()[0]), "EVAL")


def counting_graphs(scene):
    """Have a scene tell how much was compiled in it."""

    @functools.wraps(scene)
    def counted():
        torch._dynamo.reset()
        counters.clear()
        result = scene()
        print(counters["stats"]["unique_graphs"], "graphs,", sum(counters["graph_break"].values()), "breaks")
        return result

    return counted


def compiled(model, **options):
    return torch.compile(model, backend="aot_eager", fullgraph=True, **options)


def data_parallel():
    model = Net()
    wrapper = nn.DataParallel(model)
    train(wrapper, model, sgd(wrapper))
    wrapper.eval()
    evaluate(wrapper)
    evaluate(model, first=2)
    return [model], 3, 4


def ddp_before_the_optimizer():
    model = Net()
    wrapper = DistributedDataParallel(model)
    train(wrapper, model, sgd(wrapper))
    # The flag of the model inside is what counts.
    model.eval()
    evaluate(model)
    x, _ = batch()
    note("Net_output_0", 2, wrapper(x), "EVAL")
    return [model], 3, 3


def ddp_after_the_optimizer():
    model = Net()
    optimizer = sgd(model)
    train(DistributedDataParallel(model), model, optimizer)
    return [model], 3, 0


class Half(nn.Module):
    """A part of it is wrapped."""

    def __init__(self, wrap):
        super().__init__()
        self.net = wrap(Net())
        self.last = nn.Linear(3, 3)

    def forward(self, x):
        return self.last(self.net(x))


def wrapped_part(wrap=DistributedDataParallel, attribute="module"):
    model = Half(wrap)
    optimizer = sgd(model)
    for k in range(2):
        x, y = batch()
        inner = getattr(model.net, attribute)
        for name, part in (("Half_last", model.last), ("Half_net.fc1", inner.fc1), ("Half_net.fc2", inner.fc2)):
            note(f"{name}.weight", k, part.weight)
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        note("gradient/Half_net.fc1.bias", k, inner.fc1.bias.grad)
        optimizer.step()
    return [model], 2, 0


@counting_graphs
def compiled_part():
    return wrapped_part(compiled, "_orig_mod")


@counting_graphs
def compiled_model():
    model = Net()
    wrapper = compiled(model)
    train(wrapper, model, sgd(model))
    model.eval()
    evaluate(wrapper)
    evaluate(model, first=2)
    evaluate(compiled(model), first=4)
    return [model], 3, 6


@counting_graphs
def compiled_by_its_method():
    model = Net()
    model.compile(backend="aot_eager", fullgraph=True)
    train(model, model, sgd(model))
    return [model], 3, 0


@counting_graphs
def compiled_after_training_has_begun():
    model = Net()
    optimizer = sgd(model)
    train(model, model, optimizer, 2)
    train(compiled(model), model, optimizer, 2, first=2)
    train(model, model, optimizer, 1, first=4)
    return [model], 5, 0


@counting_graphs
def two_compiled_forms_of_one_model():
    model = Net()
    trained, evaluated = compiled(model), compiled(model, dynamic=True)
    train(trained, model, sgd(model), 2)
    model.eval()
    evaluate(evaluated)
    return [model], 2, 2


@counting_graphs
def compiled_ddp():
    model = Net()
    wrapper = torch.compile(DistributedDataParallel(model), backend="aot_eager")
    train(wrapper, model, sgd(wrapper))
    return [model], 3, 0


def sharded():
    model = Net()
    fully_shard(model.fc1)
    fully_shard(model)
    optimizer = sgd(model)
    train(model, model, optimizer, 2)
    model.eval()
    evaluate(model)
    model.train()
    train(model, model, optimizer, 2, first=2)
    return [model], 4, 2


def zero_redundancy():
    model = Net()
    wrapper = DistributedDataParallel(model)
    train(wrapper, model, ZeroRedundancyOptimizer(wrapper.parameters(), torch.optim.SGD, lr=0.1))
    return [model], 3, 0


def scripted():
    model = torch.jit.script(Net())
    train(model, model, sgd(model), 2)
    traced = torch.jit.trace(Net(), batch()[0])
    train(traced, traced, sgd(traced), 2, first=2, name="Net_2")
    return [model, traced], 4, 0


def traced_by_fx():
    model = torch.fx.symbolic_trace(Net())
    train(model, model, sgd(model), 2)
    return [copy.deepcopy(model)], 2, 0


@counting_graphs
def step_compiled_whole(backend="aot_eager", backward=True, evaluated=False):
    # The first backward pass tells that no call can be seen.
    model = Net()
    optimizer = sgd(model)

    def step(x, y):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        if backward:
            loss.backward()
        return loss

    step = torch.compile(step, backend=backend)
    for k in range(4):
        x, y = batch()
        note_model("Net", k, model)
        loss = step(x, y)
        if not backward:
            loss.backward()
        note("Loss_output_0", k, loss)
        note_model("Net", k, model, gradients=True)
        optimizer.step()
        if k == 1 and evaluated:
            # The counter that its first call in the open brings has the compiled step traced once more.
            model.eval()
            evaluate(model, 2)
            model.train()
    return [model], 4, 2 * evaluated


def step_compiled_whole_eager():
    return step_compiled_whole.__wrapped__("eager", evaluated=True)


@counting_graphs
def step_compiled_up_to_the_loss():
    return step_compiled_whole.__wrapped__(backward=False)


SCENES = [
    data_parallel,
    ddp_before_the_optimizer,
    ddp_after_the_optimizer,
    wrapped_part,
    compiled_part,
    compiled_model,
    compiled_by_its_method,
    compiled_after_training_has_begun,
    two_compiled_forms_of_one_model,
    compiled_ddp,
    sharded,
    zero_redundancy,
    scripted,
    traced_by_fx,
    step_compiled_whole,
    step_compiled_whole_eager,
    step_compiled_up_to_the_loss,
]

if __name__ == "__main__":
    torch._logging.set_logs(all=logging.ERROR)
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    play(SCENES)
    dist.destroy_process_group()
