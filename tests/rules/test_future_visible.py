"""FutureVisible, on language models with and without a causal mask."""

from __future__ import annotations

from contextlib import nullcontext

import pytest
import torch
from torch import nn
from torch.nn import functional
from torch.utils.checkpoint import checkpoint

from smd_agent.rules import FutureVisible
from smd_agent.rules.finding import Severity

TOKENS, LENGTH, SIZE, WIDTH = 11, 9, 6, 8


class Model(nn.Module):
    """A transformer of tokens, or what the arguments make of it."""

    def __init__(self, mask=None, batch_first=True, two=False):
        super().__init__()
        self.embedding = nn.Embedding(TOKENS, WIDTH)
        layer = nn.TransformerEncoderLayer(WIDTH, 2, 16, dropout=0.0, batch_first=batch_first)
        self.blocks = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.head = nn.Linear(WIDTH, TOKENS)
        self.mask, self.axis, self.two = mask, int(batch_first), two

    def forward(self, x, *others):
        length = x.shape[self.axis]
        mask = nn.Transformer.generate_square_subsequent_mask(length) if self.mask else None
        return self.head(self.blocks(self.embedding(x), mask=mask))


class Attending(nn.Module):
    """Attention without a transformer around it."""

    def __init__(self, **told):
        super().__init__()
        self.embedding, self.head = nn.Embedding(TOKENS, WIDTH), nn.Linear(WIDTH, TOKENS)
        self.attention, self.told = nn.MultiheadAttention(WIDTH, 2, batch_first=True), told

    def forward(self, x):
        h = self.embedding(x)
        return self.head(self.attention(h, h, h, **self.told)[0])


def flat(logits, y):
    return functional.cross_entropy(logits.reshape(-1, TOKENS), y.reshape(-1))


def turned(logits, y):
    return functional.cross_entropy(logits.transpose(1, 2), y)


def shifted(logits, y):
    """As where the model gets all tokens, and its last prediction is left out."""
    return flat(logits[:, :-1], y[:, :-1])


def training_of(model, loss=flat, count=4, pair=None, others=()):
    def training(capture):
        net = model()
        capture(net)
        optimizer = torch.optim.SGD(net.parameters(), 0.01)
        for _ in range(count):
            tokens = torch.randint(0, TOKENS, (SIZE, LENGTH + 1))
            x, y = (tokens[:, :-1], tokens[:, 1:]) if pair is None else pair(tokens)
            optimizer.zero_grad()
            loss(net(x, *others), y).backward()
            optimizer.step()

    return training


@pytest.mark.parametrize("loss", [flat, turned, shifted])
def test_a_transformer_without_a_mask(trained, loss):
    (found,) = trained(training_of(Model, loss)).findings(FutureVisible())
    assert (found.severity, found.first_step, found.steps) == (Severity.PROBLEM, 2, 2)
    assert found.tensor == "usage/target/cross_entropy_loss_0/next_1"
    assert found.evidence["length"] == LENGTH
    assert found.evidence["layers"] == 2
    assert found.evidence["compared"] > 30
    assert trained(training_of(lambda: Model(mask=True), loss)).findings(FutureVisible()) == []


def in_time(tokens):
    return tokens[:, :-1].t(), tokens[:, 1:].t()


def test_sequences_along_the_first_axis(trained):
    (found,) = trained(training_of(lambda: Model(batch_first=False), pair=in_time)).findings(FutureVisible())
    assert found.tensor == "usage/target/cross_entropy_loss_0/next_0"
    right = training_of(lambda: Model(mask=True, batch_first=False), pair=in_time)
    assert trained(right).findings(FutureVisible()) == []


def padded(tokens):
    y = tokens[:, 1:].clone()
    y[:, -3:] = -100
    return tokens[:, :-1], y


def test_padding_that_is_ignored(trained):
    assert len(trained(training_of(Model, pair=padded)).findings(FutureVisible())) == 1


@pytest.mark.parametrize("told", [{"is_causal": True}, {}], ids=["mask", "none"])
def test_attention_by_itself(trained, told):
    if told:
        told["attn_mask"] = nn.Transformer.generate_square_subsequent_mask(LENGTH)
    found = trained(training_of(lambda: Attending(**told))).findings(FutureVisible())
    assert len(found) == (0 if told else 1)


