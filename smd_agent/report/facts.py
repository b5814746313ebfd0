"""The saved tensors of a run, what it lacks, what it cost and with what it ran, as parts of the page."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from smd_agent.analysis.run_summary import bytes_of, files_alike, state_of
from smd_agent.analysis.trained_parameters import TRAINED, untrained
from smd_agent.analysis.trial import Trial
from smd_agent.compare.environments import environment_of, spoken
from smd_agent.core.collection_keys import CollectionKeys
from smd_agent.core.modes import ModeKeys
from smd_agent.errors import SMDebugError
from smd_agent.formats.notes import Facts, in_words
from smd_agent.printable import shortened, size_text, some_of
from smd_agent.report.collecting import Collected
from smd_agent.report.html_elements import Element, count_of, element, table, time_text
from smd_agent.rules.judging import Verdict
from smd_agent.rules.not_judged import grouped
from smd_agent.storage.worker_files_reader import read_about, read_failures, read_lost_steps


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


_NAMES_SHOWN = 12
_LINES_SHOWN = 50


def summary_rows(collected: Collected) -> list[tuple[str, str]]:
    """Return what stands below the page's title: names and values."""
    trial = collected.trial
    rows = [("run", trial.path), ("state", state_of(trial))]
    rows += [("failed", in_words(one.failure)) for one in read_failures(trial.root)[:_NAMES_SHOWN]]
    by_mode = [
        f"{mode.name} {count_of(len(own), 'step')}, {own[0]} to {own[-1]}"
        for mode in sorted({*trial.step_table.modes()} or {ModeKeys.GLOBAL}, key=lambda mode: mode.value)
        if (own := trial.step_table.steps(mode, incomplete=True))
    ]
    rows.append(("saved", "; ".join(by_mode) or "no step"))
    rows.append(("workers", some_of(trial.workers(), 4)))
    if collected.states:
        trained = sum(state == TRAINED for state in collected.states.values())
        rows.append(("trained", f"{trained} of {count_of(len(collected.states), 'parameter')}"))
    rows += cost_rows(trial)
    if collected.times:
        rows.append(("time", " to ".join(dict.fromkeys(map(time_text, collected.times)))))
    return rows


def parameters_element(collected: Collected) -> Element | None:
    """Return which parameters are not trained, and why; None where all are, or the run does not tell."""
    found = untrained(collected.states)
    if not found:
        return None
    left = len(collected.states) - sum(map(len, found.values()))
    rows = [(state, str(len(names)), _listed(names)) for state, names in found.items()]
    head = element("p", f"{left} of {count_of(len(collected.states), 'parameter')} are trained. The others:")
    return element("div", head, table(("why not", "how many", "which"), rows, "how many"))


def captured_element(trial: Trial) -> Element:
    """Return a table of the collections: how many tensors each has, at how many steps, and how much it is."""
    found: dict[str, tuple[set[str], set[int], int]] = {}
    collections = trial.collections()
    for contents, alike in files_alike(trial).items():
        sizes = alike.size_by_name()
        for name, collection in collections.items():
            own = {tensor for tensor in contents.names if collection.matches(tensor)}
            size = sum(sizes.get(tensor, 0) for tensor in own)
            size += sum(sizes.get(place, 0) for tensor in own for place in contents.reductions.get(tensor, {}).values())
            if own:
                known = found.setdefault(name, (set(), set(), 0))
                found[name] = (known[0] | own, known[1] | alike.steps, known[2] + size)
    rows = [
        (name, f"{len(names):,}", f"{len(steps):,}", size_text(size), _form(trial, name))
        for name, (names, steps, size) in sorted(found.items())
    ]
    if not rows:
        return element("p", "No tensor was saved.", class_="quiet")
    return table(("collection", "tensors", "steps", "size", "form"), rows, "tensors,steps,size")


def missing_element(collected: Collected, verdict: Verdict) -> Element:
    """Return what was not captured and why: collections without tensors, lost steps, damage, rules without values."""
    trial = collected.trial
    rows: list[tuple[str, str, str]] = []
    rows += [(in_words(one.failure), one.worker, "") for one in read_failures(trial.root)]
    for lost in read_lost_steps(trial.root):
        why = lost.reason or "its folder was removed or moved"
        rows.append((f"{count_of(lost.count + lost.gone, 'step')} of {lost.worker}", shortened(why), ""))
    rows += [(path, why, "") for path, why in trial.problems.items()]
    rows += [("a value", problem, "") for problem in dict.fromkeys((*verdict.problems, *collected.problems))]
    rows += [(_rules(names), reason, option) for (reason, option), names in grouped(verdict.not_judged).items()]
    names = {*trial.tensor_names()}
    empty = [
        name
        for name, collection in sorted(trial.collections().items())
        if not any(map(collection.matches, names)) and name not in (CollectionKeys.ALL, CollectionKeys.DEFAULT)
    ]
    if empty:
        rows.append((f"collections {_listed(empty)}", "no tensor of theirs came up", ""))
    parts = [table(("what", "why", "what saves it"), rows[:_LINES_SHOWN])] if rows else []
    if len(rows) > _LINES_SHOWN:
        parts.append(element("p", f"and {len(rows) - _LINES_SHOWN} more", class_="quiet"))
    if not rows:
        parts.append(element("p", "Nothing is missing that a rule needs, and everything can be read.", class_="quiet"))
    if verdict.not_for_it:
        parts.append(element("p", f"Rules for other kinds of runs: {', '.join(verdict.not_for_it)}.", class_="quiet"))
    return element("div", *parts)


def configuration_element(collected: Collected) -> Element:
    """Return what the run tells of its configuration: hyperparameters, and how collections were saved."""
    trial = collected.trial
    parts = []
    given = [*_hyperparameters(trial)]
    if given:
        parts.append(table(("hyperparameter", "value"), given))
    rows = [
        (name, ", ".join(map(shortened, one.include_regex[:4])) or "-", _form(trial, name))
        for name, one in sorted(trial.collections().items())
    ]
    body = table(("collection", "names that match", "saved as"), rows)
    parts.append(element("details", element("summary", f"{count_of(len(rows), 'collection')} as configured"), body))
    return element("div", *parts)


def _hyperparameters(trial: Trial) -> Iterator[tuple[str, str]]:
    if CollectionKeys.HYPERPARAMETERS not in trial.collections():
        return
    for name in trial.tensor_names(collection=CollectionKeys.HYPERPARAMETERS):
        try:
            tensor = trial.tensor(name)
            value = tensor.value(tensor.steps()[-1]).reshape(-1)
        except (SMDebugError, IndexError):
            continue
        text = ", ".join(map(str, value[:8].tolist())) + (", ..." if value.size > 8 else "")
        yield name.removeprefix(f"{CollectionKeys.HYPERPARAMETERS}/"), shortened(text)


def _form(trial: Trial, name: str) -> str:
    config = trial.collections()[name].reduction_config
    if config is None:
        return "-"
    parts = [config.describe()] if config.to_tokens() else []
    if config.save_raw_tensor or not parts:
        parts.insert(0, "whole")
    elif config.save_raw_up_to:
        parts.append(f"whole up to {config.save_raw_up_to} elements")
    return ", ".join(parts)


def _rules(names: Sequence[str]) -> str:
    return f"{'rule' if len(names) == 1 else 'rules'} {', '.join(names)}"


def _listed(names: Sequence[str]) -> str:
    return some_of([*map(shortened, names)], _NAMES_SHOWN)
