"""PyTorch on an accelerator of CUDA: programs are untouched, nothing waits, and values are those of their own step."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

torch = pytest.importorskip("torch")
if not torch.cuda.is_available():
    pytest.skip("there is no accelerator", allow_module_level=True)

from harness.compare import Both, assert_untouched
from harness.runner import SUBJECTS
from torch import nn

import smd_agent.pytorch as smd
from smd_agent.analysis.trial import create_trial
from smd_agent.core.reductions import reduce_batch

FOLDER = SUBJECTS / "accelerator"
SAME_EACH_TIME = {"CUBLAS_WORKSPACE_CONFIG": ":4096:8", "OMP_NUM_THREADS": "1"}
EVERYTHING = {"HookParameters": {"save_interval": 1, "save_all": True}}
GRAPH = "a CUDA graph was captured: what its replays compute is not saved"
# By a program and its arguments: parts of the lines that are said beside the usual ones, and how many steps it has.
PROGRAMS = {
    "compiled": ((), 96),
    "compiled reduce-overhead": ((), 96),
    "data_parallel": ((), 30),
    "deterministic": ((), 40),
    "distributed ddp": ((), 30),
    "distributed fsdp1": ((), 30),
    "distributed fsdp2": ((), 30),
    "diverging": (("findings",), 120),
    "forbidden_waits error": ((), 60),
    "graph_later": ((GRAPH,), 22),
    "host_alone": ((), 25),
    "image_classifier": ((), 128),
    "language_model": ((), 61),
    "lightning_fit": ((), 64),
    "lora": (("21 parameters of PeftModel", "no tensor of biases"), 30),
    "out_of_memory": ((), None),
    "partial_graphs": ((GRAPH,), None),
    "recurrent": (("no tensor of input_digests",), 30),
    "residual_net": ((), 25),
    "side_streams": ((), 40),
    "small_floats": (("no tensor of biases",), 30),
    "tight_memory": (("an accelerator's memory",), None),
    "transformers_trainer": ((), None),
    "two_devices": ((), 40),
    "two_threads": (("several threads", "models are called in several threads"), None),
    "update_in_backward": ((), 30),
    "whole_graph": ((GRAPH,), 3),
}
USUAL = ("saving ", "saved ", "a saved step takes ", "no findings ", "not judged ", "the rest: ")
OPS = [(name, absolute) for absolute in (False, True) for name in ("min", "max", "mean", "std", "l1", "l2")]


@pytest.fixture(scope="module")
def plain(module_runner):
    """Run a program without the agent, once."""
    found = {}

    def run(program):
        if program not in found:
            runner = module_runner(program)
            name, *words = program.split()
            found[program] = runner, runner.plain(FOLDER / f"{name}.py", *words, **SAME_EACH_TIME)
        return found[program]

    return run


@pytest.mark.parametrize("launch", ["default", "everything"])
@pytest.mark.parametrize("program", PROGRAMS)
def test_a_program_is_untouched(plain, program, launch):
    runner, without = plain(program)
    name, *words = program.split()
    script = FOLDER / f"{name}.py"
    if launch == "default":
        agent = runner.by_launcher("--out", launch, script, *words, **SAME_EACH_TIME)
    else:
        agent = runner.by_variable(script, *words, name=launch, config=EVERYTHING, **SAME_EACH_TIME)
    both = Both(without, agent, runner.folder / launch)
    assert_untouched(both, stderr=False)
    parts, steps = PROGRAMS[program]
    lines = [line for line in both.said if not line.removeprefix("smd_agent: ").startswith(USUAL)]
    assert [line for line in lines if not any(part in line for part in parts)] == []
    if launch == "everything" and steps is not None:
        found = both.trial.steps()
        assert len(found) == steps, found


def busy(tensor):
    """Give the accelerator work for some milliseconds."""
    for _ in range(20):
        tensor = (tensor @ tensor).mul_(1e-4)
    return tensor


@pytest.mark.parametrize("reduced", [False, True])
def test_values_are_those_of_their_own_step(tmp_path, reduced):
    """The host is steps ahead of the accelerator, which changes weights in place meanwhile."""
    options = (
        {
            "reduction_config": smd.ReductionConfig(
                reductions=["min", "max", "mean", "std"],
                abs_reductions=["min", "max", "mean", "std"],
                norms=["l1", "l2"],
                abs_norms=["l1", "l2"],
            )
        }
        if reduced
        else {}
    )
    hook = smd.Hook(
        str(tmp_path / "run"),
        save_config=smd.SaveConfig(save_interval=1),
        include_collections=["weights", "gradients", "biases"],
        **options,
    )
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(300, 500), nn.ReLU(), nn.Linear(500, 3)).cuda()
    hook.register_module(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    work = torch.randn(3000, 3000, device="cuda")
    seen = []
    for _ in range(8):
        work = busy(work)
        known = {f"Sequential_{name}": parameter for name, parameter in model.named_parameters()}
        values = {name: parameter.detach().clone() for name, parameter in known.items()}
        optimizer.zero_grad()
        model(torch.randn(6, 300, device="cuda")).square().mean().backward()
        values.update({f"gradient/{name}": parameter.grad.clone() for name, parameter in known.items()})
        optimizer.step()
        seen.append(values)
    hook.close()
    trial = create_trial(str(tmp_path / "run"))
    assert trial.steps() == [*range(8)]
    for step, values in enumerate(seen):
        for name, value in values.items():
            want = value.cpu().numpy()
            if not reduced:
                np.testing.assert_array_equal(trial.tensor(name).value(step), want)
                continue
            for (op, absolute), expected in zip(OPS, reduce_batch([want], OPS)[0], strict=True):
                got = trial.tensor(name).reduction_value(step, op, abs=absolute)
                np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-7)


def test_what_was_saved_before_a_kill_is_read(tmp_path):
    script = tmp_path / "train.py"
    script.write_text(
        "import torch\nmodel = torch.nn.Linear(100, 10).cuda()\n"
        "optimizer = torch.optim.SGD(model.parameters(), 0.1)\n"
        "for step in range(10**6):\n"
        "    optimizer.zero_grad()\n"
        "    model(torch.randn(8, 100, device='cuda')).square().mean().backward()\n"
        "    optimizer.step()\n"
        "    print(step, flush=True)\n"
    )
    command = [sys.executable, "-m", "smd_agent", "--out", "run", "--every", "1", str(script)]
    with subprocess.Popen(
        command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        try:
            reached = next(int(line) for line in process.stdout if int(line) >= 60)
            time.sleep(0.5)
        finally:
            os.kill(process.pid, signal.SIGKILL)
    trial = create_trial(str(tmp_path / "run"))
    steps = trial.steps()
    assert steps[: reached - 10] == [*range(reached - 10)]
    for name in trial.tensor_names(collection="weights"):
        assert set(trial.tensor(name).steps()) >= set(steps[:-1])
