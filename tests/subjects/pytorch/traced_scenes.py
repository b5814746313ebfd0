"""PyTorch models that are traced, transformed, recomputed or cast while they train; knows nothing of the agent.

usage: python traced_scenes.py [NOTES.npz]
"""

import warnings

import torch
import torch.nn.functional as F
from gradient_scenes import Net, data, note_true
from notes import note, note_model, play
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.proxy_tensor import make_fx
from torch.utils.checkpoint import checkpoint


def _step(model, optimizer, k, name="Net"):
    x, y = data()
    note_model(name, k, model)
    optimizer.zero_grad()
    out = model(x)
    note(f"{name}_output_0", k, out)
    loss = F.cross_entropy(out, y)
    loss.backward()
    note_model(name, k, model, gradients=True)
    optimizer.step()
    return x


def looked_at_while_it_trains():
    """Trace, export and transform a model between its steps, while they are open."""
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for k in range(3):
        x = _step(model, optimizer, k)
        parameters = dict(model.named_parameters())
        model.eval()
        with torch.no_grad(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            print(torch.jit.trace(model, x)(x).sum().item())
            print(torch.jit.script(model)(x).sum().item())
        print(torch.export.export(model, (x,)).module()(x).sum().item())
        print(make_fx(model)(x)(x).sum().item())
        print(
            torch.vmap(lambda row: torch.func.functional_call(model, dict(model.named_parameters()), (row,)))(x).sum()
        )
        gradients = torch.func.grad(lambda p, x: torch.func.functional_call(model, p, (x,)).square().sum())(
            {key: value.detach() for key, value in parameters.items()}, x
        )
        print(gradients["fc1.weight"].sum().item())
        print(torch.func.jvp(model, (x,), (x,))[1].sum().item())
        with FakeTensorMode(allow_non_fake_inputs=True):
            print(model(torch.empty(3, 5)).shape)
        print(Net().to("meta")(x.to("meta")).shape)
        model.train()
    return [model], 3, 0


def scripted():
    model = Net()
    compiled = torch.jit.script(model)
    optimizer = torch.optim.SGD(compiled.parameters(), lr=0.1)
    for k in range(3):
        x, y = data()
        note_model("Net", k, model)
        note_true(model, lambda m, x=x, y=y: F.cross_entropy(m(x), y), k)
        optimizer.zero_grad()
        out = compiled(x)
        note("Net_output_0", k, out)
        F.cross_entropy(out, y).backward()
        optimizer.step()
    return [model], 3, 0


class Checkpointed(nn.Module):
    def __init__(self, reentrant):
        super().__init__()
        self.reentrant = reentrant
        self.a = nn.Linear(5, 5)
        self.d = nn.Dropout(0.5)
        self.b = nn.Linear(5, 3)

    def forward(self, x):
        hidden = checkpoint(lambda x: self.d(self.a(x)).relu(), x, use_reentrant=self.reentrant)
        return self.b(hidden)


def _checkpointed(reentrant):
    model = Checkpointed(reentrant)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for k in range(3):
        x, y = data()
        x.requires_grad_()
        with torch.no_grad():
            note("a_output_0", k, F.linear(x, model.a.weight, model.a.bias))
        optimizer.zero_grad()
        out = model(x)
        note("Checkpointed_output_0", k, out)
        F.cross_entropy(out, y).backward()
        note_model("Checkpointed", k, model, gradients=True)
        optimizer.step()
    return [model], 3, 0


def checkpointed():
    return _checkpointed(False)


def checkpointed_reentrantly():
    return _checkpointed(True)


def _autocast(dtype):
    model = Net()
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    scaler = torch.amp.GradScaler("cpu", init_scale=256.0, enabled=dtype is torch.float16)
    for k in range(3):
        x, y = data()
        note_model("Net", k, model)
        optimizer.zero_grad()
        with torch.autocast("cpu", dtype=dtype):
            out = model(x)
            hidden = x.to(dtype) @ model.fc1.weight.to(dtype).T
            print(out.dtype, hidden.dtype)
            loss = F.cross_entropy(out, y)
        note("Net_output_0", k, out)
        note("Loss_output_0", k, loss)
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        note_model("Net", k, model, gradients=True)
        scaler.step(optimizer)
        scaler.update()
    return [model], 3, 0


def autocast_bfloat16():
    return _autocast(torch.bfloat16)


def autocast_float16():
    return _autocast(torch.float16)


SCENES = [scripted, checkpointed, checkpointed_reentrantly, autocast_bfloat16, autocast_float16]
SCENES += [looked_at_while_it_trains]

if __name__ == "__main__":
    play(SCENES)
