"""Lightning and Accelerate start processes: ranks of one run, and Accelerate's own tests under the agent."""

from __future__ import annotations

import importlib.util

import numpy as np
import pytest

for package in ("torch", "lightning", "transformers", "accelerate"):
    if importlib.util.find_spec(package) is None:
        pytest.skip(f"there is no {package}", allow_module_level=True)

from pathlib import Path

from harness.compare import Both, assert_untouched, sorted_lines

from smd_agent.core.modes import ModeKeys

TRAIN, EVAL = ModeKeys.TRAIN, ModeKeys.EVAL

RANKS = """
import logging, sys, warnings
import torch
from torch import nn
warnings.simplefilter("ignore")
import lightning
for name in ("lightning.pytorch", "lightning.fabric"):
    logging.getLogger(name).setLevel(logging.ERROR)

class Lit(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.model = nn.Linear(4, 3)
        self.losses = []
    def training_step(self, batch, index):
        loss = nn.functional.cross_entropy(self.model(batch[0]), batch[1])
        self.losses.append(loss.item())
        return loss
    def validation_step(self, batch, index):
        self.model(batch[0])
    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1)

if __name__ == "__main__":
    torch.manual_seed(0)
    data = torch.utils.data.TensorDataset(torch.randn(32, 4), torch.randint(0, 3, (32,)))
    loader = torch.utils.data.DataLoader(data, batch_size=4)
    module = Lit()
    trainer = lightning.Trainer(
        accelerator="cpu", devices=2, strategy="ddp", max_epochs=1, logger=False, enable_checkpointing=False,
        enable_progress_bar=False, enable_model_summary=False)
    trainer.fit(module, loader, loader)
    words = [str(trainer.global_rank), *(f"{loss:.8g}" for loss in module.losses), f"{module.model.weight.sum():.8g}"]
    print(*words, file=open(f"{sys.argv[1]}-{trainer.global_rank}", "w"))
"""


def test_the_ranks_that_lightning_starts(runner, tmp_path):
    script = runner.write(RANKS)
    plain = runner.plain(script, str(tmp_path / "plain"))
    config = {"HookParameters": {"save_interval": 1, "include_workers": "all"}}
    config["CollectionConfigurations"] = [{"CollectionName": "gradients"}, {"CollectionName": "weights"}]
    agent = runner.by_variable(script, str(tmp_path / "agent"), config=config, SMD_AGENT_STRICT="1")
    both = Both(plain, agent, tmp_path / "run")
    assert_untouched(both)
    trial = both.trial
    assert trial.workers() == ["worker_0", "worker_1"]
    assert trial.steps(mode=TRAIN) == trial.steps(mode=EVAL) == list(range(4))
    for rank in range(2):
        noted = Path(f"{tmp_path}/plain-{rank}").read_text()
        assert Path(f"{tmp_path}/agent-{rank}").read_text() == noted
        losses = [trial.tensor("Loss_output_0").value(k, mode=TRAIN, worker=f"worker_{rank}") for k in range(4)]
        np.testing.assert_allclose(losses, np.array(noted.split()[1:5], np.float32), rtol=1e-6)
    # Lightning runs the module itself in the wrapper, so that names begin with its class.
    for step in range(4):
        first, second = (
            trial.tensor("gradient/Lit_model.weight").value(step, mode=TRAIN, worker=f"worker_{rank}")
            for rank in range(2)
        )
        np.testing.assert_array_equal(first, second)


# Accelerate's own tests, which compare trainings with each other bit by bit.
SCRIPTS = Path(importlib.util.find_spec("accelerate").origin).parent / "test_utils" / "scripts"
LAUNCH = ["-m", "accelerate.commands.launch", "--cpu", "--num_processes"]


@pytest.mark.parametrize("script, processes", [("test_sync.py", 1), ("test_script.py", 2)])
def test_scripts_of_accelerate(runner, tmp_path, script, processes):
    words = [*LAUNCH, str(processes), str(SCRIPTS / script)]
    plain = runner.plain(*words, HF_HUB_OFFLINE="1")
    out = tmp_path / "run"
    agent = runner.by_launcher("--strict", "--every", "1", "--out", out, *words, HF_HUB_OFFLINE="1")
    both = Both(plain, agent, out)
    assert_untouched(both, seen=sorted_lines)
    assert "smd_agent: saved " in agent.stderr
    assert len(both.trial.steps(mode=TRAIN)) > 5
    assert both.trial.tensor_names(collection="losses")
