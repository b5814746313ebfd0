"""A program's own signal handlers, which the interpreter may call in the middle of our code."""

from harness.runner import Runner

# The alarm comes at any time of a step, and again until it comes while a function of the agent is at work.
WATCHDOG = """
import os, signal, torch

class Timeout(Exception):
    pass

fired = caught = 0

def handler(signum, frame):
    global fired
    if os.sep + "smd_agent" + os.sep in frame.f_code.co_filename:
        fired += 1
        raise Timeout
    signal.setitimer(signal.ITIMER_REAL, .00005)

torch.manual_seed(0)
torch.set_num_threads(1)
model = torch.nn.Sequential(*[torch.nn.Linear(30, 30) for _ in range(20)])
optimizer, x = torch.optim.SGD(model.parameters(), lr=.01), torch.randn(4, 30)

def step():
    optimizer.zero_grad()
    model(x).pow(2).mean().backward()
    optimizer.step()

for _ in range(3):
    step()
signal.signal(signal.SIGALRM, handler)
for i in range(100):
    try:
        signal.setitimer(signal.ITIMER_REAL, .0003 + .0001 * (i % 100))
        step()
    except Timeout:
        caught += 1
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
for _ in range(5):
    step()
print(fired > 50, fired - caught)
"""


def test_a_timeout_of_the_program_arrives_wherever_it_fires(tmp_path):
    runner = Runner(tmp_path)
    result = runner.by_launcher("--every", "1", "--save", "all", "--out", "run", runner.write(WATCHDOG))
    assert (result.returncode, result.stdout) == (0, "True 0\n"), result.stderr
    # The capture goes on.
    assert "failed" not in result.stderr
    assert "smd_agent: saved " in result.stderr


# What the agent has PyTorch do may be interrupted too, wherever that runs code of Python.
TRACED = """
import os, sys, torch

class Timeout(Exception):
    pass

def is_ours(frame):
    while frame is not None and os.sep + "torch" + os.sep in frame.f_code.co_filename:
        frame = frame.f_back
    return frame is not None and os.sep + "smd_agent" + os.sep in frame.f_code.co_filename

raised = set()

def profile(frame, event, argument):
    code = frame.f_code
    if event == "call" and code not in raised and "grad_mode" in code.co_filename and is_ours(frame.f_back):
        raised.add(code)
        raise Timeout

model = torch.nn.Linear(30, 30)
optimizer, x = torch.optim.SGD(model.parameters(), lr=.01), torch.randn(4, 30)

def step():
    optimizer.zero_grad()
    torch.nn.functional.mse_loss(model(x), x).backward()
    optimizer.step()

for _ in range(3):
    step()
for _ in range(10):
    sys.setprofile(profile)
    try:
        step()
    except Timeout:
        pass
    finally:
        sys.setprofile(None)
    assert torch.is_grad_enabled()
print("trained")
"""


def test_gradients_stay_as_they_are_wherever_a_timeout_fires(tmp_path):
    runner = Runner(tmp_path)
    result = runner.by_launcher("--every", "1", "--save", "all", "--out", "run", runner.write(TRACED))
    assert (result.returncode, result.stdout) == (0, "trained\n"), result.stderr
