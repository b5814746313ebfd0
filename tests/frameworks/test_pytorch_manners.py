"""What the PyTorch hook leaves alone: the model, the framework, the program's failures and memory."""

from __future__ import annotations

import copy
import gc
import io
import json
import pickle
import weakref

import pytest

pytest.importorskip("torch")

import torch
from harness.nothing_compiled import nothing_compiled
from torch import nn
from torch.optim.optimizer import _global_optimizer_pre_hooks

import smd_agent.pytorch as smd
from smd_agent.errors import SMDebugError, SMDebugRuntimeError, SMDebugTypeError
from smd_agent.pytorch.capture import persistent_hooks

EVERY = smd.SaveConfig(save_interval=1)


def small():
    return nn.Sequential(nn.Linear(5, 4), nn.ReLU(), nn.Linear(4, 3))


def one_step(model, optimizer):
    optimizer.zero_grad()
    nn.CrossEntropyLoss()(model(torch.randn(6, 5)), torch.randint(0, 3, (6,))).backward()
    optimizer.step()


def trial_of(hook):
    hook.close()
    return smd.create_trial(hook.out_dir)


def test_nothing_stays_behind_between_saved_steps(out):
    def installed():
        return (
            torch.autograd.backward,
            nn.Module.__call__,
            "__call__" in vars(nn.modules.loss._Loss),
            torch.amp.GradScaler.scale,
            [(len(m._forward_hooks), len(m._forward_pre_hooks), len(m._backward_hooks)) for m in model.modules()],
            [p._backward_hooks for p in model.parameters()],
        )

    model = small()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with nothing_compiled():
        before = installed()
        hook = smd.Hook(out, save_all=True, save_config=smd.SaveConfig(save_interval=2))
        hook.register_module(model)
        one_step(model, optimizer)
        assert installed() != before
        one_step(model, optimizer)
        assert installed() == before
        one_step(model, optimizer)
        hook.close()
        assert installed() == before


@pytest.mark.parametrize("others", [False, True])
def test_hooks_on_all_optimizers_stay_between_saved_steps_in_a_program_with_other_threads(out, monkeypatch, others):
    monkeypatch.setattr(persistent_hooks, "_has_other_threads", lambda: others)
    model = small()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    hook = smd.Hook(out, save_config=smd.SaveConfig(save_interval=2))
    hook.register_module(model)
    with nothing_compiled():
        one_step(model, optimizer)
        before = len(_global_optimizer_pre_hooks)
        one_step(model, optimizer)
        assert len(_global_optimizer_pre_hooks) == before - (not others)
    hook.close()


def test_a_profiler_of_the_program_counts_no_operation_of_ours(out):
    def profiled(captured):
        model = small()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        one_step(model, optimizer)
        if captured:
            hook = smd.Hook(out, save_all=True, save_config=EVERY)
            hook.register_module(model)
            one_step(model, optimizer)
        with torch.profiler.profile() as profile:
            one_step(model, optimizer)
            torch.ones(3)
        return {event.key: event.count for event in profile.key_averages()}, hook if captured else None

    plain, _ = profiled(captured=False)
    seen, hook = profiled(captured=True)
    assert seen == plain
    assert plain["aten::ones"] == 1
    assert trial_of(hook).steps() == [0, 1]


def test_layer_hooks_are_gone_after_a_forward_that_raises(out):
    class Failing(nn.Module):
        def forward(self, x):
            raise ValueError("the user's own")

    model = nn.Sequential(nn.Linear(5, 4), Failing())
    hook = smd.Hook(out, save_all=True, save_config=EVERY)
    hook.register_module(model)
    for _ in range(2):
        with pytest.raises(ValueError, match="the user's own"):
            model(torch.randn(6, 5))
        assert not any(m._forward_hooks or m._forward_pre_hooks for m in model.modules())
    assert "0_output_0" in trial_of(hook).tensor_names()


