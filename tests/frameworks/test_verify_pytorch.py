"""PyTorch scripts run by ``verify``."""

from __future__ import annotations

import pytest
from harness.compare import assert_same_values, saved_values
from harness.verified import assert_equal, verify

from smd_agent.analysis.trial import create_trial

pytestmark = pytest.mark.cold

# Generators seeded and not, sparse gradients, half precision, a closure, two optimizers, calls in evaluation.
SCRIPT = """
import random, torch
torch.manual_seed(3)
random.seed(3)
body, table, head = torch.nn.Linear(4, 3), torch.nn.Embedding(5, 3, sparse=True), torch.nn.Linear(3, 2).bfloat16()
model = torch.nn.ModuleDict({"body": body, "table": table, "head": head})
sgd = torch.optim.SGD([*table.parameters(), *head.parameters()], lr=0.1)
lbfgs = torch.optim.LBFGS(body.parameters(), lr=0.01, max_iter=3)
dropout = torch.nn.Dropout(0.2)
for step in range(3):
    x, index = torch.randn(6, 4), torch.tensor([random.randrange(5) for _ in range(6)])
    def forward():
        hidden = dropout(body(x)) + table(index)
        return torch.nn.functional.mse_loss(head(hidden.bfloat16()).float(), torch.ones(6, 2))
    def closure():
        lbfgs.zero_grad()
        loss = forward()
        loss.backward()
        return loss
    lbfgs.step(closure)
    sgd.zero_grad()
    forward().backward()
    sgd.step()
    model.eval()
    with torch.no_grad():
        print(step, forward().item(), flush=True)
    model.train()
"""


def test_a_script_is_equal_and_the_agent_saves_what_it_saves_without_an_observer(runner):
    script = runner.write(SCRIPT)
    options = ("--every", "1", "--save", "all", "--raw")
    found = verify(runner, *options, "--out", runner.folder / "verified", script)
    # 3 times 3 or 4 passes of the one and 1 of the other, 2 and 3 parameters; at the end all.
    told = found[1]
    assert_equal(found, steps=6, losses=told["losses"], weights=3 * 2 + 3 * 3 + 5)
    assert told["losses"] >= 3 * 3
    assert told["random"]["PyTorch"] == told["random"]["Python"] == "the same"
    assert told["stdout"]["difference"] is told["stderr"]["difference"] is None
    done = runner.by_launcher("--out", runner.folder / "alone", *options, script, OMP_NUM_THREADS="1")
    assert done.returncode == 0
    runs = [create_trial(str(runner.folder / name)) for name in ("verified", "alone")]
    assert [run.tensor_names() for run in runs[:1]] == [run.tensor_names() for run in runs[1:]]
    assert_same_values(*map(saved_values, runs))


# Only what batch normalisation remembers is another with the agent, and nothing is computed with it any more.
BUFFER = """
import sys, torch
torch.manual_seed(3)
model = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.BatchNorm1d(3), torch.nn.Linear(3, 1))
optimizer = torch.optim.SGD(model[0].parameters(), lr=0.1)
for step in range(3):
    optimizer.zero_grad()
    model(torch.randn(6, 4)).mean().backward()
    optimizer.step()
if "smd_agent" in sys.modules:
    model[1].running_var[1] += 1
"""


def test_a_buffer_that_alone_is_different_is_named(runner):
    code, told = verify(runner, "--every", "1", runner.write(BUFFER))
    assert (code, told["verdict"], told["failures"]) == (1, "different", []), told
    # Mean, variance and count.
    assert (told["steps"], told["weights"], told["buffers"]) == (3, 3 * 2, 3 * 3)
    first = told["first_difference"]
    assert first["at_end"]
    assert first["what"].startswith("buffer 1.running_var[1] (")
