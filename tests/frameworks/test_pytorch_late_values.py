"""Steps whose values come later, as from an accelerator. CPU tensors play its part: they are told to be elsewhere."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

import smd_agent.pytorch as smd
from smd_agent import create_trial, guard
from smd_agent.core import reductions
from smd_agent.errors import TensorUnavailableForStep
from smd_agent.pytorch.device import free_memory, late_values, pending_steps
from smd_agent.pytorch.device import reductions as device_reductions
from smd_agent.pytorch.device.graph_captures import graph_captures
from smd_agent.pytorch.tracing import captures

OPS = ("min", "max", "mean", "std", "l1", "l2")


@pytest.fixture
def copies(monkeypatch):
    """Take all tensors for an accelerator's; what is in this list by name has arrived."""
    monkeypatch.setattr(pending_steps, "on_device", lambda tensor: True)
    monkeypatch.setattr(late_values, "on_device", lambda tensor: True)
    arrived = []
    for copy in (device_reductions.HostCopy, device_reductions.Snapshot):
        monkeypatch.setattr(copy, "ready", lambda self: bool(arrived))
    return arrived


def model_of(hook):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(5, 4), nn.ReLU(), nn.Linear(4, 3))
    hook.register_module(model)
    return model, torch.optim.SGD(model.parameters(), lr=0.5)


def train(hook, model, optimizer, steps):
    """Train; return what the program itself sees of every step: weights when it begins and gradients."""
    seen = []
    for _ in range(steps):
        names = {f"Sequential_{name}": parameter for name, parameter in model.named_parameters()}
        values = {name: parameter.detach().clone().numpy() for name, parameter in names.items()}
        optimizer.zero_grad()
        model(torch.randn(6, 5)).square().sum().mul(0.01).backward()
        values.update({f"gradient/{name}": parameter.grad.clone().numpy() for name, parameter in names.items()})
        optimizer.step()
        seen.append(values)
    return seen


def make_hook(out, **options):
    save = smd.SaveConfig(save_interval=1)
    return smd.Hook(out, save_config=save, include_collections=["weights", "gradients", "biases"], **options)


def test_raw_values_are_those_of_their_own_step(tmp_path, copies):
    hook = make_hook(str(tmp_path / "run"))
    seen = train(hook, *model_of(hook), 5)
    hook.close()
    trial = create_trial(str(tmp_path / "run"))
    assert trial.steps() == [0, 1, 2, 3, 4]
    for step, values in enumerate(seen):
        for name, want in values.items():
            np.testing.assert_array_equal(trial.tensor(name).value(step), want, err_msg=f"{name} {step}")


def test_reductions_are_those_of_their_own_step(tmp_path, copies):
    config = smd.ReductionConfig(reductions=["min", "max", "mean", "std", "median"], norms=["l1", "l2"])
    hook = make_hook(str(tmp_path / "run"), reduction_config=config)
    seen = train(hook, *model_of(hook), 3)
    hook.close()
    trial = create_trial(str(tmp_path / "run"))
    for step, values in enumerate(seen):
        for name, array in values.items():
            for op in (*OPS, "median"):
                got = trial.tensor(name).reduction_value(step, op)
                assert got == pytest.approx(reductions.reduce_one(array.astype(np.float64), op), rel=1e-6), (name, op)


