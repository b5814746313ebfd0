"""PyTorch trainings whose losses are not what stands in a plain loop: who owns them, which one is trained.

usage: python printed_losses.py SCENE; prints what a run with the agent must leave alike: each trained or evaluated
loss.
"""

import sys

import torch
import torch.nn.functional as F
from torch import nn


def data(k):
    generator = torch.Generator().manual_seed(k)
    return torch.randn(8, 4, generator=generator), torch.randint(0, 3, (8,), generator=generator)


def fit(parameters, trained, evaluated=None, model=None, steps=3):
    optimizer = torch.optim.SGD(parameters, lr=0.1)
    for k in range(steps):
        loss = trained(*data(k))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print("TRAIN", repr(loss.item()))
        if evaluated is not None:
            model.eval()
            with torch.no_grad():
                print("EVAL", repr(evaluated(*data(10 + k)).item()))
            model.train()


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.output = nn.Linear(4, 4)

    def forward(self, x):
        return self.output(x)


class CosineSimilarityLoss(nn.Module):
    """A loss that owns the model."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, x, y):
        return (torch.cosine_similarity(self.model(x), self.model(-x)) - y / 3).square().mean()


def loss_owns_the_model():
    loss = CosineSimilarityLoss(Block())
    fit(loss.parameters(), loss)


class Classifier(nn.Module):
    """Works out a loss of its own, which is returned under its name."""

    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 3)

    def forward(self, x, y):
        scores = self.fc(x)
        return {"loss": scores.square().mean(), "scores": scores}


def another_loss_than_the_models_own():
    model = Classifier()

    def smooth(x, y):
        return F.cross_entropy(model(x, y)["scores"], y, label_smoothing=0.1)

    fit(model.parameters(), smooth, smooth, model)


def the_models_own_loss():
    model = Classifier()
    fit(model.parameters(), lambda x, y: model(x, y)["loss"], lambda x, y: model(x, y)["loss"], model)


class Distance(nn.Module):
    def forward(self, a, b):
        return torch.cdist(a, b)


class Reducer(nn.Module):
    def forward(self, values):
        return values.mean()


class ProxyLoss(nn.Module):
    """Made of parts, as libraries for metric learning have it."""

    def __init__(self):
        super().__init__()
        self.proxies = nn.Parameter(torch.eye(3, 4))
        self.distance, self.reducer, self.outer_loss = Distance(), Reducer(), Reducer()

    def forward(self, embedded, y):
        far = self.distance(embedded, self.proxies)
        return self.outer_loss(self.reducer(far.gather(1, y[:, None])))


def loss_in_parts():
    net, loss = Block(), ProxyLoss()
    fit([*net.parameters(), *loss.parameters()], lambda x, y: loss(net(x), y))


class PairsLoss(nn.Module):
    """Returns a matrix."""

    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(1))

    def forward(self, a):
        return torch.cdist(a, a) * self.scale


def loss_that_is_a_matrix():
    net, loss = Block(), PairsLoss()
    fit([*net.parameters(), *loss.parameters()], lambda x, y: (loss(net(x)) - 1).square().mean())


def loss_of_each_row():
    net, loss = nn.Linear(4, 3), nn.CrossEntropyLoss(reduction="none")
    fit(net.parameters(), lambda x, y: loss(net(x), y).mean(), lambda x, y: loss(net(x), y).mean(), net)


def functional():
    net = nn.Linear(4, 3)
    fit(net.parameters(), lambda x, y: F.cross_entropy(net(x), y), lambda x, y: F.cross_entropy(net(x), y), net)


def functional_of_several():
    net = nn.Linear(4, 4)

    def total(x, y):
        made = net(x)
        return F.mse_loss(made, x) + 0.1 * F.l1_loss(made, x)

    fit(net.parameters(), total, total, net)


def one_of_several_in_evaluation():
    net = nn.Linear(4, 3)

    def total(x, y):
        scores = net(x)
        return F.cross_entropy(scores, y) + 0.1 * F.mse_loss(scores, torch.zeros_like(scores))

    fit(net.parameters(), total, lambda x, y: F.cross_entropy(net(x), y), net)


class Adding(nn.Module):
    """Returns a loss that is the sum of two."""

    def __init__(self):
        super().__init__()
        self.net = nn.Linear(4, 3)

    def forward(self, x, y):
        scores = self.net(x)
        return scores, F.cross_entropy(scores, y) + 0.1 * F.mse_loss(scores, torch.zeros_like(scores))


def the_models_own_sum():
    model = Adding()
    fit(model.parameters(), lambda x, y: model(x, y)[1], lambda x, y: model(x, y)[1], model)


def evaluated_with_gradients():
    """Evaluations without no_grad; there is a backward pass in the last of them, for the sake of its input."""
    net = nn.Linear(4, 4)

    def evaluated(x, y):
        with torch.enable_grad():
            return F.cross_entropy(net(x)[2:], y[2:])

    fit(net.parameters(), lambda x, y: F.cross_entropy(net(x), y), evaluated, net)
    net.eval()
    x, y = data(20)
    loss = F.cross_entropy(net(x.requires_grad_()), y)
    loss.backward()
    print("EVAL", repr(loss.item()))


def sum_of_many():
    """The net is called once for each part, as over the steps of an episode."""
    net = nn.Linear(4, 4)

    def total(x, y):
        parts = [F.smooth_l1_loss(net(row).sum(), label) * 0.5 for row, label in zip(x, y.float(), strict=True)]
        return torch.stack(parts).sum() + torch.stack([net(row).square().sum() for row in x]).sum()

    fit(net.parameters(), total)


class Gpt(nn.Module):
    """Returns scores and loss, as small language models have it."""

    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 3)

    def forward(self, x, y):
        scores = self.fc(x)
        return scores, F.cross_entropy(scores, y)


def loss_in_a_tuple():
    model = Gpt()
    fit(model.parameters(), lambda x, y: model(x, y)[1], lambda x, y: model(x, y)[1], model)


def compiled_loss_in_a_tuple():
    model = Gpt()
    compiled = torch.compile(model, backend="aot_eager")
    fit(model.parameters(), lambda x, y: compiled(x, y)[1], lambda x, y: compiled(x, y)[1], model)


def compiled_model():
    model = nn.Linear(4, 3)
    compiled = torch.compile(model, backend="aot_eager")
    fit(
        model.parameters(),
        lambda x, y: F.cross_entropy(compiled(x), y),
        lambda x, y: F.cross_entropy(compiled(x), y),
        model,
    )


def compiled_function():
    net = nn.Linear(4, 3)

    @torch.compile(backend="aot_eager")
    def loss(scores, y):
        return F.cross_entropy(scores, y)

    fit(net.parameters(), lambda x, y: loss(net(x), y), lambda x, y: loss(net(x), y), net)


def scripted_in_the_middle():
    net = nn.Linear(4, 3)

    def evaluated(x, y):
        scripted = torch.jit.script(nll)
        return scripted(net(x), y)

    fit(net.parameters(), lambda x, y: torch.jit.script(cross_entropy)(net(x), y), evaluated, net, 2)


def cross_entropy(scores: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return F.cross_entropy(scores, y)


def nll(scores: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return F.nll_loss(scores.log_softmax(1), y)


class Criterion(nn.modules.loss._Loss):
    def forward(self, scores, y):
        return (scores.logsumexp(1) - scores.gather(1, y[:, None])[:, 0]).mean()


class Result:
    """What a model returns that is no container."""

    def __init__(self, loss):
        self.score, self.loss = 0.0, loss


class Slots:
    __slots__ = ("loss",)

    def __init__(self, loss):
        self.loss = loss


class Returning(nn.Module):
    """Works its loss out by hand and returns it in something, or keeps it."""

    def __init__(self, returned):
        super().__init__()
        self.net, self.returned = nn.Linear(4, 3), returned

    def forward(self, x, y):
        scores = self.net(x)
        self.kept = (scores.logsumexp(1) - scores.gather(1, y[:, None])[:, 0]).mean()
        return self.returned(self.kept, scores)


def by_hand(returned, loss_of):
    model = Returning(returned)
    fit(model.parameters(), lambda x, y: loss_of(model(x, y)), lambda x, y: loss_of(model(x, y)), model)


def by_hand_in_an_object():
    by_hand(lambda loss, scores: Result(loss), lambda result: result.loss)


def by_hand_in_slots():
    by_hand(lambda loss, scores: Slots(loss), lambda result: result.loss)


def by_hand_below():
    by_hand(lambda loss, scores: (scores, {"total": loss}), lambda result: result[1]["total"])


def by_hand_and_kept():
    model = Returning(lambda loss, scores: scores)

    def loss(x, y):
        model(x, y)
        return model.kept

    fit(model.parameters(), loss, loss, model)


def loss_of_another_name():
    net, loss = nn.Linear(4, 3), Criterion()
    fit(net.parameters(), lambda x, y: loss(net(x), y), lambda x, y: loss(net(x), y), net)


torch.manual_seed(0)
torch.set_num_threads(1)
globals()[sys.argv[1]]()