def test_the_model_pickles_and_copies_as_without_a_hook(out):
    class Stateful(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc = nn.Linear(5, 3)

        def forward(self, x):
            return self.fc(x)

        def __getstate__(self):
            return self.__dict__

    for model in (small(), Stateful()):
        hook = smd.Hook(out + type(model).__name__, save_all=True, save_config=EVERY)
        hook.register_module(model)
        x = torch.randn(2, 5)
        expected = model(x)
        buffer = io.BytesIO()
        copies = [copy.deepcopy(model)]
        if isinstance(model, nn.Sequential):
            torch.save(model, buffer)
            buffer.seek(0)
            copies += [torch.load(buffer, weights_only=False), pickle.loads(pickle.dumps(model)), copy.copy(model)]
        step = hook.step
        for twin in copies:
            assert twin.__dict__.get("_compiled_call_impl") is None
            torch.testing.assert_close(twin(x), expected, rtol=0, atol=0)
        assert hook.step == step
        assert model.state_dict().keys() == type(model).state_dict(model).keys()


def test_the_model_can_be_scripted_traced_and_compiled(out, capsys):
    model = small()
    hook = smd.Hook(out, save_all=True, save_config=EVERY)
    hook.register_module(model)
    x = torch.randn(2, 5)
    expected = model(x).detach()
    torch.testing.assert_close(torch.jit.script(model)(x), expected)
    torch.testing.assert_close(torch.jit.trace(model, x)(x), expected)
    torch.testing.assert_close(torch.compile(model, backend="eager", fullgraph=True)(x), expected)
    torch.testing.assert_close(torch.func.vmap(model)(x[None])[0], expected)
    said = capsys.readouterr().err
    assert said.count("a call in which the model is traced or transformed is not saved") == 1
    assert "cannot be saved" not in said


def test_the_models_memory_is_not_held(out):
    model = small()
    hook = smd.Hook(out, save_all=True, save_config=EVERY)
    hook.register_module(model)
    one_step(model, torch.optim.SGD(model.parameters(), lr=0.1))
    model(torch.randn(2, 5))
    hook.recorder.end_step()
    gone = weakref.ref(model)
    gc.disable()
    try:
        del model
        assert gone() is None
    finally:
        gc.enable()


def test_misuse_is_an_error_and_a_finished_run_is_left_alone(out):
    hook = smd.Hook(out)
    with pytest.raises(SMDebugError, match=r"Module type int must be type torch\.nn\.Module"):
        hook.register_module(3)
    model = small()
    hook.register_module(model)
    hook.register_module(model)
    with pytest.raises(AssertionError, match="twice"):
        hook.register_module(next(model.children()))
    assert [tracked.model for tracked in hook.models] == [model]
    with pytest.raises(AssertionError):
        hook.record_tensor_value("x", [1])
    with pytest.raises(RuntimeError, match="out_dir is a required argument"):
        smd.Hook()
    model(torch.randn(2, 5))
    hook.close()
    with pytest.raises(SMDebugRuntimeError, match="already exists"):
        smd.Hook(out)


@pytest.mark.parametrize("registered", [True, False])
def test_a_hook_of_the_program_takes_the_place_of_one_that_has_begun(registered, out, tmp_path, capsys):
    file = tmp_path / "hook.json"
    file.write_text(json.dumps({"LocalPath": out, "HookParameters": {"save_interval": 1}}))
    model = small()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    first = smd.Hook.create_from_json_file(str(file))
    # As the agent does.
    first.add_model(model)
    for _ in range(2):
        one_step(model, optimizer)
    second = smd.Hook(str(tmp_path / "own"), include_collections=["weights"], save_config=EVERY)
    criterion = nn.CrossEntropyLoss()
    if registered:
        second.register_module(model)
    for _ in range(2):
        second.register_loss(criterion)
    for _ in range(3):
        one_step(model, optimizer)
    assert second.registered_losses == [criterion]
    assert second.step == 2
    trial = trial_of(second)
    assert trial.steps() == [0, 1, 2]
    assert trial.tensor_names(collection="weights") == ["Sequential_0.weight", "Sequential_2.weight"]
    assert smd.create_trial(out).steps() == [0, 1]
    lines = [line for line in capsys.readouterr().err.splitlines() if "another hook" in line]
    assert lines == [f"smd_agent: another hook was made: the run in {out} ends with step 1"]


def test_the_singleton(out, monkeypatch, tmp_path):
    assert smd.get_hook() is None
    hook = smd.Hook(out)
    assert smd.get_hook() is hook
    smd.del_hook()
    assert smd.get_hook() is None
    smd.set_hook(hook)
    assert smd.get_hook("nowhere.json", create_if_not_exists=True) is hook
    with pytest.raises(SMDebugTypeError):
        smd.set_hook("hook")
    smd.del_hook()
    monkeypatch.delenv("SMDEBUG_CONFIG_FILE_PATH", raising=False)
    assert smd.get_hook(create_if_not_exists=True) is None
    with pytest.raises(FileNotFoundError):
        smd.Hook.create_from_json_file(str(tmp_path / "none.json"))
    file = tmp_path / "hook.json"
    file.write_text('{"LocalPath": "%s", "HookParameters": {"save_interval": 3}}' % (tmp_path / "other"))
    monkeypatch.setenv("SMDEBUG_CONFIG_FILE_PATH", str(file))
    monkeypatch.setenv("USE_SMDEBUG", "no")
    assert smd.get_hook(create_if_not_exists=True) is None
    monkeypatch.delenv("USE_SMDEBUG")
    made = smd.get_hook(create_if_not_exists=True)
    assert made.out_dir == str(tmp_path / "other")
    assert made.save_config.save_interval == 3


def test_our_failure_is_a_line_and_never_the_users(out, monkeypatch, capsys):
    model = small()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    hook = smd.Hook(out, save_all=True, save_config=EVERY)
    hook.register_module(model)

    def broken(*args, **kwargs):
        raise RuntimeError("broken inside")

    monkeypatch.setattr(hook.recorder, "save_tensors", broken)
    for _ in range(3):
        one_step(model, optimizer)
    lines = [line for line in capsys.readouterr().err.splitlines() if "broken inside" in line]
    # Each part of what is saved says it twice: when it has failed once, and when it is not saved any more.
    assert len(lines) == len({*lines})
    parts = {line.partition(" of step 0 may be missing")[0] for line in lines if "may be missing" in line}
    assert {"smd_agent: weights", "smd_agent: gradients"} <= parts
    assert sum("any more" in line for line in lines) <= len(parts)
    assert model.__dict__.get("_compiled_call_impl") is None


def test_evaluation_of_a_transformer_takes_the_path_it_takes_without_us(out, capsys):
    layer = nn.TransformerEncoderLayer(16, 2, 32, batch_first=True)
    model = nn.Sequential(nn.Linear(16, 16), nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)).eval()
    x = torch.randn(4, 7, 16)
    with torch.no_grad():
        expected = model(x)
        hook = smd.Hook(out, save_all=True, save_config=EVERY)
        hook.register_module(model)
        for _ in range(2):
            assert torch.equal(model(x), expected)
    model.train()
    model(x)
    trial = trial_of(hook)
    assert "0_output_0" in trial.tensor_names(step=0)
    assert "1.layers.0.linear1_output_0" not in trial.tensor_names(step=0)
    assert "1.layers.0.linear1_output_0" in trial.tensor_names(step=2)
    assert capsys.readouterr().err.count("a TransformerEncoderLayer computes differently when it is watched") == 1


class CountingCalls(nn.Sequential):
    calls = 0

    def forward(self, x):
        self.calls += 1
        return super().forward(x)


def test_layers_of_compiled_and_scripted_models_are_a_line_and_the_rest_is_saved(tmp_path, capsys):
    models = {
        "compiled region": torch.compile(CountingCalls(*small()), backend="eager", fullgraph=True),
        "TorchScript": torch.jit.script(small()),
    }
    for reason, model in models.items():
        hook = smd.Hook(str(tmp_path / reason[:4]), save_all=True, save_config=EVERY)
        hook.register_module(model)
        for _ in range(2):
            nn.MSELoss()(model(torch.randn(2, 5)), torch.zeros(2, 3)).backward()
        names = trial_of(hook).tensor_names()
        assert not [name for name in names if name.startswith(("0_", "2_"))]
        assert len([name for name in names if "weight" in name]) == 4
        assert "MSELoss_output_0" in names
        assert capsys.readouterr().err.count(reason) == 1
