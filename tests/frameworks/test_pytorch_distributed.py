"""Several processes of one run: the workers of torchrun, each under its rank, and copies made by fork."""

from __future__ import annotations

import json
from collections import Counter

import numpy as np
import pytest

pytest.importorskip("torch")

import torch
from harness.compare import Both, assert_untouched, noted, run_both, said, sorted_lines
from harness.runner import SUBJECTS, TORCHRUN

import smd_agent.pytorch as smd
from smd_agent.analysis.trial import create_trial

pytestmark = pytest.mark.skipif(not torch.distributed.is_available(), reason="this torch has no torch.distributed")

SCENES = SUBJECTS / "pytorch/rank_scenes.py"
TRAIN = smd.modes.TRAIN


class Ranks:
    """What two ranks have saved of the scenes that they played, which ended as without the agent."""

    def __init__(self, runner, plain, workers):
        config = {"HookParameters": {"save_interval": 1, "save_all": True, "include_workers": workers}}
        hook_file = runner.hook_file("run", config)
        result = runner.by_launcher("--config", hook_file, *TORCHRUN, SCENES, SMD_AGENT_STRICT="1")
        both = Both(plain, result, runner.folder / "run")
        assert_untouched(both, seen=sorted_lines, stderr=False)
        self.lines, self.trial = both.said, both.trial

    def check(self, notes, rank, scene):
        """Compare each value noted in the scene with the saved one; return how many there were of each kind."""
        counts = Counter()
        for key, expected in notes.items():
            found, _, place = key.partition("|")
            # Of a parameter with fewer rows than ranks a rank may have nothing.
            if found != scene or place == "steps" or not expected.size:
                continue
            mode, step, name = place.split("|")
            value = self.trial.tensor(name).value(int(step), mode=smd.modes[mode], worker=f"worker_{rank}")
            assert value.shape == expected.shape, key
            np.testing.assert_allclose(value, expected, rtol=1e-5, atol=1e-6, err_msg=key)
            counts["gradient" if name.startswith("gradient/") else name.partition("_")[0]] += 1
        return counts


@pytest.fixture(scope="module")
def plain(module_runner):
    """Return the result of a run without the agent, and what each rank has noted in it."""
    runner = module_runner("plain")
    result = runner.plain(*TORCHRUN, str(SCENES), str(runner.folder / "notes"))
    assert result.returncode == 0, result.stderr
    return result, [noted(runner.folder / f"notes-{rank}.npz") for rank in range(2)]


@pytest.fixture(scope="module")
def every_rank(module_runner, plain):
    return Ranks(module_runner("every"), plain[0], "all")


@pytest.fixture(scope="module")
def first_rank(module_runner, plain):
    return Ranks(module_runner("first"), plain[0], "one")


# Values noted of each scene: weights and outputs, losses, gradients.
EXPECTED = {
    "before_the_process_group": (12, 2, 2),
    "data_parallel": (18 + 2, 3, 12),
    "unused_parameters": (24, 4, 16),
    "static_graph": (18, 3, 12),
    "accumulation_without_sync": (0, 0, 8),
    "compiled": (18, 3, 12),
    "sharded_optimizer": (18, 3, 12),
    "fully_sharded": (24 + 1, 4, 16),
    "fully_sharded_in_half": (12, 0, 2),
    "fully_sharded_accumulating": (0, 0, 4),
}


@pytest.mark.parametrize("scene", EXPECTED)
def test_each_rank_saves_its_own(every_rank, plain, scene):
    net, losses, gradients = EXPECTED[scene]
    expected = Counter({"Net": net, "CrossEntropyLoss": losses, "gradient": gradients})
    for rank in range(2):
        assert every_rank.check(plain[1][rank], rank, scene) == +expected


def test_uneven_last_batches(every_rank, plain):
    assert every_rank.check(plain[1][0], 0, "uneven_batches") == {"Net": 12, "gradient": 8}
    assert every_rank.check(plain[1][1], 1, "uneven_batches") == {"Net": 24, "gradient": 16}


