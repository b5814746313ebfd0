"""PaddingAttended, on attention that sees padding, and on what hides it, has none, or does not read it."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn import functional

from smd_agent.rules import PaddingAttended
from smd_agent.rules.finding import Severity

PAD, TOKENS, LENGTH, SIZE, WIDTH, CLASSES = 0, 9, 14, 8, 6, 3
SHORT, ALL_LONG, ALL_SHORT = (4, 5, 6, 7, 8, 9, 12, LENGTH), (LENGTH,) * SIZE, (5,) * SIZE


def rows(lengths=SHORT, in_front=False):
    """Rows of these lengths, padded at their end or in front; no two tokens that follow each other are the same."""
    steps = torch.randint(1, TOKENS - 2, (SIZE, LENGTH))
    tokens = steps.cumsum(1) % (TOKENS - 1) + 1
    for row, length in zip(tokens, lengths, strict=True):
        row[slice(0, LENGTH - length) if in_front else slice(length, None)] = PAD
    return tokens


def layer(**told):
    return nn.TransformerEncoderLayer(WIDTH, 2, 16, dropout=0.0, **{"batch_first": True, **told})


class Net(nn.Module):
    """A classifier of tokens: an embedding, what attends, and a head over a mean that ``pick`` takes.

    Args:
        attend: gets the layers, what they are to be given, and where the padding is.
        make: makes the layers.
        pick: gets what they return, and where the padding is.
    """

    def __init__(self, attend, make, pick, **told):
        super().__init__()
        self.embedding = nn.Embedding(TOKENS, WIDTH, **told)
        self.layers, self.attend, self.pick = make(), attend, pick
        self.head = nn.Linear(WIDTH, CLASSES)

    def forward(self, tokens):
        padding = tokens == PAD
        return self.head(self.pick(self.attend(self.layers, self.embedding(tokens), padding), padding))


def first(out, padding):
    return out[:, 0]


def mean(out, padding):
    return (out * ~padding[..., None]).sum(1) / (~padding).sum(1, keepdim=True)


def last(out, padding):
    """What a causal model has at each row's last token."""
    return out[torch.arange(SIZE), (~padding).sum(1) - 1]


def encoder():
    return nn.TransformerEncoder(layer(), 2, enable_nested_tensor=False)


def attention(**told):
    return lambda: nn.MultiheadAttention(WIDTH, 2, **{"batch_first": True, **told})


def unmasked(layers, x, padding):
    return layers(x)


def attended(layers, x, padding, **told):
    return layers(x, x, x, **told)[0]


def training_of(attend=unmasked, make=encoder, pick=mean, given=rows, count=4, frozen=False, **told):
    def training(capture):
        net = Net(attend, make, pick, **told)
        net.embedding.weight.requires_grad_(not frozen)
        capture(net)
        optimizer = torch.optim.SGD([one for one in net.parameters() if one.requires_grad], 0.01)
        for _ in range(count):
            optimizer.zero_grad()
            functional.cross_entropy(net(given()), torch.randint(CLASSES, (SIZE,))).backward()
            optimizer.step()

    return training


WRONG = {
    "encoder": {},
    "first place": {"pick": first},
    "mean over all": {"pick": lambda out, padding: out.mean(1)},
    "padding_idx": {"padding_idx": PAD},
    "one layer": {"make": layer},
    "attention": {"attend": attended, "make": attention()},
    "time first": {
        "attend": lambda layers, x, padding: layers(x.transpose(0, 1)).transpose(0, 1),
        "make": lambda: layer(batch_first=False),
    },
    "tokens in time": {
        "make": lambda: layer(batch_first=False),
        "given": lambda: rows().t().contiguous(),
        "pick": lambda out, padding: out[0],
    },
    "a mask that hides nothing": {
        "attend": lambda layers, x, padding: layers(x, src_key_padding_mask=torch.zeros_like(padding))
    },
}


@pytest.mark.parametrize("name", WRONG)
def test_attention_sees_the_padding(trained, name):
    (found,) = trained(training_of(**WRONG[name])).findings(PaddingAttended())
    assert (found.severity, found.first_step, found.steps) == (Severity.WARNING, 2, 2)
    assert found.tensor.startswith("usage/layer/layers")
    assert found.tensor.endswith("/padding_read")
    padding = sum(LENGTH - length for length in SHORT) / (SIZE - 1)
    assert found.evidence == {
        "rows": SIZE,
        "padded_rows": SIZE - 1,
        "padding": pytest.approx(padding, abs=1e-5),
        "span": LENGTH - min(SHORT),
    }


def causal(layers, x, padding):
    mask = nn.Transformer.generate_square_subsequent_mask(LENGTH)
    return layers(x, mask, is_causal=True)


def hidden(layers, x, padding):
    return layers(x, src_key_padding_mask=padding)


