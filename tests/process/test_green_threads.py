"""Programs in which gevent or eventlet has replaced threads and locks."""

import subprocess
import sys

import pytest
from harness.runner import Runner, environment

from smd_agent import create_trial

TRAINING = """
import sys
if sys.argv[1] == "late":
    import torch
if sys.argv[2] == "gevent":
    import gevent.monkey
    gevent.monkey.patch_all()
else:
    import eventlet
    eventlet.monkey_patch()
import torch
torch.manual_seed(0)
model = torch.nn.Linear(4, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(20):
    optimizer.zero_grad()
    torch.nn.functional.mse_loss(model(torch.ones(3, 4)), torch.zeros(3, 2)).backward()
    optimizer.step()
print("end")
"""


@pytest.mark.parametrize("when", ["late", "early"])
@pytest.mark.parametrize("library", ["gevent", "eventlet"])
def test_a_training_under_green_threads_goes_on_and_is_saved(library, when, tmp_path):
    pytest.importorskip(library)
    runner = Runner(tmp_path)
    file = runner.hook_file("run", {"HookParameters": {"save_interval": 1}})
    command = [sys.executable, runner.write(TRAINING), when, library]
    result = subprocess.run(
        [*map(str, command)],
        cwd=tmp_path,
        env=environment(SMDEBUG_CONFIG_FILE_PATH=file),
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert (result.returncode, result.stdout) == (0, "end\n"), result.stderr
    assert "saved 20 steps" in result.stderr
    assert "takes no more data" not in result.stderr
    assert len(create_trial(str(tmp_path / "run"), timeout=0).steps()) == 20
