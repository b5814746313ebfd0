"""A program that trains one model after another: the first steps of each are early ones, which are saved."""

from __future__ import annotations

import json

import keras
import numpy as np
import pytest
import torch

from smd_agent import create_trial, session
from smd_agent.config.hook_file import Source
from smd_agent.config.load import load_settings
from smd_agent.core.modes import ModeKeys

STEPS = 40


def settings(folder):
    parameters = {"save_interval": 1000, "save_early": True, "budget": "90"}
    collections = [{"CollectionName": "losses"}]
    content = {"LocalPath": str(folder), "HookParameters": parameters, "CollectionConfigurations": collections}
    return load_settings(Source("hook.json", text=json.dumps(content)))


def with_pytorch(folder):
    import smd_agent.pytorch as smd

    hook = smd.Hook.from_settings(settings(folder))
    try:
        for _ in range(2):
            net = torch.nn.Linear(3, 1)
            hook.register_module(net)
            hook.set_mode(ModeKeys.TRAIN)
            optimizer = torch.optim.SGD(net.parameters(), 0.1)
            for _ in range(STEPS):
                optimizer.zero_grad()
                net(torch.randn(4, 3)).square().mean().backward()
                optimizer.step()
        hook.close()
    finally:
        hook.disable()


def with_keras(folder):
    import smd_agent.tensorflow as smd

    hook = smd.KerasHook.from_settings(settings(folder))
    try:
        for _ in range(2):
            net = keras.Sequential([keras.layers.Dense(1)])
            net.compile("sgd", "mse")
            net.fit(np.zeros((STEPS, 3)), np.zeros((STEPS, 1)), batch_size=1, verbose=0, callbacks=[hook])
        hook.close()
    finally:
        hook.disable()


@pytest.mark.parametrize("train", [with_pytorch, with_keras])
def test_the_first_steps_of_each_are_saved(train, tmp_path):
    train(tmp_path / "run")
    session.forget()
    steps = create_trial(tmp_path / "run", timeout=0).steps(mode=ModeKeys.TRAIN)
    early = {*range(30), 30, 35}
    assert early <= {*steps}
    assert {STEPS + step for step in early} <= {*steps, STEPS}
