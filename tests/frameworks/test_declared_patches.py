"""What `info` says is replaced of a framework is what the register has of a training: no more and no less."""

from __future__ import annotations

import ast
import importlib.util
import json
import re
from importlib.metadata import version
from pathlib import Path

import pytest
from harness.keras_ways import QUIET
from harness.runner import SUBJECTS, Runner

import smd_agent
from smd_agent.patches.declared import DECLARED, declared_for

PACKAGE = Path(smd_agent.__file__).parent
TABLE = PACKAGE / "patches" / "declared.py"
ALL = [
    one
    for framework in DECLARED.values()
    for declared in (framework.replaced, *framework.backends.values())
    for one in declared
]

PYTORCH = """
from torch import nn
model = nn.Sequential(nn.Linear(3, 2))
model[0].register_forward_pre_hook(lambda *_: None)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
scaler = torch.amp.GradScaler("cpu")
x, y = torch.ones(4, 3), torch.ones(4, 2)
for _ in range(3):
    optimizer.zero_grad()
    scaler.scale(nn.functional.mse_loss(model(x), y)).backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    scaler.step(optimizer)
    scaler.update()
model.eval()
with torch.no_grad():
    nn.MSELoss()(model(x), y)
"""
KERAS = """
import numpy as np
layers = keras.layers
model = keras.Sequential([keras.Input((3,)), layers.Dense(2)])
model.compile(keras.optimizers.SGD(0.1), keras.losses.MeanSquaredError())
model.fit(np.ones((8, 3), "f"), np.ones((8, 2), "f"), batch_size=4, epochs=2, verbose=0)
"""
XGBOOST = """
import numpy as np
data = xgboost.DMatrix(np.eye(6), label=np.arange(6))
xgboost.train({}, data, 2, verbose_eval=False)
"""
MXNET = """
from mxnet import autograd, gluon, nd
net = gluon.nn.HybridSequential()
net.add(gluon.nn.Dense(3), gluon.nn.Dense(2))
net.initialize()
net.hybridize()
# Before there is a Trainer, each backward pass ends a step.
with autograd.record():
    loss = net(nd.ones((4, 3))).sum()
loss.backward()
scheduler = mxnet.lr_scheduler.FactorScheduler(1, 0.9)
trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.1, "lr_scheduler": scheduler})
for _ in range(3):
    with autograd.record():
        loss = gluon.loss.L2Loss()(net(nd.ones((4, 3))), nd.ones((4, 2)))
    loss.backward()
    trainer.step(4)
"""

# By what is trained with: modules of the warm process, the training, variables, and who is declared.
TRAININGS = {
    "torch": (("torch",), PYTORCH, {}, ("torch",)),
    "xgboost": (("xgboost", "sklearn"), XGBOOST, {}, ("xgboost",)),
    "tensorflow": (("tensorflow",), f"keras = tensorflow.keras\n{KERAS}", {}, ("tensorflow", "keras")),
    "keras on torch": (("torch", "keras"), KERAS, {"KERAS_BACKEND": "torch"}, ("torch", "keras")),
    "mxnet": (("mxnet",), MXNET, {}, ("mxnet",)),
}
# Where a training of some releases, or this one, has no use for them.
ELSEWHERE = {
    "_call_model_fn",
    "get_scaled_loss",
    "scale_loss",
    "_distributed_apply",
    # Only with mixed precision.
    "has_overflow",
    # Only of a batch that the training calls itself, or of what is not hybridized.
    "_build_cache",
}


# Names that some releases have for the same function.
ALIASES = {"worker_train": "train"}


def last(path):
    name = path.rpartition(".")[2]
    return ALIASES.get(name, name)


def entries(declared):
    return {(last(path), one.why, one.until.name) for one in declared for path in one.functions}


@pytest.mark.parametrize("name", TRAININGS)
def test_what_a_training_replaces_is_declared_and_nothing_else(name, tmp_path):
    modules, training, variables, declared_by = TRAININGS[name]
    if any(importlib.util.find_spec(module) is None for module in modules):
        pytest.skip(f"there is no {name}")
    if name == "keras on torch" and version("keras").startswith("2."):
        pytest.skip("Keras 2 computes with TensorFlow alone")
    runner = Runner(tmp_path, modules)
    noting = (
        f"import sys\nsys.path.append({str(SUBJECTS / 'shared')!r})\nimport register\nregister.start('seen.json')\n"
    )
    script = runner.write(f"import {', '.join(modules)}\n{noting}{training}")
    config = {"HookParameters": {"save_interval": 1, "save_all": True}}
    done = runner.by_variable(script, config=config, SMD_AGENT_STRICT="1", **QUIET, **variables)
    assert done.returncode == 0, done.stderr
    seen = {(last(path), why, until) for path, why, until in json.loads((tmp_path / "seen.json").read_text())}
    backend = variables.get("KERAS_BACKEND", "tensorflow")
    found = [
        one
        for module in declared_by
        for one in declared_for(module, version("keras") if module == "keras" else "", backend)
    ]
    assert seen - entries(found) == set()
    # What Keras trains is no training that PyTorch's own part looks at.
    expected = entries(declared_for("keras", "3.0", "torch") if name == "keras on torch" else found)
    assert {entry for entry in expected - seen if entry[0] not in ELSEWHERE} == set()


def test_every_reason_in_the_sources_is_declared():
    given, texts = set(), set()
    for path in PACKAGE.rglob("*.py"):
        if path == TABLE:
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                texts.add(node.value)
            named = [node.value] if isinstance(node, ast.keyword) and node.arg == "why" else []
            if isinstance(node, ast.Assign) and [getattr(one, "id", "") for one in node.targets] == ["why"]:
                named = [node.value]
            inside = re.search("/(framework|patches|pytorch|tensorflow|mxnet|xgboost)/", path.as_posix())
            given |= {one.value for one in named if inside and isinstance(one, ast.Constant)}
    reasons = {one.why for one in ALL}
    assert len(reasons) > 30
    assert reasons - texts == set()
    assert {why for why in given if isinstance(why, str)} - reasons == set()
