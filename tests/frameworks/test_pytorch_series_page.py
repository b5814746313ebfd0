"""The page of a run shows the loss of every step, of which few were saved."""

from __future__ import annotations

import json
import math

import pytest

pytest.importorskip("torch")

import numpy as np
import torch
from harness.pages import opened, page_of
from torch import nn

import smd_agent.pytorch as smd
from smd_agent.report import line_charts
from smd_agent.report.line_charts import Line, Lines

BAD = 137


def trained(folder, steps=200, bad=BAD, other_loss=False):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
    loss_function = nn.MSELoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    schedule = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.99)
    hook = smd.Hook(str(folder), save_config=smd.SaveConfig(save_interval=50), include_collections=["optimizer"])
    hook.register_module(model)
    hook.register_loss(loss_function)
    losses = []
    for step in range(steps):
        x = torch.randn(8, 4)
        optimizer.zero_grad()
        loss = loss_function(model(x * math.nan if step == bad else x), x[:, :1])
        (loss * 2 if other_loss else loss).backward()
        losses.append(loss.item())
        optimizer.step()
        schedule.step()
    hook.close()
    return losses


def data_of(page):
    return json.loads(page.split('<script type="application/json" id="data">')[1].split("</script>")[0])


def test_the_page_of_two_hundred_steps_has_two_hundred_losses(tmp_path):
    losses = trained(tmp_path / "run")
    data = data_of(page_of(tmp_path / "run"))
    (chart,) = data["charts"]["losses"]
    (line,) = chart["lines"]
    assert (chart["title"], line["steps"]) == ("MSELoss_output_0", [*range(200)])
    shown = [float(value) for value in line["values"]]
    assert np.allclose(shown, losses, rtol=1e-6, equal_nan=True)
    assert line["values"][BAD] == "nan"
    rates = next(chart for chart in data["charts"]["optimizer"] if chart["title"] == "lr")
    assert len(rates["lines"][0]["steps"]) == 200
    assert (data["first"], data["last"]) == (0, 199)
    assert [one for one in data["findings"] if one["rule"] == "LossNotFinite"]


def test_a_loss_that_is_another_one_than_the_saved_has_a_line_of_its_own(tmp_path):
    trained(tmp_path / "run", bad=None, other_loss=True)
    charts = {
        chart["title"]: chart["lines"][0]["steps"] for chart in data_of(page_of(tmp_path / "run"))["charts"]["losses"]
    }
    assert {title: len(steps) for title, steps in charts.items()} == {"MSELoss_output_0": 4, "series/loss": 200}


def test_two_runs_share_a_chart_with_all_their_steps(tmp_path):
    trained(tmp_path / "one", 120)
    trained(tmp_path / "other", 200)
    (chart,) = data_of(page_of(tmp_path / "one", tmp_path / "other"))["charts"]["losses"]
    assert [len(line["steps"]) for line in chart["lines"]] == [120, 200]


def test_of_very_many_steps_some_share_a_point_and_peaks_stay(tmp_path, monkeypatch):
    monkeypatch.setattr(line_charts, "MOST_POINTS", 50)
    losses = trained(tmp_path / "run")
    lines = Lines([])
    lines.add_series(opened(tmp_path / "run"))
    (line,) = lines.found["losses"].values()
    assert line.steps == [*range(0, 200, 4)]
    assert line.values[: BAD // 4] == [max(losses[step : step + 4]) for step in range(0, BAD - 1, 4)]
    assert math.isnan(line.values[BAD // 4])


def test_a_line_of_any_number_of_steps():
    for count in range(1, 12):
        line = Line.of(np.arange(count), np.arange(count) * 1.0, 3)
        assert (line.steps, len(line.values), line.values[-1]) == ([*range(0, count, 3)], -(-count // 3), count - 1)
