"""RepeatedBatch, on loaders that hand out the same batch."""

from __future__ import annotations

import torch
from torch import nn

from smd_agent.rules import RepeatedBatch
from smd_agent.rules.finding import Severity


def fed(batches):
    def training(capture):
        model = nn.Linear(6, 1)
        capture(model)
        optimizer = torch.optim.SGD(model.parameters(), 0.1)
        for batch in batches():
            optimizer.zero_grad()
            model(batch).pow(2).mean().backward()
            optimizer.step()

    return training


def test_an_iterator_that_is_made_anew_in_each_step(trained):
    def batches():
        loader = torch.utils.data.DataLoader(torch.randn(64, 6), batch_size=16)
        for _ in range(10):
            yield next(iter(loader))

    (found,) = trained(fed(batches)).findings(RepeatedBatch())
    assert found.severity is Severity.NOTE
    assert (found.tensor, found.first_step, found.last_step) == ("input_digest/Linear_0", 2, 9)


def test_batches_that_come_again_in_each_epoch(trained):
    def batches():
        loader = torch.utils.data.DataLoader(torch.randn(64, 6), batch_size=16)
        for _ in range(5):
            yield from loader

    run = trained(fed(batches))
    assert run.findings(RepeatedBatch()) == []
    # Of every fourth step all batches are the same, which says nothing.
    assert trained(fed(batches), every=4).findings(RepeatedBatch()) == []


def test_it_takes_some_steps_in_a_row(trained):
    def batches():
        first, second = torch.randn(2, 16, 6)
        yield from (first, first, second, second, first, torch.randn(16, 6))

    run = trained(fed(batches))
    assert run.findings(RepeatedBatch()) == []
    assert run.findings(RepeatedBatch(patience=2))


def test_it_is_never_more_than_a_note(clean):
    found = {name: run.findings(RepeatedBatch()) for name, run in clean.items()}
    assert {one.severity for ones in found.values() for one in ones} == {Severity.NOTE}
    assert {name for name, ones in found.items() if ones} == {"all_data_in_one_batch"}
