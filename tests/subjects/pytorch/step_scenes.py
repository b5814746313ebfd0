"""Training loops of PyTorch that count steps in their own way; knows nothing of the agent.

usage: python step_scenes.py [NOTES.npz]
"""

import torch
import torch.nn.functional as F
from nets import Decoder, Encoder, Net, batch, sgd
from notes import note, note_model, play
from torch import nn
from torch.utils.checkpoint import checkpoint


class Plain(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(5, 4)
        self.drop = nn.Dropout(0.3)
        self.fc2 = nn.Linear(4, 3)

    def forward(self, x):
        return self.fc2(self.drop(torch.relu(self.fc1(x))))


def plain_loop():
    model = Plain()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    loss_fn = nn.CrossEntropyLoss()
    for k in range(4):
        note_model("Plain", k, model)
        optimizer.zero_grad()
        out = model(torch.randn(8, 5))
        note("Plain_output_0", k, out)
        loss = loss_fn(out, torch.randint(0, 3, (8,)))
        note("CrossEntropyLoss_output_0", k, loss)
        loss.backward()
        note_model("Plain", k, model, gradients=True)
        optimizer.step()
    model.eval()
    for k in range(2):
        with torch.no_grad():
            note("Plain_output_0", k, model(torch.randn(8, 5)), "EVAL")
    return [model], 4, 2


def accumulated_gradients():
    # One step an update; its gradient is that of all batches.
    model = Net()
    optimizer = sgd(model)
    for k in range(6):
        x, y = batch()
        step, part = divmod(k, 3)
        if part == 0:
            note_model("Net", step, model)
        out = model(x)
        note(f"Net_output_{part}", step, out)
        loss = F.cross_entropy(out, y) / 3
        note(f"Loss_output_{part}", step, loss)
        loss.backward()
        if part == 2:
            note_model("Net", step, model, gradients=True)
            torch.nn.utils.clip_grad_norm_(model.parameters(), 0.01)
            optimizer.step()
            optimizer.zero_grad()
    return [model], 2, 0


def accumulated_and_clipped_unevenly():
    # The last update of an epoch has fewer batches.
    model = Net()
    optimizer = sgd(model)
    step = part = 0
    for k in range(5):
        x, y = batch()
        if part == 0:
            note_model("Net", step, model)
        loss = F.cross_entropy(model(x), y)
        note(f"Loss_output_{part}", step, loss)
        loss.backward()
        part += 1
        if part == 3 or k == 4:
            note_model("Net", step, model, gradients=True)
            torch.nn.utils.clip_grad_norm_(model.parameters(), 0.01)
            optimizer.step()
            optimizer.zero_grad()
            step, part = step + 1, 0
    return [model], 2, 0


def evaluation_in_between():
    model = Net()
    optimizer = sgd(model)
    criterion = nn.CrossEntropyLoss()
    for k in range(4):
        x, y = batch()
        optimizer.zero_grad()
        note_model("Net", k, model)
        criterion(model(x), y).backward()
        if k % 2:
            # Between backward and the optimizer's step.
            model.eval()
            with torch.inference_mode():
                for j in range(2):
                    note("CrossEntropyLoss_output_0", k - 1 + j, criterion(model(x), y), "EVAL")
                    note_model("Net", k - 1 + j, model, mode="EVAL")
        note_model("Net", k, model, gradients=True)
        optimizer.step()
        model.train()
    return [model], 4, 4


def several_optimizers():
    model = Net()
    optimizers = [sgd(model.fc1), torch.optim.Adam(model.fc2.parameters())]
    for k in range(3):
        x, y = batch()
        note_model("Net", k, model)
        for optimizer in optimizers:
            optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        note_model("Net", k, model, gradients=True)
        for optimizer in optimizers:
            optimizer.step()
    return [model], 3, 0


def closures():
    # Every evaluation of the closure is of the step that the optimizer makes.
    model = Net()
    optimizer = torch.optim.LBFGS(model.parameters(), lr=0.1, max_iter=3)
    x, y = batch()
    for k in range(3):
        calls = 0
        note_model("Net", k, model)

        def closure(k=k):
            nonlocal calls
            optimizer.zero_grad()
            loss = F.cross_entropy(model(x), y)
            note(f"Loss_output_{calls}", k, loss)
            loss.backward()
            note_model("Net", k, model, gradients=True)
            calls += 1
            return loss

        optimizer.step(closure)
        assert calls == 3
    return [model], 3, 0


def skipped_steps():
    # The second batch overflows: the scaler leaves the optimizer's step out.
    model = Net()
    optimizer = sgd(model)
    scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
    for k in range(4):
        x, y = batch()
        note_model("Net", k, model)
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y) * (torch.inf if k == 1 else 1.0)
        note("Loss_output_0", k, loss)
        scaler.scale(loss).backward()
        for name, parameter in model.named_parameters():
            note(f"gradient/Net_{name}", k, parameter.grad / scaler.get_scale())
        scaler.step(optimizer)
        scaler.update()
    return [model], 4, 0


