"""Kinds of trainings run with the agent and without: what their authors count beside what was saved of them."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np

from harness.compare import noted, own_lines
from harness.runner import SUBJECTS
from smd_agent.analysis.trial import create_trial
from smd_agent.core.modes import ModeKeys

PAGE = Path(__file__).resolve().parents[2] / "docs" / "steps.md"
NONE = "—"
TRAIN, EVAL = ModeKeys.TRAIN, ModeKeys.EVAL
# The kinds by the names of their functions, in the words of the page.
WORDS = {
    "gan": "GAN",
    "gan_with_five_critics": "GAN, five updates of the critic and one of the generator",
    "gan_that_samples_without_gradients": "… where the critic's samples are drawn without gradients",
    "gan_with_a_generator_now_and_then": "… where the generator is updated in every fifth batch",
    "dqn": "DQN",
    "reinforce": "REINFORCE",
    "ppo": "PPO",
    "neural_ode": "neural ODE",
    "accumulation": "accumulation",
    "lbfgs": "LBFGS",
    "two_towers": "two towers",
    "models_in_turns": "models in turns, an optimizer each",
    "distillation": "knowledge distillation",
    "distillation_of_a_teacher_trained_before": "… whose teacher was trained before, in the same process",
    "maml": "MAML",
    "reptile": "meta-learning (Reptile)",
    "k_fold": "k-fold",
    "search": "HPO in one process",
    "resume": "resume in the same process",
    "resume_in_a_second_process": "resume in a second process",
}
_OWN = [{"CollectionName": "gradients"}, {"CollectionName": "losses"}]


class Kinds:
    """A script of kinds, run once without the agent, which notes what each author counts.

    Args:
        runner: a ``harness.runner.Runner``.
        script: its path below the subjects.
        which: kinds to run; those that leave a checkpoint behind find it when they are run again.

    Attributes:
        counts: (iterations, evaluations) of each kind's author.
    """

    def __init__(self, runner, script, which="all"):
        self.runner = runner
        self._script = SUBJECTS / script
        file = runner.folder / "notes.npz"
        plain = runner.plain(self._script, which, self._folder("plain"), str(file))
        assert (plain.returncode, plain.stderr) == (0, "")
        self._lines = {line.split()[0]: f"{line}\n" for line in plain.stdout.splitlines()}
        self._notes = {}
        self.counts = {}
        for key, value in noted(file).items():
            kind, _, place = key.partition("|")
            if place == "counts":
                self.counts[kind] = (int(value[0]), int(value[1]))
            else:
                iteration, _, name = place.partition("|")
                self._notes.setdefault((kind, int(iteration)), {})[name] = value

    def run(self, *kinds, name, interval=1, weights=False, uneven=False):
        """Run kinds in one process with the agent; return their trial.

        Args:
            uneven: whether the agent says that optimizers take uneven turns.
        """
        collections = [*_OWN, {"CollectionName": "weights"}] if weights else _OWN
        config = {"HookParameters": {"save_interval": interval}, "CollectionConfigurations": collections}
        words = (",".join(kinds), self._folder(f"of_{name}"))
        done = self.runner.by_variable(self._script, *words, name=name, config=config, SMD_AGENT_STRICT="1")
        assert done.returncode == 0, done.stderr
        assert own_lines(done) == []
        assert done.stderr.count("uneven turns") == uneven
        assert done.stdout == "".join(self._lines[kind] for kind in kinds)
        (folder,) = re.findall(r"^smd_agent: saving .* to (\S+)", done.stderr, re.M)
        return create_trial(folder)

    def check(self, trial, kind, interval=1, first=0):
        """Compare each saved TRAIN step of a kind with its author's iteration; return how many there were.

        Args:
            trial: of the run.
            kind: which has been run.
            interval: at which it was saved.
            first: how many TRAIN steps were counted before it; below 0, so many of its iterations are not in this run.
        """
        iterations = range(max(0, -first), self.counts[kind][0])
        due = [iteration for iteration in iterations if (first + iteration) % interval == 0]
        saved = [step - first for step in trial.steps(mode=TRAIN) if step - first in iterations]
        assert saved == due
        for iteration in due:
            self._check_step(trial, kind, iteration, first + iteration)
        return len(due)

    def _check_step(self, trial, kind, iteration, step):
        expected = self._notes[kind, iteration]
        names = {one: trial.tensor_names(step=step, mode=TRAIN, collection=one) for one in ("gradients", "losses")}
        gradients, losses = (
            {name: trial.tensor(name).value(step, mode=TRAIN) for name in found} for found in names.values()
        )
        assert gradients.keys() == {name for name in expected if not name.startswith("loss|")}, (kind, iteration)
        for name, value in gradients.items():
            np.testing.assert_allclose(value, expected[name], rtol=1e-6, atol=1e-9, err_msg=f"{kind} {iteration}")
        theirs = [value for name, value in expected.items() if name.startswith("loss|")]
        assert len(losses) == len(theirs) > 0, (kind, iteration)
        for one, other in zip(_sorted(losses.values()), _sorted(theirs), strict=True):
            np.testing.assert_allclose(one.ravel(), other.ravel(), rtol=1e-5, atol=1e-7, err_msg=f"{kind} {iteration}")

    def _folder(self, name):
        folder = self.runner.folder / name
        folder.mkdir(exist_ok=True)
        return str(folder)


def _sorted(arrays):
    return sorted(arrays, key=lambda array: float(array.mean()))


def steps_of(trial):
    """Return how many TRAIN and EVAL steps a run has."""
    return len(trial.steps(mode=TRAIN)), len(trial.steps(mode=EVAL))


def cell(ours, theirs):
    """Return what the page's table has of a kind: the TRAIN steps, and those in EVAL if there are any."""
    words = [f"{mine} / {author}" for mine, author in zip(ours, theirs, strict=True)]
    return words[0] if not ours[1] and not theirs[1] else f"{words[0]}, EVAL {words[1]}"


def table():
    """Return the rows of the page's table of kinds: of each kind's words the other columns by their names."""
    text = PAGE.read_text()
    (found,) = re.findall(r"^\| kind \|.*\n(?:\|.*\n)+", text, re.M)
    head, _, *rows = [[part.strip() for part in line.strip("|").split("|")] for line in found.splitlines()]
    return {row[0]: dict(zip(head[1:], row[1:], strict=True)) for row in rows}
