"""Encoders of transformers that are given rows with padding, with a mask of it and without one."""

from __future__ import annotations

import importlib.util

import pytest

for package in ("torch", "transformers"):
    if importlib.util.find_spec(package) is None:
        pytest.skip(f"there is no {package}", allow_module_level=True)

import torch
import transformers

import smd_agent.pytorch as smd
from smd_agent.rules import PaddingAttended
from smd_agent.rules.judging import Judging

LENGTHS = (6, 8, 10, 12, 14, 16, 20, 20)
SMALL = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32}
MODELS = {
    "bert": lambda: transformers.BertForSequenceClassification(transformers.BertConfig(vocab_size=50, **SMALL)),
    "distilbert": lambda: transformers.DistilBertForSequenceClassification(
        transformers.DistilBertConfig(vocab_size=50, dim=16, n_layers=2, n_heads=2, hidden_dim=32)
    ),
}


@pytest.mark.parametrize("is_masked", [False, True])
@pytest.mark.parametrize("name", MODELS)
def test_padding_that_an_encoder_reads(tmp_path, name, is_masked):
    torch.manual_seed(0)
    model = MODELS[name]()
    settings = {"save_config": smd.SaveConfig(save_interval=1), "include_collections": ["usage"]}
    hook = smd.Hook(str(tmp_path / "run"), **settings)
    hook.register_module(model)
    optimizer = torch.optim.SGD(model.parameters(), 0.01)
    for _ in range(4):
        mask = (torch.arange(max(LENGTHS)) < torch.tensor(LENGTHS)[:, None]).long()
        tokens = torch.randint(1, 50, mask.shape) * mask
        more = {"attention_mask": mask} if is_masked else {}
        optimizer.zero_grad()
        model(input_ids=tokens, labels=torch.arange(len(LENGTHS)) % 2, **more).loss.backward()
        optimizer.step()
    hook.close()
    judging = Judging(smd.create_trial(hook.out_dir, timeout=0), [PaddingAttended()])
    judging.take_new()
    verdict = judging.verdict()
    assert verdict.problems == []
    assert [one.rule for one in verdict.findings] == ["PaddingAttended"] * (not is_masked)
