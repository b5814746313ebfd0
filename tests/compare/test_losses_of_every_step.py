"""Two runs whose losses part between two saved steps."""

from __future__ import annotations

import json
import math

import pytest

pytest.importorskip("torch")

import torch
from torch import nn

import smd_agent.pytorch as smd
from smd_agent import create_trial
from smd_agent.cli import main
from smd_agent.compare.every_loss import LossesApart, first_loss_apart
from smd_agent.core.modes import ModeKeys


def trained(folder, apart=1000, factor=2.0):
    torch.manual_seed(0)
    model = nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
    hook = smd.Hook(str(folder), save_config=smd.SaveConfig(save_interval=50))
    hook.register_module(model)
    losses = []
    for step in range(60):
        x = torch.randn(8, 4)
        loss = model(x).square().mean() * (factor if step == apart else 1.0)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    hook.close()
    return losses


def test_the_first_step_is_told_though_it_was_not_saved(tmp_path):
    mine, its = trained(tmp_path / "one"), trained(tmp_path / "other", apart=37)
    one, other = (create_trial(str(tmp_path / name), timeout=0) for name in ("one", "other"))
    assert first_loss_apart(one, other) == LossesApart(ModeKeys.GLOBAL, 37, mine[37], its[37])
    assert first_loss_apart(one, one) is None


@pytest.mark.parametrize("factor", [2.0, math.nan])
def test_diff_says_so(tmp_path, capsys, factor):
    mine, its = trained(tmp_path / "one"), trained(tmp_path / "other", apart=37, factor=factor)
    runs = ["diff", str(tmp_path / "one"), str(tmp_path / "other")]
    capsys.readouterr()
    assert main(runs) == 1
    (line,) = [line for line in capsys.readouterr().out.splitlines() if line.startswith("Losses")]
    assert line.endswith(f"apart from GLOBAL step 37 on, {mine[37]:.7g} | {its[37]:.7g}")
    main([*runs, "--json"])
    other = its[37] if math.isfinite(factor) else "nan"
    assert json.loads(capsys.readouterr().out)["losses_apart"] == {
        **{"mode": "GLOBAL", "step": 37},
        **{"a": mine[37], "b": other},
    }
    main(["diff", runs[1], runs[1], "--json"])
    assert json.loads(capsys.readouterr().out)["losses_apart"] is None
