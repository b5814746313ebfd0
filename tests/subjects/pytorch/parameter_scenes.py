"""PyTorch training loops with unusual parameters, gradients that are not there, and values overwritten in place.

usage: python parameter_scenes.py [NOTES.npz]; knows nothing of the agent.
"""

import warnings

import torch
import torch.nn.functional as F
from gradient_scenes import Net, data, note_true
from notes import note, note_model, play
from torch import nn
from torch.nn.utils import parametrizations, parametrize


class Words(nn.Module):
    def __init__(self, words=9):
        super().__init__()
        self.embed = nn.Embedding(words, 3, sparse=True)
        self.fc = nn.Linear(3, 2)

    def forward(self, x):
        return self.fc(self.embed(x))


def sparse_gradients():
    model = Words()
    optimizers = [torch.optim.SparseAdam(model.embed.parameters()), torch.optim.SGD(model.fc.parameters(), lr=0.1)]
    for k in range(3):
        words = torch.randint(0, 9, (4, 6))
        out = model(words)
        hidden = model.embed.weight.detach()[words].requires_grad_()
        wanted = torch.autograd.grad((hidden @ model.fc.weight.T + model.fc.bias).square().sum(), hidden)[0]
        dense = torch.zeros(9, 3).index_add_(0, words.reshape(-1), wanted.reshape(-1, 3))
        note("gradient/Words_embed.weight", k, dense)
        out.square().sum().backward()
        for optimizer in optimizers:
            optimizer.step()
            optimizer.zero_grad()
    return [model], 3, 0


class Branches(nn.Module):
    def __init__(self):
        super().__init__()
        self.left = nn.Linear(5, 2)
        self.right = nn.Linear(5, 2)

    def forward(self, x, left):
        return self.left(x) if left else self.right(x)


def _branches(to_none):
    model = Branches()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    for k in range(4):
        x, _ = data()
        optimizer.zero_grad(set_to_none=to_none)
        loss = model(x, k % 2 == 0).square().mean()
        loss.backward()
        note_model("Branches", k, model, gradients=True)
        optimizer.step()
    return [model], 4, 0


def a_branch_without_gradient():
    return _branches(True)


def a_branch_with_zeros():
    return _branches(False)


def a_branch_that_is_not_zeroed():
    # The two halves take turns, so that a step is an update of both.
    model = Branches()
    halves = [torch.optim.SGD(half.parameters(), lr=0.1) for half in (model.left, model.right)]
    for k in range(4):
        x, _ = data()
        half = halves[k % 2]
        half.zero_grad()
        model(x, k % 2 == 0).square().mean().backward()
        name = ("left", "right")[k % 2]
        note(f"gradient/Branches_{name}.weight", k // 2, getattr(model, name).weight.grad)
        half.step()
    return [model], 2, 0


class Generator(nn.Linear):
    pass


class Discriminator(nn.Linear):
    pass


def adversaries():
    g, d = Generator(3, 5), Discriminator(5, 1)
    og, od = torch.optim.SGD(g.parameters(), lr=0.1), torch.optim.SGD(d.parameters(), lr=0.1)
    for k in range(2):
        x, _ = data()
        od.zero_grad()
        fake = g(torch.randn(8, 3))
        loss = F.softplus(-d(x)).mean()
        note_true(d, lambda m, x=x: F.softplus(-m(x)).mean(), k, "Discriminator")
        loss.backward()
        od.step()
        og.zero_grad()
        F.softplus(-d(fake)).mean().backward()
        note("gradient/Generator_weight", k, g.weight.grad)
        og.step()
    return [g, d], 2, 0


def penalty_and_two_passes():
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, foreach=True)
    for k in range(3):
        x, y = data()
        x.requires_grad_()
        optimizer.zero_grad()
        out = model(x)
        loss = F.cross_entropy(out, y)
        slope = torch.autograd.grad(out.sum(), x, create_graph=True)[0]
        penalty = slope.square().sum()
        note("Loss_output_0", k, loss)
        note("Loss_output_1", k, penalty)
        loss.backward(retain_graph=True)
        with warnings.catch_warnings():
            # It advises against create_graph.
            warnings.simplefilter("ignore")
            penalty.backward(create_graph=k == 2)
        note_model("Net", k, model, gradients=True)
        nn.utils.clip_grad_norm_(model.parameters(), 1e-3)
        optimizer.step()
        for parameter in model.parameters():
            parameter.grad = None
    return [model], 3, 0


def a_trunk_in_two_models():
    trunk = nn.Linear(5, 4)

    class First(nn.Module):
        def __init__(self):
            super().__init__()
            self.trunk, self.head = trunk, nn.Linear(4, 1)

        def forward(self, x):
            return self.head(self.trunk(x))

    class Second(First):
        pass

    first, second = First(), Second()
    parameters = {*first.parameters(), *second.parameters()}
    optimizer = torch.optim.SGD(sorted(parameters, key=lambda p: (p.dim(), p.shape)), lr=0.1)
    for k in range(2):
        x, _ = data()
        optimizer.zero_grad()
        (first(x).square().mean() + second(x).abs().mean()).backward()
        note_model("First", k, first, gradients=True)
        note_model("Second", k, second, gradients=True)
        optimizer.step()
    return [first, second], 2, 0