RIGHT = {
    "masked": {"attend": hidden},
    "masked, first place": {"attend": hidden, "pick": first},
    "masked, mean over all": {"attend": hidden, "pick": lambda out, padding: out.mean(1)},
    "masked by place": {"attend": lambda layers, x, padding: layers(x, None, padding)},
    "masked by floats": {
        "attend": lambda layers, x, padding: layers(
            x, src_key_padding_mask=torch.zeros(SIZE, LENGTH).masked_fill(padding, -torch.inf)
        )
    },
    "attention, masked": {
        "attend": lambda layers, x, padding: attended(layers, x, padding, key_padding_mask=padding),
        "make": attention(),
    },
    "attention, masked by place": {
        "attend": lambda layers, x, padding: layers(x, x, x, padding)[0],
        "make": attention(),
    },
    "attention, a mask for each head": {
        "attend": lambda layers, x, padding: attended(
            layers, x, padding, attn_mask=padding[:, None].expand(-1, LENGTH, -1).repeat_interleave(2, 0)
        ),
        "make": attention(),
    },
    "causal": {"attend": causal, "pick": last},
    "all of one length": {"given": lambda: rows(ALL_LONG)},
    "all padded alike": {"given": lambda: rows(ALL_SHORT)},
    "padding in front": {"given": lambda: rows(in_front=True)},
    "little padding": {"given": lambda: rows((LENGTH - 3,) * (SIZE - 2) + (LENGTH,) * 2)},
    "one row": {"given": lambda: rows((4,) + (LENGTH,) * (SIZE - 1))},
    "another token is the padding": {"padding_idx": 3},
    "what comes after is not read": {
        "attend": lambda layers, x, padding: torch.cat([layers(x[:, :4]), x[:, 4:].detach()], 1),
        "pick": first,
    },
    "no attention": {"make": lambda: nn.Linear(WIDTH, WIDTH)},
    "a frozen embedding": {"frozen": True},
}


@pytest.mark.parametrize("name", RIGHT)
def test_padding_that_is_hidden_or_is_none(trained, name):
    verdict = trained(training_of(**RIGHT[name])).verdict(PaddingAttended())
    assert (verdict.findings, verdict.problems) == ([], [])


def turned(layers, x, padding):
    """With the mask of transformers, in which True shows a place."""
    return layers(x, src_key_padding_mask=~padding)


# No row is full: of one all of whose places are hidden attention makes nan.
PADDED = (4, 5, 6, 7, 8, 9, 12, LENGTH - 1)
UPSIDE_DOWN = {
    "encoder": {"attend": turned},
    "padding_idx": {"attend": turned, "padding_idx": PAD},
    "by floats": {
        "attend": lambda layers, x, padding: layers(
            x, src_key_padding_mask=torch.zeros(SIZE, LENGTH).masked_fill(~padding, -torch.inf)
        )
    },
    "attention": {
        "attend": lambda layers, x, padding: attended(layers, x, padding, key_padding_mask=~padding),
        "make": attention(),
    },
    "little padding": {"attend": turned, "given": lambda: rows((LENGTH - 2,) * SIZE)},
    "tokens in time": {
        "attend": lambda layers, x, padding: layers(x, src_key_padding_mask=~padding.t()),
        "make": lambda: layer(batch_first=False),
        "given": lambda: rows(PADDED).t().contiguous(),
        "pick": lambda out, padding: out[0],
    },
    "with a mask of pairs": {
        "attend": lambda layers, x, padding: layers(
            x, torch.zeros(LENGTH, LENGTH, dtype=torch.bool), src_key_padding_mask=~padding
        )
    },
}


@pytest.mark.parametrize("name", UPSIDE_DOWN)
def test_a_mask_that_is_upside_down(trained, name):
    run = trained(training_of(**{"given": lambda: rows(PADDED), **UPSIDE_DOWN[name]}))
    (found,) = run.findings(PaddingAttended())
    assert (found.severity, found.first_step, found.steps) == (Severity.WARNING, 2, 2)
    assert "upside down" in found.cause
    assert "Turn the mask" in found.advice


BESIDE_UPSIDE_DOWN = {
    "right": hidden,
    "right, causal": lambda layers, x, padding: layers(
        x, torch.ones(LENGTH, LENGTH, dtype=torch.bool).triu(1), src_key_padding_mask=padding
    ),
    "hides nothing, causal": lambda layers, x, padding: layers(
        x, torch.ones(LENGTH, LENGTH, dtype=torch.bool).triu(1), src_key_padding_mask=torch.zeros_like(padding)
    ),
    "hides words at random": lambda layers, x, padding: layers(
        x, src_key_padding_mask=padding | (torch.rand(padding.shape) < 0.5) & (torch.arange(LENGTH) > 0)
    ),
    "shows the first word too": lambda layers, x, padding: layers(
        x, src_key_padding_mask=~padding & (torch.arange(LENGTH) > 0)
    ),
}


