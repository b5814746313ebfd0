"""The cost of saving a run, and with what it ran, as parts of the page."""

from __future__ import annotations

from typing import TYPE_CHECKING

from smd_agent.analysis.size import bytes_of
from smd_agent.compare.environments import environment_of, spoken
from smd_agent.core.modes import ModeKeys
from smd_agent.printable import shortened, size_text
from smd_agent.report.markup import Element, element, table
from smd_agent.report.words import count_of
from smd_agent.storage.worker_notes import read_about

if TYPE_CHECKING:
    from collections.abc import Iterator

    from smd_agent.analysis.trial import Trial
    from smd_agent.formats.about import Facts


def cost_rows(trial: Trial) -> Iterator[tuple[str, str]]:
    """Yield what saving took, as far as the run tells: names and values."""
    table_of = trial.step_table
    steps = table_of.steps(ModeKeys.GLOBAL, incomplete=True)
    values = sum(len(file.index.payload.tensors.names) for step in steps for file in table_of.files(step).values())
    yield "on disk", f"{count_of(len(steps), 'step')}, {count_of(values, 'value')}, {size_text(bytes_of(trial))}"
    noted = read_about(trial.root)
    known = [one for one in noted if one.took is not None]
    worst = max(known, key=lambda one: one.share or 0.0, default=None)
    if worst is not None and worst.took is not None:
        of = f" ({worst.took[0]:.3g} of {worst.took[1]:.3g} s)"
        whose = f", of {len(known)} workers the most" if len(known) > 1 else ""
        yield "saving took", f"{worst.share:.1%} of the process's time{of}{whose}"
    elif noted and not trial.loaded_all_steps:
        yield "saving took", "noted when the run ends"


def environment_element(trial: Trial, other: Trial | None) -> Element:
    """Return with what a run ran, and beside it a second one; what is not the same is marked."""
    runs = [trial] if other is None else [trial, other]
    facts = [environment_of(one) for one in runs]
    keys = dict.fromkeys((group, name) for own in facts for group, names in own.items() for name in names)
    if not keys:
        words = "The run has noted nothing of it: an older release or library has saved it."
        return element("p", words, class_="quiet")
    header = ("kind", "what", *(["value"] if other is None else [one.path for one in runs]))
    rows: list[list[Element]] = []
    before = ""
    for group, name in keys:
        values = [_shown(own, group, name) for own in facts]
        differs = len({*values}) > 1
        cells = [element("b", value, class_="differs") if differs else element("span", value) for value in values]
        rows.append([element("span", "" if group == before else group), element("span", name), *cells])
        before = group
    return table(header, rows)


def _shown(facts: Facts, group: str, name: str) -> str:
    return shortened(spoken(group, facts.get(group, {}).get(name)))
