"""The table of facts by framework in the documentation, against what real trainings save."""

from __future__ import annotations

import re
from importlib.util import find_spec
from itertools import chain
from typing import NamedTuple

import pytest
from harness.generated_parts import DOCS, generator
from harness.runner import SUBJECTS, Runner

from smd_agent.analysis.trial import create_trial
from smd_agent.core.modes import ModeKeys
from smd_agent.framework import training_facts as facts

PAGE = generator().fill_in((DOCS / "training-facts.md").read_text())
ROWS = re.findall(r"^\| (.+) \|$", re.search(r"^\| fact \|.*?\n\n", PAGE, re.M | re.S)[0], re.M)
TITLES = ROWS[0].split(" | ")[1:]
CELLS = [row.split(" | ") for row in ROWS[1:]]
SAVED = ("yes", "train", "eval")
QUIET = {"CUDA_VISIBLE_DEVICES": "", "TF_CPP_MIN_LOG_LEVEL": "3"}
CONFIG = {"HookParameters": {"save_interval": 1, "save_all": True}}
PREFIXES = (
    *(facts.UPDATE, facts.UPDATE_RATIO, facts.OPTIMIZER, facts.INPUT_DIGEST, facts.PARAMETERS, facts.LOADS),
    *(facts.LINE, facts.USAGE, facts.DATA_FACTS),
)


class Column(NamedTuple):
    """A framework: the program that trains with it, the packages it needs, and what else is set."""

    program: str
    packages: tuple[str, ...]
    variables: tuple[tuple[str, str], ...] = ()


COLUMNS = {
    "PyTorch": Column("modules.py", ("torch",)),
    "Keras": Column("fits.py", ("tensorflow",)),
    "Keras on PyTorch": Column("fits.py", ("torch", "keras"), (("KERAS_BACKEND", "torch"),)),
    "GradientTape": Column("tape.py", ("tensorflow",)),
    "sessions, estimators": Column("session.py", ("tensorflow",)),
    "Gluon": Column("blocks.py", ("mxnet",)),
    "XGBoost": Column("rounds.py", ("xgboost",)),
}


def facts_in(cell):
    """The facts that the first cell of a row names; all but the first without what they have in common."""
    first, *others = re.findall(r"`([^`]+)`", cell)
    common = first.rpartition("/")[0]
    return {first, *(f"{common}/{other}" if common else other for other in others)}


def fact_of(name):
    """The name of a fact, without that of a model, a layer, a loss, an optimizer or a parameter."""
    kind, *parts = name.split("/")
    if kind in ("usage", "data_facts"):
        return f"{kind}/{parts[0]}/{parts[-1]}"
    return f"{kind}/{parts[-1]}" if kind == "optimizer" else kind


def saved(trial, mode):
    names = trial.tensor_names(mode=mode) if mode is ModeKeys.GLOBAL or mode in trial.modes() else []
    return {fact_of(name) for name in names if name.startswith(PREFIXES)}


def test_every_cell_is_explained():
    assert [*COLUMNS] == TITLES
    assert {len(row) for row in CELLS} == {len(TITLES) + 1}
    section = PAGE.partition("| fact |")[2].partition("\n## ")[0]
    explained = {*SAVED, *re.findall(r"^- ([\w ]+): ", section, re.M)}
    assert {cell for row in CELLS for cell in row[1:]} == explained
    named = [fact for row in CELLS for fact in facts_in(row[0])]
    assert len(named) == len({*named})


@pytest.mark.parametrize("title", COLUMNS)
def test_trainings_save_what_the_table_says(title, tmp_path):
    program, packages, variables = COLUMNS[title]
    if not all(map(find_spec, packages)):
        pytest.skip(f"needs {', '.join(packages)}")
    runner = Runner(tmp_path, packages)
    done = runner.by_variable(SUBJECTS / "facts" / program, config=CONFIG, **QUIET, **dict(variables))
    assert done.returncode == 0, done.stderr
    trial = create_trial(str(tmp_path / "run"))
    place = TITLES.index(title) + 1
    told = {word: {fact for row in CELLS if row[place] == word for fact in facts_in(row[0])} for word in SAVED}
    assert saved(trial, ModeKeys.EVAL) == told["yes"] | told["eval"]
    assert saved(trial, ModeKeys.GLOBAL) == {*chain(*told.values())}
