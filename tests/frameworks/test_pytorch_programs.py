"""Whole PyTorch programs: none can tell that the agent is there, and each run has what the program's author expects."""

from __future__ import annotations

import re

import pytest

pytest.importorskip("torch")

from harness.compare import Both, assert_untouched, saved_values
from harness.programs import ONE_THREAD, PROGRAMS, Expected, ProgramRuns, checks_of
from subjects.programs.expected_pytorch import EXPECTED
from subjects.programs.expected_pytorch_agents import EXPECTED as AGENTS
from subjects.programs.expected_pytorch_methods import EXPECTED as METHODS
from subjects.programs.expected_pytorch_models import EXPECTED as MODELS

from smd_agent.analysis.trial import create_trial
from smd_agent.core.modes import ModeKeys

FOLDER = PROGRAMS / "pytorch"
TRAIN = ModeKeys.TRAIN
# Programs that are run by the launcher too, in interpreters of their own.
LAUNCHED = ("wrapped_task", "unstable")


@pytest.fixture(scope="module")
def runs(program_runs):
    return program_runs(FOLDER, EXPECTED)


@pytest.mark.parametrize("program, check", checks_of(EXPECTED))
def test_a_program_is_untouched_and_saved_as_its_author_expects(runs, program, check):
    getattr(runs(program), f"check_{check}")()


@pytest.mark.parametrize("program", LAUNCHED)
def test_the_launcher_leaves_a_program_untouched_and_saves_every_tenth_step(runs, program):
    plain = runs(program)
    agent = plain.runner.by_launcher("--out", "launched", "--every", "10", FOLDER / f"{program}.py", **ONE_THREAD)
    files = plain.take_files("launched")
    both = Both(plain.both.plain, agent, plain.runner.folder / "launched")
    assert_untouched(both, code=plain.expected.code)
    assert files == plain.files_without
    steps = [*range(0, plain.expected.train, 10)]
    # Weights that are not finite when the run ends are saved in its last step.
    broken = [plain.expected.train - 1] if "LossNotFinite" in plain.expected.findings else []
    assert both.trial.steps(mode=TRAIN) == [*steps, *broken]
    found = {key: value for key, value in saved_values(both.trial).items() if key[1] is TRAIN and key[2] in steps}
    assert {step for _, _, step in found} == {*steps}
    for key, value in found.items():
        assert value.tobytes() == plain.values[key].tobytes(), key


def test_a_search_with_processes_has_a_run_for_each_of_them(module_runner):
    """Two that are forked train twice, and are ended by their pool; one that is spawned trains once."""
    name = "search_with_processes"
    runs = ProgramRuns(module_runner(name), FOLDER / f"{name}.py", Expected(files=("best_model.pt", "search.json")))
    runs.check_untouched()
    assert "child ended with 7" in runs.both.plain.stdout
    folders = sorted(path for path in runs.runner.folder.iterdir() if re.fullmatch(r"run(-\d+)?", path.name))
    trials = [create_trial(str(folder)) for folder in folders]
    steps = [trial.steps(mode=TRAIN) for trial in trials]
    assert steps == [[*range(len(found))] for found in steps]
    assert sum(map(len, steps)) == 4 * 8 + 16
    for trial in trials:
        values = saved_values(trial)
        for step in trial.steps(mode=TRAIN):
            assert ("CrossEntropyLoss_output_0", TRAIN, step) in values
            assert ("gradient/Classifier_out.bias", TRAIN, step) in values
    # It is said where each of them saves.
    assert [sum(f"to {folder} " in f"{line} " for line in runs.both.said) for folder in folders] >= [1] * len(folders)


def test_all_programs_are_run():
    names = {path.stem for path in FOLDER.glob("*.py")}
    assert names == {*EXPECTED, *AGENTS, *METHODS, *MODELS, "search_with_processes"}
