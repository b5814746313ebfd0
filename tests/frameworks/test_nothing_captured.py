"""A training that cannot be captured is told in one line, also where the environment names the configuration."""

from __future__ import annotations

import importlib.util

import pytest
from harness.compare import assert_untouched, run_both, said

TORCH = """
import torch
torch.manual_seed(0)
w = torch.randn(4, 1, requires_grad=True)
{optimizer}
for _ in range(4):
    loss = (torch.randn(8, 4) @ w).pow(2).mean()
    {backward}
print(w.sum().item())
"""
BY_HAND = "loss.backward()\n    with torch.no_grad(): w -= 0.1 * w.grad; w.grad.zero_()"
MXNET = """
import mxnet as mx
from mxnet import autograd, nd
w = nd.zeros((2, 1)); w.attach_grad()
for _ in range(4):
    with autograd.record():
        loss = (nd.dot(nd.ones((4, 2)), w) - 1) ** 2
    {backward}
    w -= 0.1 * w.grad
print(w.asnumpy().ravel())
"""
TENSORFLOW = """
import tensorflow as tf
w = tf.zeros((2, 1))
for _ in range(4):
    with tf.GradientTape() as tape:
        tape.watch(w)
        loss = tf.reduce_mean((tf.ones((4, 2)) @ w - 1) ** 2)
    w -= 0.1 * tape.gradient(loss, w)
print(w.numpy())
"""
# What is said of them in any program, also where a module is trained beside them.
LOOSE = "smd_agent: trained parameters that belong to no module are not saved (1)"
NO_MODULE = "gradients were computed, but of no parameters of a torch.nn.Module"
NO_BLOCK = "gradients were computed, but of no parameter of a gluon.Block that was called while autograd recorded"
PROGRAMS = {
    "torch": ("torch", TORCH.format(optimizer="", backward=BY_HAND), NO_MODULE),
    "torch, autograd.grad": (
        "torch",
        TORCH.format(optimizer="", backward="(g,) = torch.autograd.grad(loss, w); w.data -= 0.1 * g"),
        NO_MODULE,
    ),
    "torch, optimizer": (
        "torch",
        TORCH.format(optimizer="o = torch.optim.SGD([w], lr=0.1)", backward="loss.backward(); o.step()"),
        NO_MODULE,
    ),
    "mxnet": ("mxnet", MXNET.format(backward="loss.backward()"), NO_BLOCK),
    "mxnet, function": ("mxnet", MXNET.format(backward="autograd.backward([loss])"), NO_BLOCK),
    "tensorflow": ("tensorflow", TENSORFLOW, "gradients were computed, but of no tf.Variable"),
}


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_training_of_plain_arrays_is_told_in_one_line(program, module_runner):
    framework, body, reason = PROGRAMS[program]
    if importlib.util.find_spec(framework) is None:
        pytest.skip(f"there is no {framework}")
    runner = module_runner(program)
    runner.warm = (framework,)
    both = run_both(runner, runner.write(body), TF_CPP_MIN_LOG_LEVEL="3")
    assert_untouched(both, stderr=False)
    line = f"smd_agent: nothing was captured: {reason}"
    assert [told for told in both.said if told != LOOSE] == [line]
    launched = runner.by_launcher("--out", "other", runner.write(body), TF_CPP_MIN_LOG_LEVEL="3")
    assert [told for told in said(launched) if told != LOOSE] == [line]


COPIED = """
import copy
import torch
torch.manual_seed(0)
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
trained = {copy}
for _ in range(4):
    trained(torch.randn(8, 4)).pow(2).mean().backward()
    optimizer.step()
print(trained.weight.sum().item())
"""


def test_an_optimizer_of_another_model_than_the_one_that_is_trained_is_told(module_runner):
    pytest.importorskip("torch")
    runner = module_runner("copied")
    runner.warm = ("torch",)
    both = run_both(runner, runner.write(COPIED.format(copy="copy.deepcopy(model)")))
    assert_untouched(both, stderr=False)
    reason = "gradients were computed, but of none of the parameters that an optimizer was given"
    assert both.said == [f"smd_agent: nothing was captured: {reason}"]
    lines = said(runner.by_launcher("--out", "run", runner.write(COPIED.format(copy="model"))))
    # Four, and the weights that are left.
    assert any("saved 5 steps " in line for line in lines)
    assert not [line for line in lines if "nothing was captured" in line]


EDITED = """
import torch
import smd_agent.pytorch as smd
model = torch.nn.Linear(2, 1)
hook = smd.Hook("own", save_config=smd.SaveConfig(save_interval=1))
hook.register_module(model)
model(torch.ones(3, 2)).sum().backward()
hook.close()
smd.del_hook()
"""


def test_what_a_hook_has_saved_that_the_script_has_deleted_was_captured(module_runner):
    pytest.importorskip("torch")
    runner = module_runner("edited")
    lines = said(runner.by_launcher("--out", "run", runner.write(EDITED)))
    assert any("saved 1 step " in line for line in lines)
    assert not [line for line in lines if "nothing was captured" in line]


MODULE = TORCH.format(optimizer="o = torch.optim.SGD(n.parameters(), lr=0.1)", backward="loss.backward(); o.step()")
MODULE = MODULE.replace("w = ", "n = torch.nn.Linear(4, 1); w = ").replace(
    "(torch.randn(8, 4) @ w)", "n(torch.ones(8, 4))"
)


def test_a_folder_that_cannot_be_written_is_said_at_the_start_in_one_line(module_runner):
    pytest.importorskip("torch")
    runner = module_runner("said")
    script = runner.write(MODULE + "\nimport sys; print('trained', file=sys.stderr)\n")
    (runner.folder / "file").write_text("")
    result = runner.by_variable(script, config={"LocalPath": str(runner.folder / "file" / "run")})
    assert result.returncode == 0
    folder = runner.folder / "file"
    assert result.stderr.splitlines() == [
        f"smd_agent: no run can be written into {folder}/run: {folder} is no folder; the program runs without capture",
        "trained",
    ]


def test_a_collection_that_is_not_there_is_one_line(module_runner):
    pytest.importorskip("torch")
    runner = module_runner("said")
    script = runner.write(MODULE)
    config = {"CollectionConfigurations": [{"CollectionName": "gradiants"}]}
    lines = [line for line in runner.by_variable(script, config=config).stderr.splitlines() if "gradiants" in line]
    assert len(lines) == 1
    assert lines[0].endswith("did you mean gradients?")
    lines = said(runner.by_launcher("--out", "other", "--save", "losses,mine", script))
    assert [line for line in lines if "mine" in line] == [
        "smd_agent: the options: there is no collection mine: it is not built in, and has no include_regex here"
    ]
