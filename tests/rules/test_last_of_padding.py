"""LastOfPadding, on recurrent layers whose last step comes after padding, and on those that are used rightly."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn import functional
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from smd_agent.rules import LastOfPadding
from smd_agent.rules.finding import Severity

PAD, TOKENS, LENGTH, SIZE, WIDTH, CLASSES = 0, 9, 14, 8, 6, 3
SHORT, ALL_LONG = (4, 5, 6, 7, 8, 9, 12, LENGTH), (LENGTH,) * SIZE


class Net(nn.Module):
    """A classifier of tokens: an embedding, a recurrent layer, and a head that gets what ``pick`` takes of it.

    Args:
        pick: gets the layer, what it is to be given, the tokens and the lengths of rows.
        layer: makes the recurrent layer.
        embed: of the embedding's class.
        width: of what ``pick`` takes.
    """

    def __init__(self, pick, layer=nn.GRU, width=WIDTH, change=lambda x: x, **told):
        super().__init__()
        self.embedding = nn.Embedding(TOKENS, WIDTH)
        self.layer = layer(WIDTH, WIDTH, **{"batch_first": True, **told})
        self.head, self.pick, self.change = nn.Linear(width, CLASSES), pick, change

    def forward(self, tokens, lengths):
        return self.head(self.pick(self.layer, self.change(self.embedding(tokens)), lengths))


def rows(lengths=SHORT, in_front=False):
    """Rows of these lengths, padded at their end or in front; no two tokens that follow each other are the same."""
    steps = torch.randint(1, TOKENS - 2, (SIZE, LENGTH))
    tokens = steps.cumsum(1) % (TOKENS - 1) + 1
    for row, length in zip(tokens, lengths, strict=True):
        if in_front:
            row[: LENGTH - length] = PAD
        else:
            row[length:] = PAD
    return tokens


def training_of(pick, make=rows, lengths=SHORT, count=4, backward=None, **told):
    def training(capture):
        net = Net(pick, **told)
        capture(net)
        optimizer = torch.optim.SGD(net.parameters(), 0.01)
        for _ in range(count):
            optimizer.zero_grad()
            logits = net(make(lengths), torch.tensor(lengths))
            y = torch.randint(0, CLASSES, (SIZE,))
            if backward is None:
                functional.cross_entropy(logits, y).backward()
            else:
                backward(net, logits, y)
            optimizer.step()

    return training


def last(layer, x, lengths):
    return layer(x)[0][:, -1]


def last_of_its_own_axis(layer, x, lengths):
    return layer(x.transpose(0, 1))[0][-1]


def state(layer, x, lengths):
    found = layer(x)[1]
    return (found[0] if isinstance(found, tuple) else found)[-1]


def both(layer, x, lengths):
    out, states = layer(x)
    return out[:, -1] + states[-1]


WRONG = {
    "last": (last, {}),
    "state": (state, {}),
    "both": (both, {}),
    "LSTM": (last, {"layer": nn.LSTM}),
    "state of an LSTM": (state, {"layer": nn.LSTM, "num_layers": 2}),
    "RNN": (last, {"layer": nn.RNN, "num_layers": 2}),
    "time first": (last_of_its_own_axis, {"batch_first": False}),
    "tokens in time": (
        lambda layer, x, lengths: layer(x)[0][-1],
        {"batch_first": False, "make": lambda lengths: rows(lengths).t()},
    ),
    "both directions": (last, {"bidirectional": True, "width": 2 * WIDTH}),
    "dropout": (last, {"change": nn.Dropout(0.5)}),
}


@pytest.mark.parametrize("name", WRONG)
def test_the_last_step_comes_after_padding(trained, name):
    pick, told = WRONG[name]
    (found,) = trained(training_of(pick, **told)).findings(LastOfPadding())
    assert (found.severity, found.first_step, found.steps) == (Severity.WARNING, 2, 2)
    assert found.tensor == "usage/layer/layer/last_only"
    assert found.evidence["rows"] == SIZE
    assert found.evidence["padded_rows"] == SIZE - 1
    assert found.evidence["padding"] == pytest.approx(sum(LENGTH - length for length in SHORT) / (SIZE - 1), abs=1e-5)
    assert trained(training_of(pick, lengths=ALL_LONG, **told)).verdict(LastOfPadding()).findings == []


def packed(layer, x, lengths):
    return layer(pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False))


def state_of_packed(layer, x, lengths):
    states = packed(layer, x, lengths)[1]
    return (states[0] if isinstance(states, tuple) else states)[-1]


def padded_again(layer, x, lengths):
    return pad_packed_sequence(packed(layer, x, lengths)[0], batch_first=True)[0]


def last_of_packed(layer, x, lengths):
    return padded_again(layer, x, lengths)[:, -1]


@pytest.mark.parametrize(
    "told", [{}, {"layer": nn.LSTM, "num_layers": 2}, {"bidirectional": True, "width": 2 * WIDTH}], ids=str
)
def test_packed_rows_of_which_only_the_longest_are_used(trained, told):
    (found,) = trained(training_of(last_of_packed, **told)).findings(LastOfPadding())
    assert (found.severity, found.steps) == (Severity.PROBLEM, 2)
    assert found.evidence == {"rows": SIZE, "shorter_rows": SIZE - 1}
    assert found.cause.startswith("Of the packed rows only the longest")
    assert trained(training_of(last_of_packed, lengths=ALL_LONG, **told)).findings(LastOfPadding()) == []


def at_their_ends(out, lengths):
    return out[torch.arange(SIZE), lengths - 1]


def gathered(layer, x, lengths):
    places = (lengths - 1)[:, None, None].expand(-1, 1, WIDTH)
    return layer(x)[0].gather(1, places).squeeze(1)


def mean(layer, x, lengths):
    return layer(x)[0].mean(1)


def masked_mean(layer, x, lengths):
    out = layer(x)[0]
    counts = torch.arange(LENGTH)[None] < lengths[:, None]
    return (out * counts[..., None]).sum(1) / lengths[:, None]


def most(layer, x, lengths):
    return layer(x)[0].max(1).values


def attended(layer, x, lengths):
    out, states = layer(x)
    weights = (out @ states[-1][..., None]).softmax(1)
    return (weights * out).sum(1)


def turned(layer, x, lengths):
    return layer(x.flip(1))[0][:, -1]


def last_and_state_of_packed(layer, x, lengths):
    out, states = packed(layer, x, lengths)
    return pad_packed_sequence(out, batch_first=True)[0][:, -1] + states[-1]


def states_of_both(layer, x, lengths):
    return torch.cat(tuple(layer(x)[1]), dim=1)


RIGHT = {
    "gather": (gathered, {}),
    "index": (lambda layer, x, lengths: at_their_ends(layer(x)[0], lengths), {}),
    "mean": (mean, {}),
    "masked mean": (masked_mean, {}),
    "maximum": (most, {}),
    "attention": (attended, {}),
    "padding in front": (last, {"make": lambda lengths: rows(lengths, in_front=True)}),
    "turned": (turned, {}),
    "packed, state": (state_of_packed, {}),
    "packed LSTM, state": (state_of_packed, {"layer": nn.LSTM, "num_layers": 2}),
    "packed, index": (lambda *given: at_their_ends(padded_again(*given), given[-1]), {}),
    "packed, mean": (lambda *given: padded_again(*given).mean(1), {}),
    "packed, last and state": (last_and_state_of_packed, {}),
    "states of both directions": (states_of_both, {"bidirectional": True, "width": 2 * WIDTH}),
}


@pytest.mark.parametrize("name", RIGHT)
def test_layers_that_are_used_rightly(trained, name):
    pick, told = RIGHT[name]
    run = trained(training_of(pick, **told))
    assert run.findings(LastOfPadding()) == []


def one_by_one(net, logits, y):
    """Two passes, of which the first one uses the last step alone."""
    functional.cross_entropy(logits, y).backward(retain_graph=True)
    net.kept.square().mean().backward()


def test_a_second_pass_that_uses_the_other_steps(trained):
    def keeping(layer, x, lengths):
        net.kept = layer(x)[0]
        return net.kept[:, -1]

    net = nn.Identity()
    training = training_of(keeping, backward=lambda _, logits, y: one_by_one(net, logits, y))
    assert trained(training).findings(LastOfPadding()) == []


def test_a_pass_that_uses_nothing_of_the_layer(trained):
    training = training_of(last, backward=lambda net, logits, y: net.head(torch.ones(WIDTH)).sum().backward())
    assert trained(training).verdict(LastOfPadding()).findings == []


def evenly(lengths):
    """Rows that end in two of one token here and there, as happens by chance: each in another one."""
    tokens = rows(ALL_LONG)
    tokens[:4, -1] = tokens[:4, -2]
    tokens[0, -2:], tokens[1, -2:] = 1, 2
    return tokens


def test_rows_that_end_in_the_same_token_by_chance(trained):
    assert trained(training_of(last, make=evenly)).findings(LastOfPadding()) == []


def shorter(count, by):
    return (LENGTH - by,) * count + (LENGTH,) * (SIZE - count)


def test_as_much_as_it_takes(trained):
    assert len(trained(training_of(last, lengths=shorter(2, 4))).findings(LastOfPadding())) == 1
    assert trained(training_of(last, lengths=shorter(1, 4))).findings(LastOfPadding()) == []
    run = trained(training_of(last, lengths=shorter(SIZE, 3), count=3))
    assert run.findings(LastOfPadding()) == []
    assert len(run.findings(LastOfPadding(padding=3))) == 1
    assert run.findings(LastOfPadding(padding=3, patience=4)) == []
    run = trained(training_of(last_of_packed, lengths=shorter(1, 1)))
    assert run.findings(LastOfPadding()) == []
    assert len(run.findings(LastOfPadding(share=0.125))) == 1


def of_numbers(make, pick=last, length=LENGTH, **told):
    """A training on rows of steps of numbers that ``make`` gets filled with random ones, and with which lengths."""

    def training(capture):
        net = Recordings(pick, **told)
        capture(net)
        optimizer = torch.optim.SGD(net.parameters(), 0.01)
        for _ in range(4):
            x = torch.randn(SIZE, length, WIDTH)
            make(x)
            optimizer.zero_grad()
            functional.cross_entropy(net(x, torch.tensor(SHORT)), torch.randint(0, CLASSES, (SIZE,))).backward()
            optimizer.step()

    return training


class Recordings(Net):
    """The same of recordings, which no embedding comes before."""

    def __init__(self, pick, **told):
        super().__init__(pick, **told)
        self.embedding = nn.Identity()


def padded_with(value, in_front=False):
    def make(x):
        for row, length in zip(x, SHORT, strict=True):
            row[slice(LENGTH - length) if in_front else slice(length, None)] = value

    return make


def from_the_origin(x):
    x[:, 0] = 0
    padded_with(0)(x)


WRONG_NUMBERS = {
    "last": (padded_with(0), last, {}),
    "another value": (padded_with(-999.0), last, {}),
    "a step of several numbers": (padded_with(torch.arange(float(WIDTH))), state, {"layer": nn.LSTM}),
    "time first": (padded_with(0), last_of_its_own_axis, {"batch_first": False}),
    "rows that begin with it": (from_the_origin, last, {}),
    "a layer before it": (padded_with(0), last, {"change": nn.Linear(WIDTH, WIDTH)}),
}


@pytest.mark.parametrize("name", WRONG_NUMBERS)
def test_steps_of_numbers_that_end_in_padding(trained, name):
    make, pick, told = WRONG_NUMBERS[name]
    (found,) = trained(of_numbers(make, pick, **told)).findings(LastOfPadding())
    assert (found.severity, found.tensor) == (Severity.WARNING, "usage/layer/layer/last_only")
    padding = pytest.approx(sum(LENGTH - length for length in SHORT) / (SIZE - 1), abs=1e-5)
    assert found.evidence == {"rows": SIZE, "padded_rows": SIZE - 1, "padding": padding, "steps": LENGTH}


def nothing(x):
    pass


def with_pauses(x):
    """Nothing happens at the end of the rows, nor now and then in one of them."""
    padded_with(0)(x)
    x[-1, 5] = 0


def read_after_a_delay(x):
    x[:, 4:] = 0


def events(x):
    """Few steps have any."""
    x *= torch.rand(SIZE, LENGTH, 1) < 0.1


def held(x):
    """A row ends in what it has come to, which is another one in each."""
    for row, length in zip(x, SHORT, strict=True):
        row[length - 1 :] = row[length - 1].clone()


RIGHT_NUMBERS = {
    "not padded": (nothing, last),
    "padded in front": (padded_with(0, in_front=True), last),
    "pauses": (with_pauses, last),
    "a delay": (read_after_a_delay, last),
    "events": (events, last),
    "held": (held, last),
    "the true last step": (padded_with(0), gathered),
    "packed": (padded_with(0), state_of_packed),
    "a mean": (padded_with(0), masked_mean),
}


@pytest.mark.parametrize("name", RIGHT_NUMBERS)
def test_steps_of_numbers_that_are_used_rightly(trained, name):
    assert trained(of_numbers(*RIGHT_NUMBERS[name])).findings(LastOfPadding()) == []


@pytest.mark.parametrize("steps, is_found", [(4, False), (6, True)])
def test_padding_of_little_of_a_recording_is_no_fault(trained, steps, is_found):
    def make(x):
        x[1:4, -steps:] = 0
        x[4:, -steps - 1 :] = 0

    assert len(trained(of_numbers(make, length=50)).findings(LastOfPadding())) == is_found


def test_clean_trainings_are_silent(clean):
    found = {name: run.verdict(LastOfPadding()).findings for name, run in clean.items()}
    assert {name: findings for name, findings in found.items() if findings} == {}
