"""EndNeverATarget, on language models that are taught where a sequence ends, and on others."""

from __future__ import annotations

import pytest
import torch
from harness.padded_rows import END, PAD, SIZE, Net, loss_of, training_of

from smd_agent.rules import EndNeverATarget
from smd_agent.rules.finding import Severity

IGNORED = -100


def labels(x):
    """Labels as of a collator that ignores all padding."""
    return x.masked_fill(x == PAD, IGNORED)


def cut(net, x):
    return loss_of(net(x)[:, :-1], labels(x)[:, 1:])


def by_the_data(net, x):
    return loss_of(net(x[:, :-1]), labels(x[:, 1:]))


@pytest.mark.parametrize("step", [cut, by_the_data])
def test_the_end_is_the_padding(trained, step):
    (found,) = trained(training_of(step, end=PAD)).findings(EndNeverATarget())
    assert (found.severity, found.first_step, found.steps) == (Severity.WARNING, 2, 2)
    assert found.tensor == "usage/target/cross_entropy_loss_0/padded_1"
    assert found.evidence == {"padded": SIZE - 1}
    assert trained(training_of(step, end=END)).findings(EndNeverATarget()) == []


def first_counts(net, x):
    wanted = labels(x)
    for row in wanted:
        row[(row == IGNORED).nonzero()[:1]] = PAD
    return loss_of(net(x)[:, :-1], wanted[:, 1:])


def all_counts(net, x):
    return loss_of(net(x)[:, :-1], x[:, 1:])


def nothing_counts_but_one(net, x):
    """As of fine-tuning, where what is asked is ignored too, and all padding."""
    wanted = labels(x)
    wanted[:, :3] = IGNORED
    return loss_of(net(x)[:, :-1], wanted[:, 1:])


def few_rows(net, x):
    return cut(net, torch.cat((x[:3], torch.randint(2, 11, (3, x.shape[1])))))


@pytest.mark.parametrize(
    "step, finds", [(first_counts, 0), (all_counts, 0), (few_rows, 0), (nothing_counts_but_one, 1)]
)
def test_by_what_counts(trained, step, finds):
    assert len(trained(training_of(step, end=PAD)).findings(EndNeverATarget())) == finds


STOP = 2


class Config:
    """The configuration of a model of transformers."""

    def __init__(self, end):
        self.eos_token_id = end


def stopped(end=PAD, lengths=(9, 10, 11, 13), multiple=1, more=0, config=PAD):
    """A training on rows that all end in a full stop, then in this token; padded to the longest row of each batch."""

    def training(capture):
        net = Net()
        net.config = Config(config)
        capture(net)
        optimizer = torch.optim.SGD(net.parameters(), 0.01)
        for longest in lengths:
            size = -(-(longest + more) // multiple) * multiple
            x = torch.full((SIZE, size), PAD)
            for row, length in zip(x, (4, 5, 6, 7, longest - 1, longest), strict=True):
                row[: length - 2] = torch.randint(3, 11, (length - 2,))
                row[length - 2], row[length - 1] = STOP, end
            optimizer.zero_grad()
            cut(net, x).backward()
            optimizer.step()

    return training


def test_the_end_is_the_padding_and_a_full_stop_stands_before_it(trained):
    (found,) = trained(stopped()).findings(EndNeverATarget())
    assert (found.severity, found.tensor) == (Severity.WARNING, "usage/target/cross_entropy_loss_0/padded_1")


def test_batches_of_one_length(trained):
    """Rows with an end that the model does not know of may look the same, where they are padded by one."""
    for training in (stopped(lengths=(10,) * 5), stopped(end=END, lengths=(10,) * 5, more=1)):
        (found,) = trained(training).findings(EndNeverATarget())
        assert found.severity is Severity.NOTE


ENDED = {
    "by another token": stopped(end=END, config=END),
    "by another token than the model has": stopped(end=END),
    "by another token than the model has, padded to several": stopped(end=END, multiple=16),
    "by another token, padded to a multiple": stopped(end=END, lengths=(15, 23, 31, 39, 15), multiple=8),
    "by a token that is not known": stopped(config=None),
}


@pytest.mark.parametrize("name", ENDED)
def test_rows_that_end_in_a_token_of_their_own(trained, name):
    assert trained(ENDED[name]).verdict(EndNeverATarget()).findings == []


def test_as_much_as_it_takes(trained):
    run = trained(training_of(cut, end=PAD, count=3))
    assert len(run.findings(EndNeverATarget(rows=SIZE - 1))) == 1
    assert run.findings(EndNeverATarget(rows=SIZE)) == []
    assert run.findings(EndNeverATarget(patience=4)) == []


def test_clean_trainings_are_silent(clean):
    found = {name: run.verdict(EndNeverATarget()).findings for name, run in clean.items()}
    assert {name: findings for name, findings in found.items() if findings} == {}