def test_ranks_are_workers_of_one_run(every_rank):
    assert every_rank.trial.workers() == ["worker_0", "worker_1"]
    losses = every_rank.trial.tensor("CrossEntropyLoss_output_0")
    assert losses.value(2, mode=TRAIN, worker="worker_0") != losses.value(2, mode=TRAIN, worker="worker_1")
    # Each says what it saves, and at the end what it has saved.
    assert [sum(word in line for line in every_rank.lines) for word in (": saving ", ": saved ")] == [2, 2]


def test_one_rank_saves_alone_without_the_others_waiting(first_rank, plain):
    # Anything that takes all ranks, such as putting a sharded tensor together, would stand still here.
    assert first_rank.trial.workers() == ["worker_0"]
    for scene, (net, losses, gradients) in EXPECTED.items():
        assert first_rank.check(plain[1][0], 0, scene).total() == net + losses + gradients
    assert [sum(word in line for line in first_rank.lines) for word in (": saving ", ": saved ")] == [1, 1]


DYING = """
import os, signal, time, torch, torch.distributed as dist
from torch import nn
torch.set_num_threads(1)
dist.init_process_group("gloo")
torch.manual_seed(dist.get_rank())
model = nn.parallel.DistributedDataParallel(nn.Sequential(nn.Linear(5, 4), nn.ReLU(), nn.Linear(4, 3)))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for i in range(50):
    optimizer.zero_grad()
    nn.CrossEntropyLoss()(model(torch.randn(8, 5)), torch.randint(0, 3, (8,))).backward()
    optimizer.step()
    if i == 40 and dist.get_rank() == 1:
        time.sleep(2)
        os.kill(os.getpid(), signal.SIGKILL)
"""


def test_what_was_saved_before_a_rank_died_reads_back(runner, tmp_path):
    script = runner.write(DYING)
    collections = [{"CollectionName": "gradients"}]
    config = {"HookParameters": {"save_interval": 2, "include_workers": "all"}, "CollectionConfigurations": collections}
    result = runner.by_launcher("--config", runner.hook_file("run", config), *TORCHRUN, script)
    assert result.returncode == 1
    assert "Signal 9 (SIGKILL)" in result.stderr
    trial = create_trial(str(tmp_path / "run"))
    assert trial.workers() == ["worker_0", "worker_1"]
    gradient = trial.tensor("gradient/Sequential_0.weight")
    losses = trial.tensor("CrossEntropyLoss_output_0")
    saved = [step for step in losses.steps(mode=TRAIN) if len(losses.workers(step, mode=TRAIN)) == 2]
    assert saved == [*range(0, 40, 2)]
    for step in saved:
        first, second = (gradient.value(step, mode=TRAIN, worker=worker) for worker in trial.workers())
        np.testing.assert_array_equal(first, second)


@pytest.mark.parametrize("workers", ["one", "all"])
def test_ranks_that_meet_after_the_first_steps(runner, tmp_path, workers):
    script = SUBJECTS / "pytorch/ranks_that_meet_late.py"
    config = {"HookParameters": {"save_interval": 1, "include_workers": workers}}
    result = runner.by_variable(script, str(tmp_path / "store"), str(tmp_path), config=config)
    assert result.returncode == 0, result.stderr
    lines = "\n".join(said(result))
    trial = create_trial(str(tmp_path / "run"))
    losses = trial.tensor("CrossEntropyLoss_output_0")
    first, second = (np.load(tmp_path / f"losses-{rank}.npy") for rank in range(2))

    def saved_by(worker):
        steps = [step for step in trial.steps(mode=TRAIN) if worker in losses.workers(step, mode=TRAIN)]
        return {step: losses.value(step, mode=TRAIN, worker=worker) for step in steps}

    # Until they meet, each process counts as the only one, and has a folder. Then each is known, which is said.
    assert saved_by("worker_0") == dict(enumerate([*second[:2], *first[2:]]))
    assert saved_by("worker_1") == ({} if workers == "one" else dict(enumerate(second[2:], 2)))
    apart = create_trial(str(tmp_path / "run-2")).tensor("CrossEntropyLoss_output_0")
    assert [apart.value(step, mode=TRAIN) for step in apart.steps(mode=TRAIN)] == list(first[:2])
    assert lines.count(f"is writing to {tmp_path / 'run'})") == 1
    for rank, folder in enumerate(("run-2", "run")):
        assert lines.count(f"what rank {rank} has saved before is worker_0 in {tmp_path / folder}\n") == 1