def one_forward_for_each_view():
    # Siamese and contrastive: both forwards are of one step.
    model = Net()
    optimizer = sgd(model)
    for k in range(3):
        x, _ = batch()
        optimizer.zero_grad()
        views = []
        note_model("Net", k, model)
        for j in range(2):
            views.append(model(x + j))
            note(f"Net_output_{j}", k, views[j])
        loss = F.mse_loss(*views)
        note("Loss_output_0", k, loss)
        loss.backward()
        note_model("Net", k, model, gradients=True)
        optimizer.step()
    return [model], 3, 0


class Cell(nn.RNNCell):
    pass


def one_forward_for_each_time():
    cell, head = Cell(5, 4), Decoder(4, 3)
    optimizer = sgd(cell, head)
    for k in range(2):
        hidden = torch.zeros(6, 4)
        optimizer.zero_grad()
        note_model("Cell", k, cell)
        if k:
            note_model("Decoder", k, head)
        for j in range(20):
            hidden = cell(torch.randn(6, 5), hidden)
            if j < 16:
                note(f"Cell_output_{j}", k, hidden)
        F.cross_entropy(head(hidden), batch()[1]).backward()
        note_model("Cell", k, cell, gradients=True)
        note_model("Decoder", k, head, gradients=True)
        optimizer.step()
    return [cell, head], 2, 0


def models_that_step_together():
    encoder, decoder = Encoder(5, 4), Decoder(4, 3)
    optimizer = sgd(encoder, decoder)
    for k in range(3):
        x, y = batch()
        note_model("Encoder", k, encoder)
        note_model("Decoder", k, decoder)
        optimizer.zero_grad()
        F.cross_entropy(decoder(encoder(x)), y).backward()
        note_model("Encoder", k, encoder, gradients=True)
        note_model("Decoder", k, decoder, gradients=True)
        optimizer.step()
    return [encoder, decoder], 3, 0


def recomputed(use_reentrant=False):
    # Neither a step nor saved again.
    model = Plain()
    optimizer = sgd(model)
    for k in range(3):
        x, y = batch()
        note_model("Plain", k, model)
        optimizer.zero_grad()
        out = checkpoint(model, x.requires_grad_(), use_reentrant=use_reentrant)
        note("Plain_output_0", k, out)
        F.cross_entropy(out, y).backward()
        note_model("Plain", k, model, gradients=True)
        optimizer.step()
    return [model], 3, 0


def recomputed_part():
    class Inner(Plain):
        def forward(self, x):
            return self.fc2(checkpoint(lambda h: self.drop(self.fc1(h)), x, use_reentrant=False))

    model = Inner()
    optimizer = sgd(model)
    for k in range(3):
        x, y = batch()
        note_model("Inner", k, model)
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        note_model("Inner", k, model, gradients=True)
        optimizer.step()
    return [model], 3, 0


def two_passes_of_one_forward():
    model = Net()
    optimizer = sgd(model)
    for k in range(3):
        x, y = batch()
        note_model("Net", k, model)
        optimizer.zero_grad()
        out = model(x)
        F.cross_entropy(out, y).backward(retain_graph=True)
        out.pow(2).mean().backward()
        note_model("Net", k, model, gradients=True)
        optimizer.step()
    return [model], 3, 0


def without_gradients_in_training_mode():
    # As agents do when they collect experience. What comes before the first training forward is not counted.
    model = Net()
    optimizer = sgd(model)
    with torch.no_grad():
        model(batch()[0])
    for k in range(2):
        x, y = batch()
        note_model("Net", k, model)
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        note_model("Net", k, model, gradients=True)
        optimizer.step()
        with torch.no_grad():
            for j in range(3):
                note("Net_output_0", 3 * k + j, model(batch()[0]), "EVAL")
    return [model], 2, 6


SCENES = [
    plain_loop,
    accumulated_gradients,
    accumulated_and_clipped_unevenly,
    evaluation_in_between,
    several_optimizers,
    closures,
    skipped_steps,
    one_forward_for_each_view,
    one_forward_for_each_time,
    models_that_step_together,
    recomputed,
    recomputed_part,
    two_passes_of_one_forward,
    without_gradients_in_training_mode,
]

if __name__ == "__main__":
    play(SCENES)
