"""Metrics that callbacks and arguments of trainers go by, and those that go by one the wrong way."""

from __future__ import annotations

import importlib.util

import pytest

for package in ("torch", "lightning", "transformers"):
    if importlib.util.find_spec(package) is None:
        pytest.skip(f"there is no {package}", allow_module_level=True)

import lightning
import torch
import transformers
from lightning.pytorch.callbacks import EarlyStopping, ModelCheckpoint
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import smd_agent.pytorch as smd
from smd_agent.rules import MonitoredWrongWay
from smd_agent.rules.judging import Judging


class Module(lightning.LightningModule):
    """A classifier that logs its loss and its accuracy."""

    def __init__(self):
        super().__init__()
        self.net = nn.Linear(4, 2)

    def training_step(self, batch):
        return nn.functional.cross_entropy(self.net(batch[0]), batch[1])

    def validation_step(self, batch):
        outputs = self.net(batch[0])
        self.log("val_loss", nn.functional.cross_entropy(outputs, batch[1]))
        self.log("val/acc", (outputs.argmax(1) == batch[1]).float().mean())

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), 0.1)


class Classifier(nn.Module):
    """What the trainer of transformers is given."""

    def __init__(self):
        super().__init__()
        self.net = nn.Linear(4, 2)

    def forward(self, inputs, labels=None):
        outputs = self.net(inputs)
        return {"loss": nn.functional.cross_entropy(outputs, labels), "logits": outputs}


@pytest.fixture
def hook(tmp_path):
    made = smd.Hook(str(tmp_path / "run"), save_config=smd.SaveConfig(save_interval=1), include_collections=["usage"])
    yield made
    made.close()


def numbers_of(hook):
    hook.close()
    trial = smd.create_trial(hook.out_dir, timeout=0)
    return trial, {
        name.removeprefix("usage/monitor/"): trial.tensor(name).value(trial.tensor(name).steps()[0]).item()
        for name in trial.tensor_names(regex="^usage/monitor/")
    }


def found_in(trial):
    judging = Judging(trial, [MonitoredWrongWay()])
    judging.take_new()
    return [found.tensor for found in judging.verdict().findings]


@pytest.mark.filterwarnings("ignore")
def test_callbacks_of_lightning(hook, tmp_path):
    module = Module()
    hook.register_module(module.net)
    rows = DataLoader(TensorDataset(torch.randn(16, 4), torch.arange(16) % 2), batch_size=8)
    callbacks = [
        EarlyStopping("val/acc", mode="min"),
        ModelCheckpoint(tmp_path / "best", monitor="val_loss", mode="min"),
        ModelCheckpoint(tmp_path / "all", monitor="val_loss", mode="max", save_top_k=-1, filename="{epoch}"),
        ModelCheckpoint(tmp_path / "last"),
    ]
    quiet = {"logger": False, "enable_progress_bar": False, "enable_model_summary": False}
    lightning.Trainer(max_epochs=2, accelerator="cpu", callbacks=callbacks, default_root_dir=tmp_path, **quiet).fit(
        module, rows, rows
    )
    trial, numbers = numbers_of(hook)
    assert numbers == {
        **{"val/acc/largest_wins": 0, "val/acc/smallest_wins": 1},
        **{"val_loss/largest_wins": 0, "val_loss/smallest_wins": 1},
    }
    assert found_in(trial) == ["usage/monitor/val/acc/smallest_wins"]


@pytest.mark.parametrize("largest_wins", [False, True])
def test_arguments_of_transformers(hook, tmp_path, largest_wins):
    model = Classifier()
    hook.register_module(model)
    rows = [{"inputs": torch.randn(4), "labels": torch.tensor(number % 2)} for number in range(16)]
    arguments = transformers.TrainingArguments(
        output_dir=tmp_path / "checkpoints",
        num_train_epochs=2,
        per_device_train_batch_size=8,
        eval_strategy="epoch",
        save_strategy="epoch",
        load_best_model_at_end=True,
        metric_for_best_model="eval_loss",
        greater_is_better=largest_wins,
        report_to=[],
        disable_tqdm=True,
        use_cpu=True,
    )
    transformers.Trainer(model, arguments, train_dataset=rows, eval_dataset=rows).train()
    trial, numbers = numbers_of(hook)
    assert numbers == {"eval_loss/largest_wins": largest_wins, "eval_loss/smallest_wins": not largest_wins}
    assert found_in(trial) == ["usage/monitor/eval_loss/largest_wins"] * largest_wins