class Complex(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.randn(5, 3, dtype=torch.complex64))

    def forward(self, x):
        return (x.to(torch.complex64) @ self.w).abs()


def complex_parameters():
    model = Complex()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for k in range(2):
        x, _ = data()
        optimizer.zero_grad()
        out = model(x)
        (out.square().sum() / 2).backward()
        # The derivative of half of the sum of |xw|^2 is x^H x w.
        note("gradient/Complex_w", k, (x.T @ x).to(torch.complex64) @ model.w)
        optimizer.step()
    return [model], 2, 0


def bfloat16_parameters():
    model = Net().bfloat16()
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.1)
    for k in range(2):
        x, y = data()
        note_model("Net", k, model)
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x.bfloat16()), y)
        loss.backward()
        note("Loss_output_0", k, loss)
        note_model("Net", k, model, gradients=True)
        optimizer.step()
    return [model], 2, 0


class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(5, 4)
        self.spec = parametrizations.spectral_norm(nn.Linear(4, 4))
        self.norm = parametrizations.weight_norm(nn.Linear(4, 4))
        self.out = nn.Linear(4, 5, bias=False)
        self.out.weight = self.embed.weight

    def forward(self, x):
        return self.out(self.norm(self.spec(self.norm(self.embed(x)))))


def parametrized_and_tied():
    model = Tied()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for k in range(3):
        x = torch.randint(0, 5, (7,))
        note_model("Tied", k, model)
        optimizer.zero_grad()
        with parametrize.cached():
            out = model(x)
        F.cross_entropy(out, x).backward()
        note_model("Tied", k, model, gradients=True)
        optimizer.step()
    return [model], 3, 0


class InPlace(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(5, 4)
        self.bn = nn.BatchNorm1d(4)
        self.relu = nn.ReLU(inplace=True)
        self.drop = nn.Dropout(0.5, inplace=True)

    def forward(self, x):
        return self.drop(self.relu(self.bn(self.fc(x))) * 2).add_(1)


def overwritten_in_place():
    model = InPlace()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for k in range(3):
        x, _ = data()
        with torch.no_grad():
            hidden = F.linear(x, model.fc.weight, model.fc.bias)
            normed = F.batch_norm(hidden, None, None, model.bn.weight, model.bn.bias, training=True)
        note("fc_output_0", k, hidden)
        note("bn_input_0", k, hidden)
        note("bn_output_0", k, normed)
        note("relu_input_0", k, normed)
        note("relu_output_0", k, normed.relu())
        note("drop_input_0", k, normed.relu() * 2)
        out = model(x)
        note("drop_output_0", k, out.detach() - 1)
        optimizer.zero_grad()
        out.square().mean().backward()
        note_model("InPlace", k, model, gradients=True)
        optimizer.step()
        x.zero_()
    return [model], 3, 0


def functional_losses_in_evaluation():
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    x, y = data()
    F.cross_entropy(model(x), y).backward()
    optimizer.step()
    model.eval()
    target = torch.rand(8, 3)
    for k in range(2):
        with torch.no_grad():
            out = model(x)
            # The loss that is trained has the name that it has there.
            note("Loss_output_0", k, F.cross_entropy(out, y), "EVAL")
            note("cross_entropy_loss_output_0", k, F.cross_entropy(out, y, reduction="sum"), "EVAL")
            note("mse_loss_output_0", k, F.mse_loss(out, target), "EVAL")
            loss = F.binary_cross_entropy_with_logits(out, target)
            note("binary_cross_entropy_with_logits_loss_output_0", k, loss, "EVAL")
            note("NLLLoss_output_0", k, nn.NLLLoss()(out.log_softmax(1), y), "EVAL")
    return [model], 1, 2


def a_pass_after_the_update():
    model = Net()
    first = torch.optim.SGD(model.fc1.parameters(), lr=0.1)
    second = torch.optim.SGD(model.fc2.parameters(), lr=0.1)
    for k in range(2):
        x, y = data()
        model.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward(retain_graph=True)
        note("gradient/Net_fc1.weight", k, model.fc1.weight.grad)
        first.step()
        loss.backward()
        note("gradient/Net_fc2.weight", k, model.fc2.weight.grad)
        second.step()
    return [model], 2, 0


SCENES = [
    a_pass_after_the_update,
    sparse_gradients,
    a_branch_without_gradient,
    a_branch_with_zeros,
    a_branch_that_is_not_zeroed,
    adversaries,
]
SCENES += [penalty_and_two_passes, a_trunk_in_two_models, complex_parameters, bfloat16_parameters]
SCENES += [parametrized_and_tied, overwritten_in_place, functional_losses_in_evaluation]

if __name__ == "__main__":
    play(SCENES)