def test_statistics_come_later_and_small_tensors_whole(tmp_path, copies):
    config = smd.ReductionConfig(["statistics", "histogram"], save_shape=True, save_raw_up_to=12)
    hook = make_hook(str(tmp_path / "run"), reduction_config=config)
    seen = train(hook, *model_of(hook), 3)
    hook.close()
    trial = create_trial(str(tmp_path / "run"))
    for step, values in enumerate(seen):
        for name, array in values.items():
            tensor = trial.tensor(name)
            stored = tensor.reduction_values(step)
            if array.size <= 12:
                np.testing.assert_array_equal(tensor.value(step), array)
                assert stored == {}
                continue
            assert len(stored) == 10
            form = tensor.form(step)
            assert (form.dtype, form.shape) == ("float32", array.shape)
            assert stored["zero_share", False] == (array == 0).sum() / array.size
            assert stored["nan_count", False] == stored["inf_count", False] == 0
            assert stored["mean", True] == pytest.approx(np.abs(array.astype(np.float64)).mean())
            assert tensor.reduction_value(step, "histogram").sum() == array.size
            with pytest.raises(TensorUnavailableForStep):
                tensor.value(step)
    assert {array.size <= 12 for array in seen[0].values()} == {True, False}


def test_reductions_do_not_come_one_by_one(tmp_path, copies, monkeypatch):
    made = []
    original = pending_steps.DeviceReductions
    monkeypatch.setattr(pending_steps, "DeviceReductions", lambda *args: made.append(len(args[0])) or original(*args))
    hook = make_hook(str(tmp_path / "run"), reduction_config=smd.ReductionConfig(norms=["l2"]))
    train(hook, *model_of(hook), 1)
    hook.close()
    assert made.count(4) == 2, made


def test_a_step_is_handed_over_when_its_values_are_in(tmp_path, copies):
    hook = make_hook(str(tmp_path / "run"))
    model, optimizer = model_of(hook)
    index = tmp_path / "run" / "index"

    def on_disk():
        hook._output.sink.flush()
        return sorted(int(path.name.split("_")[0]) for path in index.rglob("*.json"))

    train(hook, model, optimizer, 2)
    assert on_disk() == []
    train(hook, model, optimizer, 3)
    # No more than two steps wait, besides the one that is open.
    assert on_disk() == [0, 1]
    copies.append("all")
    train(hook, model, optimizer, 1)
    assert on_disk() == [0, 1, 2, 3, 4]
    hook.flush()
    assert on_disk() == [0, 1, 2, 3, 4, 5]
    hook.close()


def test_an_unsaved_step_hands_over_what_has_come(tmp_path, copies):
    save = smd.SaveConfig(save_interval=100)
    hook = smd.Hook(str(tmp_path / "run"), save_config=save, include_collections=["weights"])
    model, optimizer = model_of(hook)
    train(hook, model, optimizer, 3)
    assert hook.recorder.late.waiting
    copies.append("all")
    train(hook, model, optimizer, 1)
    assert not hook.recorder.late.waiting
    assert all(clock.due > 3 for clock in hook.recorder.clocks.values() if clock.step > 0)
    hook.close()
    assert create_trial(str(tmp_path / "run")).steps() == [0]


@pytest.mark.parametrize("steps", [1, 5])
def test_a_scalar_between_two_steps_takes_nothing_from_those_that_wait(tmp_path, copies, steps):
    hook = make_hook(str(tmp_path / "run"))
    model, optimizer = model_of(hook)
    seen = train(hook, model, optimizer, steps)
    hook.recorder.end_step()
    hook.save_scalar("late", 1.5)
    hook.close()
    trial = create_trial(str(tmp_path / "run"))
    name = "Sequential_0.weight"
    for step in range(steps):
        np.testing.assert_array_equal(trial.tensor(name).value(step), seen[step][name])
    assert trial.tensor("scalar/late").value(steps) == 1.5


def test_memory_of_snapshots_is_used_again():
    buffers = {}
    first = device_reductions.Snapshot(torch.arange(6.0).reshape(2, 3).t(), buffers)
    assert first.read().tolist() == [[0, 3], [1, 4], [2, 5]]
    address = first.read().data_ptr()
    second = device_reductions.Snapshot(torch.ones(6), buffers)
    assert second.read().data_ptr() != address
    first.free()
    assert device_reductions.Snapshot(torch.zeros(3, 2), buffers).read().data_ptr() == address


