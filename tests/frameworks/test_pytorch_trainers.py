"""Lightning, transformers.Trainer and Accelerate run the loop: names, modes, steps and values as scripts see them."""

from __future__ import annotations

import importlib.util

import numpy as np
import pytest

for package in ("torch", "lightning", "transformers", "accelerate"):
    if importlib.util.find_spec(package) is None:
        pytest.skip(f"there is no {package}", allow_module_level=True)

from pathlib import Path

from smd_agent.analysis.trial import create_trial
from smd_agent.core.modes import ModeKeys

TRAIN, EVAL = ModeKeys.TRAIN, ModeKeys.EVAL

# How many values each scene notes of itself.
LIGHTNING = {
    "inner_model": 6 * (4 + 1 + 4) + 4 * 2,
    "module_itself": 6 * (4 + 1 + 4) + 7 * 2,
    "accumulation_and_clipping": 6 * (4 + 1 + 4),
    "half_precision": 6 * (4 + 1 + 4) + 2 * 2,
    "three_parts": 6 * (6 + 1 + 6),
    "manual_optimization": 6 * (4 + 2 + 2),
    "fabric_loop": 3 * (4 + 1 + 4) + 3,
}
GPT2 = 16
BERT = 25
HUGGINGFACE = {
    "language_model": 6 * (GPT2 + 1 + GPT2) + 7 * 2,
    "classifier_with_accumulation": 6 * (BERT + 1 + BERT) + 2 * 2,
    "half_precision": 6 * (GPT2 + 1 + GPT2),
    "compiled": 6 * (GPT2 + 1 + GPT2) + 2 * 2,
    "resumed": 6 * (GPT2 + 1 + GPT2),
    "accelerate_plain": 6 * (4 + 1 + 4) + 1,
    "accelerate_half_precision_accumulating": 6 * (4 + 1 + 4) + 1,
}


@pytest.fixture(scope="module")
def lightning(play_script):
    return play_script("lightning_scenes.py")


@pytest.fixture(scope="module")
def huggingface(play_script):
    return play_script("huggingface_scenes.py")


def number_of_steps(played, scenes, mode):
    return sum(len(played.steps(scene, mode)) for scene in scenes)


@pytest.mark.parametrize("scene", LIGHTNING)
def test_lightning(lightning, scene):
    assert lightning.check(scene, 1e-6) == LIGHTNING[scene]


@pytest.mark.parametrize("scene", HUGGINGFACE)
def test_transformers_and_accelerate(huggingface, scene):
    assert huggingface.check(scene, 1e-6) == HUGGINGFACE[scene]


@pytest.mark.parametrize("mode", [TRAIN, EVAL])
def test_a_step_is_a_batch(lightning, huggingface, mode):
    for played, scenes in ((lightning, LIGHTNING), (huggingface, HUGGINGFACE)):
        assert played.trial.steps(mode=mode) == list(range(number_of_steps(played, scenes, mode)))


def test_one_loss_for_each_step(lightning):
    """Lightning divides a loss by the number of accumulated batches; that is not a second loss."""
    assert lightning.saved("accumulation_and_clipping", "CrossEntropyLoss_output_0") == list(range(6))
    assert lightning.saved("accumulation_and_clipping", "Loss_output_0") == []
    assert lightning.saved("manual_optimization", "Loss_output_0") == [i for i in range(18) if i % 3]


def test_a_frozen_part_has_no_gradient(lightning):
    assert lightning.saved("manual_optimization", "gradient/Gan_discriminator.weight") == list(range(1, 18, 3))
    assert lightning.saved("manual_optimization", "gradient/Gan_generator.weight") == list(range(2, 18, 3))


def test_each_loss_has_one_name(huggingface):
    """The module inside the model has given its loss a name already, also where nothing starts a backward pass."""
    scene = "classifier_with_accumulation"
    for mode, steps in ((TRAIN, 6), (EVAL, 2)):
        assert huggingface.saved(scene, "CrossEntropyLoss_output_0", mode) == list(range(steps))
        assert huggingface.saved(scene, "Loss_output_0", mode) == []
    assert huggingface.saved("language_model", "Loss_output_0", EVAL) == list(range(7))


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
    script = tmp_path / "script.py"
    script.write_text(RANKS)
    plain = runner.plain(script, str(tmp_path / "plain"))
    config = {"HookParameters": {"save_interval": 1, "include_workers": "all"}}
    config["CollectionConfigurations"] = [{"CollectionName": "gradients"}, {"CollectionName": "weights"}]
    agent = runner.by_variable(script, str(tmp_path / "agent"), config=config, SMD_AGENT_STRICT="1")
    assert (plain.returncode, agent.returncode, agent.stdout) == (0, 0, plain.stdout), agent.stderr
    trial = create_trial(str(tmp_path / "run"))
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
    assert (plain.returncode, agent.returncode) == (0, 0), agent.stderr
    assert sorted(agent.stdout.splitlines()) == sorted(plain.stdout.splitlines())
    assert "smd_agent: saved " in agent.stderr
    trial = create_trial(str(out))
    assert len(trial.steps(mode=TRAIN)) > 5
    assert trial.tensor_names(collection="losses")