MASKS = {
    "0 and 1": (torch.triu(torch.ones(LENGTH, LENGTH), 1), True),
    "1 and 0": (torch.tril(torch.ones(LENGTH, LENGTH)), True),
    "nothing": (torch.zeros(LENGTH, LENGTH), True),
    "of each head": (torch.ones(2 * SIZE, LENGTH, LENGTH).tril(), True),
    "a slope": (-torch.arange(LENGTH).expand(LENGTH, LENGTH) / 2, True),
    "bool": (torch.ones(LENGTH, LENGTH).triu(1).bool(), False),
    "-inf": (nn.Transformer.generate_square_subsequent_mask(LENGTH), False),
    "-1e4": (torch.ones(LENGTH, LENGTH).triu(1) * -1e4, False),
    "-5": (torch.ones(LENGTH, LENGTH).triu(1) * -5, False),
}


@pytest.mark.parametrize("name", MASKS)
def test_masks_that_are_added_to_the_scores(trained, name):
    mask, is_found = MASKS[name]
    found = trained(training_of(lambda: Attending(attn_mask=mask))).findings(FutureVisible())
    assert bool(found) is is_found
    for one in found:
        assert one.severity is Severity.PROBLEM
        assert (one.evidence["mask_min"], one.evidence["mask_max"]) == (float(mask.min()), float(mask.max()))
        assert one.cause.startswith("The mask of the attention is of floats near 0 or above")
        assert "-inf" in one.advice


def test_a_mask_of_numbers_in_a_transformer(trained):
    class Numbers(Model):
        def forward(self, x):
            return self.head(self.blocks(self.embedding(x), mask=torch.ones(LENGTH, LENGTH).tril()))

    (found,) = trained(training_of(Numbers)).findings(FutureVisible())
    assert found.evidence["layers"] == 2
    assert trained(training_of(Model)).findings(FutureVisible())[0].cause.startswith("Attention has no causal mask")


class Translator(nn.Module):
    """An encoder and a decoder; ``decode`` makes what the decoder returns, if it is not that of ``nn.Transformer``."""

    def __init__(self, mask=None, decode=None):
        super().__init__()
        self.source, self.embedding = nn.Embedding(TOKENS, WIDTH), nn.Embedding(TOKENS, WIDTH)
        self.blocks = nn.Transformer(WIDTH, 2, 1, 1, 16, dropout=0.0, batch_first=True)
        self.layer, self.head = nn.GRU(WIDTH, WIDTH, batch_first=True), nn.Linear(WIDTH, TOKENS)
        self.mask, self.decode = mask, decode

    def forward(self, x, source):
        source, x = self.source(source), self.embedding(x)
        if self.decode is None:
            return self.head(self.blocks(source, x, tgt_mask=self.mask))
        return self.head(self.decode(self, source, x))


def recurrently(net, source, x):
    return net.layer(x, net.blocks.encoder(source).mean(1)[None])[0]


@pytest.mark.parametrize("length", [LENGTH - 1, LENGTH + 1, LENGTH + 2])
def test_decoders_of_two_sequences(trained, length):
    others = (torch.randint(0, TOKENS, (SIZE, length)),)
    (found,) = trained(training_of(Translator, others=others)).findings(FutureVisible())
    assert (found.severity, found.evidence["layers"]) == (Severity.PROBLEM, 1)
    ones = torch.ones(LENGTH, LENGTH).triu(1)
    (found,) = trained(training_of(lambda: Translator(ones), others=others)).findings(FutureVisible())
    assert found.evidence["mask_max"] == 1
    for right in (lambda: Translator(ones.bool()), lambda: Translator(decode=recurrently)):
        assert trained(training_of(right, others=others)).findings(FutureVisible()) == []


def same(tokens):
    return tokens[:, :-1], tokens[:, :-1]


def other(tokens):
    return tokens[:, :-1], torch.randint(0, TOKENS, (SIZE, LENGTH))


def one_is_another(tokens):
    y = tokens[:, 1:].clone()
    y[0, 0] = (y[0, 0] + 1) % TOKENS
    tokens[0, 0] = y[0, 0]
    return tokens[:, :-1], y


def repeated(tokens):
    x = tokens[:, :1].expand(SIZE, LENGTH)
    return x, x


@pytest.mark.parametrize("pair", [same, other, one_is_another, repeated])
def test_targets_that_are_not_the_next_tokens(trained, pair):
    assert trained(training_of(Model, pair=pair)).findings(FutureVisible()) == []


