"""The table of scenarios in the docs is what a run shows; no scenario is changed, and nothing is left out silently."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch")
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the variants are forked")

ROOT = Path(__file__).resolve().parent.parent.parent
PAGE = ROOT / "docs" / "pytorch-scenarios.md"
COSTS = {"plain", "unsaved", "saved"}
COUNTS = ("weights", "gradients", "losses", "layer outputs")


def table(text):
    """Return the rows of a page by scenario, with the lines in place of their numbers, and without the costs."""
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if line[:1] == "|"]
    lines = dict(line.split(". ", 1) for line in text.splitlines() if line[:1].isdigit())
    found = {}
    for cells in rows[2:]:
        row = {name: cell for name, cell in zip(rows[0], cells, strict=True) if name not in COSTS}
        row["said"] = [lines[number] for number in row["said"].split(", ") if number]
        found[row.pop("scenario")] = row
    return found


@pytest.fixture(scope="module")
def shown(module_runner):
    runner = module_runner("scenarios")
    # The repository comes last on the path: it holds the scenarios, but an installed agent goes before its own.
    program = f"import sys; sys.path.append({str(ROOT)!r}); from benchmarks import torch_scenarios as t; t.main()"
    command = [sys.executable, "-W", "ignore", "-c", program, "--rounds", "0"]
    done = subprocess.run(
        command, cwd=runner.folder, env=runner.environment(), capture_output=True, text=True, timeout=1800
    )
    assert done.returncode == 0, done.stderr
    return table(done.stdout)


def test_weights_and_random_states_are_those_of_a_run_without_the_agent(shown):
    assert len(shown) > 30
    assert {row["same bits"] for row in shown.values()} == {"yes"}


def test_nothing_is_saved_wrong(shown):
    assert [(words, row) for words, row in shown.items() if "wrong" in str(row)] == []


def test_what_is_missing_is_said(shown):
    def lacks(cell):
        found, _, total = cell.partition("/")
        return found != total

    silent = {words for words, row in shown.items() if any(lacks(row[name]) for name in COUNTS) and not row["said"]}
    assert silent == set()


def test_the_page_in_the_docs_shows_the_same(shown):
    written = table(PAGE.read_text())
    assert list(shown) == list(written)
    assert {words: row for words, row in shown.items() if row != written[words]} == {}