class Graph:
    """As PyTorch's, of an accelerator that records what it is asked."""

    def capture_begin(self):
        pass

    def capture_end(self):
        pass


def test_what_a_graph_records_is_no_step_and_asks_nothing(tmp_path, copies, monkeypatch, capsys):
    monkeypatch.setattr(torch.cuda, "CUDAGraph", Graph)
    monkeypatch.setattr(guard.lines, "said", set())
    graph_captures.watch()
    hook = make_hook(str(tmp_path / "run"))
    model, optimizer = model_of(hook)
    train(hook, model, optimizer, 2)
    graph = Graph()
    # All that is under way has been waited for: to ask whether it is there would end the capture with an error.
    copies.append("all")
    graph.capture_begin()
    monkeypatch.setattr(device_reductions.Snapshot, "ready", lambda self: 1 / 0)
    monkeypatch.setattr(pending_steps, "LateGroup", lambda *args: 1 / 0)
    train(hook, model, optimizer, 3)
    graph.capture_end()
    monkeypatch.undo()
    train(hook, model, optimizer, 1)
    hook.close()
    assert create_trial(str(tmp_path / "run")).steps() == [0, 1, 2]
    said = capsys.readouterr().err.splitlines()
    assert "smd_agent: a CUDA graph was captured: what its replays compute is not saved" in said
    assert [line for line in said if "failed" in line or "ZeroDivision" in line] == []


def test_a_capture_that_does_not_begin_is_over(monkeypatch):
    monkeypatch.setattr(torch.cuda, "CUDAGraph", type("Broken", (Graph,), {"capture_begin": lambda self: 1 / 0}))
    graph_captures.watch()
    with pytest.raises(ZeroDivisionError):
        torch.cuda.CUDAGraph().capture_begin()
    assert not captures.under_way


def test_a_step_for_which_an_accelerator_has_no_memory_is_not_saved(tmp_path, copies, monkeypatch, capsys):
    rooms = iter([free_memory.LEAST, free_memory.LEAST - 1, -5, 2 * free_memory.LEAST])
    monkeypatch.setattr(guard.lines, "said", set())
    monkeypatch.setattr(free_memory, "look", lambda: next(rooms))
    hook = make_hook(str(tmp_path / "run"))
    seen = train(hook, *model_of(hook), 4)
    hook.close()
    trial = create_trial(str(tmp_path / "run"))
    assert trial.steps() == [0, 3]
    np.testing.assert_array_equal(trial.tensor("Sequential_0.weight").value(3), seen[3]["Sequential_0.weight"])
    line = "a step is not saved while less than 67.1 MB of an accelerator's memory are free; 67.1 MB are"
    assert line in capsys.readouterr().err


def test_a_forked_process_frees_nothing_of_its_parents(copies):
    arrivals = pending_steps.Arrivals(lambda held: None, None)
    freed = []

    class Asked:
        def __del__(self):
            freed.append(self)

    arrivals.exchange([Asked()])
    arrivals._process += 1
    arrivals.drop([Asked()])
    assert freed == []
    arrivals._process -= 1
    arrivals.exchange([Asked()])
    arrivals.drop([Asked()])
    assert len(freed) == 2


def test_a_step_that_ends_inside_of_a_transform_has_its_values(tmp_path, copies, capsys):
    hook = make_hook(str(tmp_path / "run"), reduction_config=smd.ReductionConfig(norms=["l2"]))
    model, optimizer = model_of(hook)
    seen = []
    for _ in range(3):
        seen += train(hook, model, optimizer, 1)
        torch.func.vmap(torch.func.jacrev(model))(torch.randn(2, 5))
    hook.close()
    assert "failed" not in capsys.readouterr().err
    trial = create_trial(str(tmp_path / "run"))
    assert len(trial.steps()) >= 3
    for name, array in seen[0].items():
        assert trial.tensor(name).reduction_value(0, "l2") == pytest.approx(np.linalg.norm(array)), name
