"""Running trainings of Lightning and of transformers' Trainer, which their trainers end when ``tap`` asks for it."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")

from harness.tapped import TappedRun

from smd_agent.analysis.trial import create_trial
from smd_agent.core.modes import ModeKeys

LIGHTNING = """
import time, torch, lightning as L
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

class Net(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 2))

    def training_step(self, batch, index):
        time.sleep(0.01)
        return nn.functional.cross_entropy(self.net(batch[0]), batch[1])

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1)

torch.manual_seed(0)
data = DataLoader(TensorDataset(torch.randn(40000, 8), torch.randint(0, 2, (40000,))), batch_size=4)
trainer = L.Trainer(max_epochs=20, accelerator="cpu", logger=False, enable_checkpointing=False,
                    enable_progress_bar=False, enable_model_summary=False, OPTIONS)
try:
    trainer.fit(Net(), data)
    print("trained", trainer.global_step, trainer.state.status, flush=True)
finally:
    print("finally", trainer.global_step)
"""
TRANSFORMERS = """
import time, torch
from torch import nn
from transformers import Trainer, TrainerCallback, TrainingArguments

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 2))

    def forward(self, x, labels):
        time.sleep(0.01)
        return {"loss": nn.functional.cross_entropy(self.net(x), labels)}

class Ends(TrainerCallback):
    def on_train_end(self, args, state, control, **kwargs):
        print("on_train_end", state.global_step)

torch.manual_seed(0)
data = [{"x": torch.randn(8), "labels": torch.tensor(one % 2)} for one in range(4000)]
arguments = TrainingArguments("out", per_device_train_batch_size=4, num_train_epochs=50, report_to=[], use_cpu=True,
                              disable_tqdm=True, save_strategy="no", logging_strategy="no")
trainer = Trainer(Net(), arguments, train_dataset=data, callbacks=[Ends()])
trainer.train()
print("trained", trainer.state.global_step)
"""


def obeyed(folder, script):
    """Return the run after it was asked for the outputs of three steps, and to stop."""
    with TappedRun(folder, script) as run:
        code, said = run.tap("--collection", "layers", "--steps", "3")
        assert code == 0, said
        code, said = run.tap("--stop", "enough")
        assert code == 0, said
        run.ended()
    asked = run.answers()[0]["step"]
    trial = create_trial(str(run.run))
    (name, *_) = trial.tensor_names(collection="layers")
    assert trial.tensor(name).steps(ModeKeys.TRAIN) == [*range(asked, asked + 3)]
    return run, run.answers()[1]


def test_lightning_ends_the_training(tmp_path):
    pytest.importorskip("lightning")
    run, answer = obeyed(tmp_path, LIGHTNING.replace("OPTIONS", ""))
    step = answer["step"]
    assert run.process.returncode == 0
    assert answer["text"] == f"obeyed: Lightning ends the training after step {step}"
    assert run.printed == f"trained {step + 1} TrainerStatus.FINISHED\nfinally {step + 1}\n"
    assert f"smd_agent: stopped after step {step}: enough (asked by tap)\n" in run.said


def test_lightning_that_has_a_minimum_of_steps_is_ended_all_the_same(tmp_path):
    pytest.importorskip("lightning")
    run, answer = obeyed(tmp_path, LIGHTNING.replace("OPTIONS", "min_steps=100_000"))
    step = answer["step"] + 1
    assert run.process.returncode == 86
    # The update of that step has not taken place.
    assert run.printed == f"finally {step}\n"
    assert f"smd_agent: stopped at step {step}: enough (asked by tap)\n" in run.said


def test_transformers_trainer_ends_the_training(tmp_path):
    pytest.importorskip("transformers")
    run, answer = obeyed(tmp_path, TRANSFORMERS)
    step = answer["step"]
    assert run.process.returncode == 0
    assert answer["text"] == f"obeyed: transformers ends the training after step {step}"
    assert run.printed.endswith(f"on_train_end {step + 1}\ntrained {step + 1}\n")
    assert f"smd_agent: stopped after step {step}: enough (asked by tap)\n" in run.said