def test_recurrent_models_and_those_of_two_sequences(trained):
    class Recurrent(nn.Module):
        def __init__(self):
            super().__init__()
            self.embedding, self.head = nn.Embedding(TOKENS, WIDTH), nn.Linear(WIDTH, TOKENS)
            self.layer = nn.GRU(WIDTH, WIDTH, batch_first=True)

        def forward(self, x):
            return self.head(self.layer(self.embedding(x))[0])

    assert trained(training_of(Recurrent)).findings(FutureVisible()) == []
    source = torch.randint(0, TOKENS, (SIZE, LENGTH))
    assert trained(training_of(Model, others=(source,))).verdict(FutureVisible()).findings == []


def test_as_much_as_it_takes(trained):
    run = trained(training_of(Model, count=3))
    (found,) = run.findings(FutureVisible())
    assert run.findings(FutureVisible(patience=4)) == []
    least = int(found.evidence["compared"])
    assert len(run.findings(FutureVisible(tokens=least - 9, patience=1))) == 1
    assert run.findings(FutureVisible(tokens=SIZE * LENGTH)) == []


def test_clean_trainings_are_silent(clean):
    found = {name: run.verdict(FutureVisible()).findings for name, run in clean.items()}
    assert {name: findings for name, findings in found.items() if findings} == {}


class Written(nn.Module):
    """A language model whose attention is no layer.

    Args:
        attend: gets queries, keys and values of shape (samples, heads, tokens, features).
        packed: whether what the graph saves is packed by a function of the program's.
    """

    def __init__(self, attend, packed=False):
        super().__init__()
        self.embedding, self.head = nn.Embedding(TOKENS, WIDTH), nn.Linear(WIDTH, TOKENS)
        self.mixed, self.attend, self.packed = nn.Linear(WIDTH, 3 * WIDTH), attend, packed

    def forward(self, x):
        with torch.autograd.graph.saved_tensors_hooks(unpacked, unpacked) if self.packed else nullcontext():
            h = self.embedding(x)
            heads = (one.unflatten(-1, (2, -1)).transpose(1, 2) for one in self.mixed(h).chunk(3, dim=-1))
            return self.head(h + self.attend(*heads).transpose(1, 2).flatten(2))


def unpacked(tensor):
    return tensor


def by_hand(hide):
    def attend(q, k, v):
        scores = q @ k.transpose(-2, -1) / 2
        if hide:
            scores = scores.masked_fill(torch.ones(scores.shape[-2:]).triu(1).bool(), float("-inf"))
        return scores.softmax(-1) @ v

    return attend


def by_kernel(**told):
    return lambda q, k, v: functional.scaled_dot_product_attention(q, k, v, **told)


@pytest.mark.parametrize("attend", [by_hand(False), by_kernel()], ids=["by hand", "by kernel"])
@pytest.mark.parametrize("loss", [flat, shifted])
def test_attention_without_a_layer(trained, attend, loss):
    (found,) = trained(training_of(lambda: Written(attend), loss)).findings(FutureVisible())
    assert found.severity is Severity.PROBLEM
    assert found.evidence["length"] == LENGTH
    assert found.evidence["layers"] == 1


CAUSAL = torch.ones(LENGTH, LENGTH).tril().bool()


@pytest.mark.parametrize(
    "attend",
    [by_hand(True), by_kernel(is_causal=True), by_kernel(attn_mask=CAUSAL)],
    ids=["by hand", "is_causal", "a mask"],
)
def test_attention_without_a_layer_that_is_causal(trained, attend):
    assert trained(training_of(lambda: Written(attend))).findings(FutureVisible()) == []


@pytest.mark.parametrize("attend", [by_hand(False), by_kernel()], ids=["by hand", "by kernel"])
def test_what_the_program_packs_is_left_packed(trained, attend):
    run = trained(training_of(lambda: Written(attend, packed=True)))
    assert run.findings(FutureVisible()) == []
    assert run.trial().tensor_names(regex="^usage/attention/") == []


def test_a_checkpointed_part_is_not_computed_again(trained):
    calls = []

    def attend(q, k, v):
        calls.append(1)
        return by_hand(False)(q, k, v)

    def kept(*heads):
        return checkpoint(attend, *heads, use_reentrant=False)

    run = trained(training_of(lambda: Written(kept)))
    assert len(calls) == 2 * 4
    assert run.trial().tensor_names(regex="^usage/attention/") == []


def test_attention_to_something_else_is_not_told_of(trained):
    def over_samples(q, k, v):
        return by_kernel()(q, k[..., :4, :], v[..., :4, :])

    run = trained(training_of(lambda: Written(over_samples)))
    assert run.trial().tensor_names(regex="^usage/attention/") == []
