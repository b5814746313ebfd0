"""A training whose batches have another number of rows in each step, every step of which is saved whole."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")

import torch
from torch import nn
from torch.nn import functional

import smd_agent.pytorch as smd

ROWS = (61, 64, 1, 30, 50, 84, 21, 83, 2, 37)


@pytest.mark.parametrize("shape", [(1, 28, 28), (784,)])
def test_batches_of_any_number_of_rows(out, shape, capsys):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Flatten(), nn.Linear(784, 10))
    optimizer = torch.optim.SGD(model.parameters(), 0.01, 0.9)
    hook = smd.Hook(out, save_config=smd.SaveConfig(save_interval=1), save_all=True)
    hook.register_module(model)
    for rows in ROWS:
        optimizer.zero_grad()
        loss = functional.cross_entropy(model(torch.rand(rows, *shape)), torch.randint(0, 10, (rows,)))
        loss.backward()
        optimizer.step()
    hook.close()
    assert "failed" not in capsys.readouterr().err
    trial = smd.create_trial(out)
    steps = [*range(len(ROWS))]
    assert trial.steps() == steps
    names = [*trial.tensor_names(collection="weights"), *trial.tensor_names(collection="gradients")]
    names += [name for name in trial.tensor_names() if name.startswith(("usage/input/", "input_digest/", "update/"))]
    kinds = {name.partition("/")[0] for name in names}
    assert {"gradient", "usage", "input_digest", "update"} < kinds
    missing = {name: trial.tensor(name).steps() for name in names if trial.tensor(name).steps() != steps}
    if shape == (784,):
        # One row alone has no columns.
        missing = {name: found for name, found in missing.items() if "_scale" not in name and "_column" not in name}
    assert missing == {}
    (output,) = [name for name in trial.tensor_names() if name.endswith("Linear_output_0") or name == "1_output_0"] or [
        None
    ]
    if output is not None:
        assert [len(trial.tensor(output).value(step)) for step in steps] == [*ROWS]
