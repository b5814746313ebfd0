"""What a stranger sees first of a training that is healthy or sick: made by real trainings that nobody edited."""

from __future__ import annotations

import time

import pytest

pytest.importorskip("torch")

from harness.runner import SUBJECTS

from smd_agent.cli import main

WARM = ("torch",)
SCRIPT = SUBJECTS / "pytorch" / "sick.py"
SCREEN = 24
CONFIG = {
    "HookParameters": {"save_interval": 10},
    "CollectionConfigurations": [{"CollectionName": name} for name in ("losses", "weights", "biases", "gradients")],
}


@pytest.fixture(scope="module")
def trained(shared_runner):
    """The folder of a run of one kind, trained once; with ``+`` what is known of the parameters is saved too."""
    done = {}

    def once(kind):
        if kind not in done:
            more = [{"CollectionName": "parameters"}] if kind.endswith("+") else []
            config = {**CONFIG, "CollectionConfigurations": [*CONFIG["CollectionConfigurations"], *more]}
            result = shared_runner.by_variable(SCRIPT, kind.removesuffix("+"), name=kind, config=config)
            assert result.returncode == 0, result.stderr
            done[kind] = str(shared_runner.folder / kind)
        return done[kind]

    return once


@pytest.fixture
def screen(trained, capsys):
    """The first screen of a command about a run."""

    def of(command, kind, *words):
        path = trained(kind)
        assert main([command, path, *words]) == 0
        written = capsys.readouterr()
        assert written.err == ""
        lines = written.out.replace(path, kind).splitlines()
        assert [line for line in lines if command == "show" and len(line) > 80] == []
        return lines[:SCREEN]

    return of


def line_of(name, screen):
    return next(line.split() for line in screen if line.split()[:1] == [name])


@pytest.mark.parametrize("command", ["show", "ls"])
def test_nan(screen, command):
    lines = screen(command, "nan")
    assert "NaN/Inf  25 of 25 tensors, from step 70 on: CrossEntropyLoss_output_0, ..." in lines
    if command == "show":
        _name, trend, _first, last, _, nans, infs = line_of("CrossEntropyLoss_output_0", lines)
        assert trend.endswith("×××××")
        assert (last, nans, infs) == ("nan", "1", "0")
        assert line_of("Net_head.weight", lines)[-2:] == ["64", "0"]
    else:
        assert lines[lines.index("biases:") + 1].split()[-1] == "NaN/Inf"


@pytest.mark.parametrize("command", ["show", "ls"])
def test_a_head_that_no_optimizer_has(screen, command):
    lines = screen(command, "orphan")
    assert "Same     2 of 25 tensors, at all 12 steps: Net_head.bias, Net_head.weight" in lines
    if command == "show":
        assert [line.split()[0] for line in lines[lines.index("") + 2 :][:2]] == ["Net_head.bias", "Net_head.weight"]
        assert line_of("Net_head.weight", lines)[-1] == "same"
        assert line_of("CrossEntropyLoss_output_0", lines)[-1] == "falls"
    else:
        assert lines[lines.index("biases:") + 1].split()[0] == "Net_head.bias"


def test_a_stem_that_no_optimizer_has(screen):
    lines = screen("show", "frozen")
    assert lines[0].startswith("Same     2 of ")
    assert lines[0].endswith("Net_stem.bias, Net_stem.weight")


def test_a_head_that_no_optimizer_has_is_said_to_be_forgotten(screen):
    lines = screen("ls", "orphan+")
    said = "Trained  10 of 12 parameters; 2 in no optimizer: Net_head.weight, Net_head.bias"
    assert said in lines
    header = next(line for line in lines if line.startswith("  TENSOR ")).split()
    assert header[-2:] == ["TRAINED", "NOTE"]
    assert line_of("Net_head.bias", lines)[-3:] == ["no", "optimizer", "Same"]
    assert line_of("Net_blocks.0.a.bias", lines)[-1] == "trained"
    assert not any("Trained" in line or "TRAINED" in line for line in screen("ls", "orphan"))


def test_a_stem_that_no_optimizer_has_is_said_to_be_forgotten(screen):
    lines = screen("ls", "frozen+")
    assert "Trained  10 of 12 parameters; 2 in no optimizer: Net_stem.weight, Net_stem.bias" in lines
    assert line_of("Net_stem.bias", lines)[-3:] == ["no", "optimizer", "Same"]


def test_what_is_frozen_and_what_has_no_gradient(screen):
    lines = screen("ls", "fixed+")
    start = lines.index("Trained  6 of 12 parameters; 4 without a gradient: Net_blocks.1.a.weight, ...")
    assert lines[start + 1] == "         2 frozen: Net_stem.weight, Net_stem.bias"
    assert line_of("Net_blocks.1.a.bias", lines)[-2:] == ["gradient", "Same"]


def test_where_all_parameters_are_trained_nothing_is_said(screen):
    assert not any("rained" in line or "TRAINED" in line for line in screen("ls", "healthy+"))


@pytest.mark.parametrize("command", ["show", "ls"])
def test_healthy(screen, command):
    lines = screen(command, "healthy")
    assert "Unusual  nothing in 25 tensors" in lines
    if command == "show":
        assert line_of("CrossEntropyLoss_output_0", lines)[-1] == "falls"


def test_five_hundred_tensors(screen):
    started = time.monotonic()
    lines = screen("show", "large")
    assert time.monotonic() - started < 60
    assert lines[0] == "Unusual  nothing in 497 tensors"
    assert line_of("CrossEntropyLoss_output_0", lines)[-1] == "falls"
    assert len(lines) == SCREEN


def test_the_word_that_everybody_types(screen):
    lines = screen("show", "healthy", "loss")
    assert line_of("CrossEntropyLoss_output_0", lines)[-1] == "falls"
    assert lines[6].split() == ["MODE", "STEP", "MIN", "MAX", "MEAN", "STD", "L2", "ZERO", "NAN", "INF"]
    assert len([line for line in lines if line.startswith(" TRAIN")]) == 12
