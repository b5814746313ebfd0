"""Programs whose standard streams are closed: they run, and what is written to these numbers is in no file of ours."""

import subprocess
import sys

import pytest
from harness.runner import Runner, environment

from smd_agent import create_trial
from smd_agent.descriptors import above_streams, open_above

TRAINING = """
import os, torch
torch.manual_seed(0)
model = torch.nn.Linear(4, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(20):
    for number in (0, 1, 2):
        try:
            os.write(number, b"A C LIBRARY SPEAKS")
        except OSError:
            pass
    optimizer.zero_grad()
    torch.nn.functional.mse_loss(model(torch.ones(3, 4)), torch.zeros(3, 2)).backward()
    optimizer.step()
"""


def closed(numbers, command, folder, **variables):
    streams = " ".join(f"{number}>&-" for number in numbers)
    shell = ["sh", "-c", f'exec "$@" {streams}', "sh", *map(str, command)]
    return subprocess.run(shell, cwd=folder, env=environment(**variables), timeout=300, capture_output=True, text=True)


@pytest.mark.parametrize("numbers", [(1,), (0, 1, 2)])
def test_the_launcher_starts_a_program_whose_streams_are_closed(numbers, tmp_path):
    script = Runner(tmp_path).write("open('ran', 'w').write('ran')")
    result = closed(numbers, [sys.executable, "-m", "smd_agent", "--out", "run", script], tmp_path)
    assert (result.returncode, (tmp_path / "ran").exists()) == (0, True), result.stderr


def test_what_is_written_to_closed_streams_is_in_no_file_of_the_run(tmp_path):
    runner = Runner(tmp_path)
    file = runner.hook_file("run", {"HookParameters": {"save_interval": 1}})
    result = closed((0, 1, 2), [sys.executable, runner.write(TRAINING)], tmp_path, SMDEBUG_CONFIG_FILE_PATH=file)
    assert result.returncode == 0
    files = [path for path in (tmp_path / "run").rglob("*") if path.is_file()]
    assert [path for path in files if b"SPEAKS" in path.read_bytes()] == []
    trial = create_trial(str(tmp_path / "run"), timeout=0)
    assert len(trial.steps()) == 20
    (name,) = trial.tensor_names(collection="losses")
    assert all(trial.tensor(name).value(step) is not None for step in range(20))


WHAT_IS_OPENED = """
import os
from smd_agent.descriptors import above_streams, open_above
for number in (0, 1, 2):
    os.close(number)
found = [open_above(os.devnull, os.O_RDWR), *map(above_streams, os.pipe())]
free = []
for number in (0, 1, 2):
    try:
        os.fstat(number)
    except OSError:
        free.append(number)
os._exit(0 if min(found) > 2 and free == [0, 1, 2] and not any(map(os.get_inheritable, found)) else 1)
"""


def test_a_file_gets_a_number_above_those_of_the_streams(tmp_path):
    assert subprocess.run([sys.executable, "-c", WHAT_IS_OPENED], cwd=tmp_path).returncode == 0


def test_a_number_that_is_no_streams_stays(tmp_path):
    descriptor = open_above(tmp_path, 0)
    assert above_streams(descriptor) == descriptor > 2