@pytest.mark.parametrize("name", BESIDE_UPSIDE_DOWN)
def test_masks_that_are_not_upside_down(trained, name):
    run = trained(training_of(BESIDE_UPSIDE_DOWN[name], given=lambda: rows(PADDED)))
    assert run.verdict(PaddingAttended()).findings == []


class Bert(nn.Module):
    """An encoder with the arguments and the configuration of one of transformers."""

    def __init__(self, kind="bert", is_decoder=False):
        super().__init__()
        self.config = type("Config", (), {"model_type": kind, "is_decoder": is_decoder})()
        self.embeddings = nn.Embedding(TOKENS, WIDTH, padding_idx=PAD)
        self.types = nn.Embedding(2, WIDTH)
        self.key, self.head = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, CLASSES)

    def forward(self, input_ids=None, attention_mask=None, token_type_ids=None):
        x = self.embeddings(input_ids) + self.types(torch.zeros_like(input_ids))
        scores = self.key(x) @ x.transpose(1, 2)
        if attention_mask is not None:
            scores = scores.masked_fill(attention_mask[:, None] == 0, -torch.inf)
        return self.head((scores.softmax(-1) @ x)[:, 0])


class Wrapped(nn.Module):
    """A model of the program's that has such an encoder."""

    def __init__(self, call, **told):
        super().__init__()
        self.bert, self.call = Bert(**told), call

    def forward(self, tokens):
        return self.call(self.bert, tokens)


def training_of_bert(call, wrapped=False, given=rows, count=4, **told):
    def training(capture):
        net = Wrapped(call, **told) if wrapped else Bert(**told)
        capture(net)
        optimizer = torch.optim.SGD(net.parameters(), 0.01)
        for _ in range(count):
            optimizer.zero_grad()
            scores = net(given()) if wrapped else call(net, given())
            functional.cross_entropy(scores, torch.randint(CLASSES, (SIZE,))).backward()
            optimizer.step()

    return training


UNMASKED_CALLS = {
    "by name": lambda bert, tokens: bert(input_ids=tokens),
    "by place": lambda bert, tokens: bert(tokens),
    "none": lambda bert, tokens: bert(tokens, attention_mask=None),
    "ones": lambda bert, tokens: bert(tokens, torch.ones_like(tokens)),
}


@pytest.mark.parametrize("wrapped", [False, True])
@pytest.mark.parametrize("name", UNMASKED_CALLS)
def test_an_encoder_of_transformers(trained, name, wrapped):
    (found,) = trained(training_of_bert(UNMASKED_CALLS[name], wrapped)).findings(PaddingAttended())
    assert found.tensor == f"usage/layer/{'bert' if wrapped else 'Bert'}/padding_read"
    assert (found.evidence["padded_rows"], found.steps) == (SIZE - 1, 2)


RIGHT_BERTS = {
    "by name": training_of_bert(lambda bert, tokens: bert(tokens, attention_mask=tokens != PAD)),
    "by place": training_of_bert(lambda bert, tokens: bert(tokens, (tokens != PAD).long())),
    "wrapped": training_of_bert(lambda bert, tokens: bert(tokens, (tokens != PAD).float()), wrapped=True),
    "all of one length": training_of_bert(lambda bert, tokens: bert(tokens), given=lambda: rows(ALL_LONG)),
    "another kind": training_of_bert(lambda bert, tokens: bert(tokens), kind="gpt2"),
    "decoder": training_of_bert(lambda bert, tokens: bert(tokens), is_decoder=True),
}


@pytest.mark.parametrize("name", RIGHT_BERTS)
def test_an_encoder_that_is_used_rightly(trained, name):
    verdict = trained(RIGHT_BERTS[name]).verdict(PaddingAttended())
    assert (verdict.findings, verdict.problems) == ([], [])


def test_an_encoder_whose_mask_is_upside_down(trained):
    call = training_of_bert(lambda bert, tokens: bert(tokens, (tokens == PAD).long()), given=lambda: rows(PADDED))
    (found,) = trained(call).findings(PaddingAttended())
    assert "upside down" in found.cause


def test_as_much_as_it_takes(trained):
    def shorter(count, by):
        return lambda: rows((LENGTH - by,) * count + (LENGTH,) * (SIZE - count))

    assert len(trained(training_of(given=shorter(2, 4))).findings(PaddingAttended())) == 1
    run = trained(training_of(given=shorter(4, 3), count=3))
    assert run.findings(PaddingAttended()) == []
    assert len(run.findings(PaddingAttended(padding=3))) == 1
    assert run.findings(PaddingAttended(padding=3, patience=4)) == []
    assert run.findings(PaddingAttended(padding=3, share=0.6)) == []


def test_clean_trainings_are_silent(clean):
    found = {name: run.verdict(PaddingAttended()).findings for name, run in clean.items()}
    assert {name: findings for name, findings in found.items() if findings} == {}