def test_workers_of_a_data_loader_stay_out(runner):
    config = {"HookParameters": {"save_interval": 1}}
    both = run_both(runner, SUBJECTS / "pytorch/loader_workers.py", config=config, strict=True)
    assert_untouched(both)
    assert both.trial.steps() == list(range(8))
    assert both.trial.tensor_names() == ["CrossEntropyLoss_output_0"]
    assert [line.split()[1] for line in both.agent.stderr.splitlines()] == ["saving", "saved"]


FORKING = """
import os, sys, torch
from torch import nn
# With more threads torch itself hangs in a forked child.
torch.set_num_threads(1)
model = nn.Sequential(nn.Linear(5, 3))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
def train(steps):
    for i in range(steps):
        optimizer.zero_grad()
        nn.CrossEntropyLoss()(model(torch.randn(8, 5)), torch.randint(0, 3, (8,))).backward()
        optimizer.step()
train(3)
child = os.fork()
if child == 0:
    train(2)
    sys.exit(0)
os.waitpid(child, 0)
train(3)
"""


def test_a_forked_copy_of_a_training_process_has_a_run_of_its_own(runner, tmp_path):
    result = runner.by_variable(runner.write(FORKING), config={"HookParameters": {"save_interval": 1}})
    assert result.returncode == 0, result.stderr
    assert create_trial(str(tmp_path / "run")).steps() == [0, 1, 2, 3, 4, 5]
    copy = create_trial(str(tmp_path / "run-2"))
    copy.maybe_refresh()
    assert (copy.steps(), copy.loaded_all_steps) == ([3, 4], True)
    assert not (tmp_path / "run-3").exists()
    # Where each is saved, and what; copies that do not train say nothing.
    assert result.stderr.count("smd_agent: ") == 4
    assert result.stderr.count(f"is writing to {tmp_path / 'run'})") == 1


GRID = """
import multiprocessing, torch
from torch import nn
torch.set_num_threads(1)
def train(seed, steps):
    torch.manual_seed(seed)
    model = nn.Sequential(nn.Linear(5, 3))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    losses = []
    for _ in range(steps):
        optimizer.zero_grad()
        loss = nn.CrossEntropyLoss()(model(torch.randn(8, 5)), torch.randint(0, 3, (8,)))
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses
if __name__ == "__main__":
    FIRST
    with multiprocessing.get_context("fork").Pool(2) as pool:
        found = [pool.apply_async(train, (seed, 40 + seed)) for seed in (1, 2)]
        print([answer.get() for answer in found])
        pool.close()
        pool.join()
    print(train(3, 5))
"""


@pytest.mark.parametrize("before", [0, 3])
def test_a_search_in_processes_and_the_training_after_it_are_all_saved(runner, tmp_path, before):
    script = runner.write(GRID.replace("FIRST", f"train(0, {before})" if before else "pass"))
    config = {"HookParameters": {"save_interval": 1}}
    result = runner.by_variable(script, config=config)
    assert result.returncode == 0, result.stderr
    searched, last = map(json.loads, result.stdout.splitlines())
    runs = [folder for folder in tmp_path.iterdir() if (folder / "index").is_dir()]
    saved = []
    for folder in runs:
        trial = create_trial(str(folder))
        losses = trial.tensor("CrossEntropyLoss_output_0")
        saved.append([float(losses.value(step)) for step in losses.steps()])
    together = [*map(tuple, saved)]
    for losses in (*searched, last):
        assert any(_contains(other, losses) for other in together), (losses, together, result.stderr)
    assert result.stderr.count("saving losses to") == len(runs)


def _contains(whole, part):
    places = range(len(whole) - len(part) + 1)
    return any(whole[i : i + len(part)] == pytest.approx(part, abs=1e-7) for i in places)
