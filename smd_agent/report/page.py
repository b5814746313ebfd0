"""The page about a run: one HTML file with its scripts, styles and data, which asks nothing of any network."""

from __future__ import annotations

import base64
import hashlib
import json
import time
from collections.abc import Callable, Iterator, Sequence
from importlib import metadata, resources
from typing import Any

from smd_agent.analysis.trial import Trial
from smd_agent.core.collection_keys import CollectionKeys
from smd_agent.printable import printable
from smd_agent.report import facts
from smd_agent.report.collecting import Collected, collect
from smd_agent.report.facts import environment_element
from smd_agent.report.findings import findings_element, marks, verdict_element
from smd_agent.report.heatmaps import Grid, deflated, to_json
from smd_agent.report.html_elements import Element, count_of, element, joined, table, time_text
from smd_agent.report.line_charts import Lines, Overlay
from smd_agent.report.predictions import MOST_CLASSES, Outcome
from smd_agent.report.still_picture import picture
from smd_agent.report.workers import Workers
from smd_agent.rules.judging import Verdict

Progress = Callable[[int, int], None] | None

STYLES = ("uPlot.min.css", "page.css")
LIBRARY = ("language.js", "uPlot.iife.min.js")
LICENCE = "uPlot.LICENSE"
SCRIPTS = (
    "data.js", "axis.js", "colors.js", "lines.js", "heatmap.js", "histogram.js", "detail.js", "links.js", "live.js",
    "main.js",
)  # fmt: skip
_LINKED = {CollectionKeys.LOSSES: "Losses", CollectionKeys.METRICS: "Metrics"}


def made_page(
    trial: Trial,
    verdict: Verdict,
    against: tuple[Trial, Verdict] | None = None,
    progress: Progress = None,
    live: str | None = None,
) -> str:
    """Return the HTML text of the page about a run.

    Args:
        trial: the run.
        verdict: what rules say of it.
        against: a second run, and what rules say of that.
        progress: is told how many steps are done, of how many.
        live: the mark of a page that is served, which asks its server for another one; None of a file.
    """
    collected = collect(trial, [one.tensor for one in verdict.findings if one.tensor is not None], progress)
    overlay = None if against is None else Overlay(against[0], trial)
    sections = [*_sections(collected, verdict, against, overlay)]
    links = [element("a", title, href=f"#{key}") for key, title, _ in sections]
    bodies = [element("section", element("h2", title), *parts, id=key) for key, title, parts in sections]
    rows = [element("div", element("dt", name), element("dd", value)) for name, value in facts.summary_rows(collected)]
    styles = "\n".join(map(_static, STYLES))
    library, script = "".join(map(_static, LIBRARY)), _script()
    hashes = {"SCRIPTS": _hashes(library, script), "STYLES": _hashes(styles)}
    parts = {
        **hashes,
        "CONNECT": "" if live is None else " connect-src 'self';",
        "TITLE": _title(trial),
        "STYLE": styles,
        "SUMMARY": joined(_summary(trial, verdict, rows, live)),
        "LINKS": joined(links),
        "PICTURE": joined([_picture(collected)]),
        "SECTIONS": joined(bodies),
        "FOOT": joined([_foot()]),
        "DATA": island({**_data(collected, trial, verdict, overlay), "live": live}),
        "LICENCE": _static(LICENCE),
        "LIBRARY": library,
        "SCRIPT": script,
    }
    pieces = _static("page.html").split("%%")
    # Every second piece is the name of a part; what is put in is not looked at again.
    return "".join(parts[piece] if number % 2 else piece for number, piece in enumerate(pieces))


def island(value: object) -> str:
    """Return JSON that may stand in a script element of a page, whatever texts it holds."""
    text = json.dumps(value, allow_nan=False, separators=(",", ":"))
    # json.dumps has written U+2028 and its like as escapes.
    for character in "<>&":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


def _static(name: str) -> str:
    return (resources.files("smd_agent.report") / "static" / name).read_text("utf-8")


def _script() -> str:
    return '"use strict";\n(() => {\n' + "\n".join(map(_static, SCRIPTS)) + "\n})();\n"


def _hashes(*texts: str) -> str:
    digests = (base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in texts)
    return " ".join(f"'sha256-{digest}'" for digest in digests)


def _summary(trial: Trial, verdict: Verdict, rows: Sequence[Element], live: str | None) -> Iterator[Element]:
    yield element("h1", trial.name or trial.path)
    yield verdict_element(verdict)
    if live is not None:
        yield element("p", "", id="live", class_="quiet", role="status")
    yield element("dl", *rows)


def _title(trial: Trial) -> str:
    return joined([f"{trial.name or trial.path} – smd_agent"])


def _foot() -> Element:
    version = metadata.version("smd-agent")
    return element("p", f"Made by smd_agent {version} at {time_text(time.time())}. Lines: uPlot 1.6.32, MIT licence.")


def _data(collected: Collected, trial: Trial, verdict: Verdict, overlay: Overlay | None) -> dict[str, Any]:
    grids = _grids(collected)
    told = _steps_of_modes(collected, grids, [one.global_step for one in verdict.findings])
    found = [
        one | {"tensor": printable(str(one["tensor"])) if one["tensor"] else None} for one in marks(trial, verdict)
    ]
    charts = {group: collected.lines.charts(group) for group in collected.lines.found}
    if overlay is not None:
        charts |= {group: overlay.charts(group, charts[group]) for group in _LINKED}
        told = overlay.told | told
    if collected.workers is not None:
        charts["workers"] = collected.workers.charts()
    outcome = collected.outcome
    return {
        "first": collected.steps[0] if collected.steps else 0,
        "last": max(
            *(collected.steps[-1] if collected.steps else 1, collected.lines.last),
            overlay.last if overlay is not None else 0,
        ),
        "modeSteps": told,
        "charts": charts,
        "grids": to_json(grids),
        "findings": found,
        "details": deflated(json.dumps(collected.details, allow_nan=False).encode()),
        "residuals": outcome.bins if outcome is not None else [],
    }


def _steps_of_modes(collected: Collected, grids: Sequence[Grid], further: Sequence[int]) -> dict[int, tuple[str, int]]:
    """Return of the steps that the page shows how their modes count them, where that is otherwise."""
    steps = [*further, *(step for grid in grids for step in grid.columns.steps)]
    for group in collected.lines.found.values():
        steps += [step for line in group.values() for step in line.steps]
    found = {step: collected.trial.step_table.mode_step(step) for step in steps}
    saved = {step: (one[0].name, one[1]) for step, one in found.items() if one is not None and one[1] != step}
    return collected.lines.told | saved


def _grids(collected: Collected) -> list[Grid]:
    bad = collected.non_finite
    return [*([bad] if bad is not None and bad.names else []), *collected.grids]


def _sections(
    collected: Collected, verdict: Verdict, against: tuple[Trial, Verdict] | None, overlay: Overlay | None
) -> list[tuple[str, str, list[Element]]]:
    sections = [("findings", "Findings", [_findings(collected.trial, verdict, against)])]
    untrained = facts.parameters_element(collected)
    if untrained is not None:
        sections.append(("parameters", "Parameters that are not trained", [untrained]))
    lines = collected.lines
    for group, title in _LINKED.items():
        if lines.found[group] or (overlay is not None and overlay.lines.found[group]):
            sections.append((group, title, _charts(group, lines.left_out(group))))
    if collected.workers is not None:
        sections.append(("workers", "Workers", [*_workers(collected.workers), *_charts("workers", 0)]))
    sections.append(("tensors", "Tensors by step", [*_tensors(collected)]))
    if lines.found[CollectionKeys.OPTIMIZER]:
        sections.append((CollectionKeys.OPTIMIZER, "Optimizer", [*_settings(collected.lines)]))
    if collected.outcome is not None:
        sections.append(("outcome", "Predictions and labels", [_outcome(collected.outcome)]))
    sections += [
        ("captured", "What was captured", [facts.captured_element(collected.trial)]),
        ("missing", "What was not, and why", [facts.missing_element(collected, verdict)]),
        ("configuration", "Configuration", [facts.configuration_element(collected)]),
        ("environment", "Environment", [environment_element(collected.trial, against[0] if against else None)]),
    ]
    return sections


def _findings(trial: Trial, verdict: Verdict, against: tuple[Trial, Verdict] | None) -> Element:
    own = findings_element(trial, verdict)
    if against is None:
        return own
    other, said = against
    beside = findings_element(other, said, is_linked=False)
    columns = [
        element("div", element("h3", title), verdict_element(one), found)
        for title, one, found in ((trial.path, verdict, own), (f"against {other.path}", said, beside))
    ]
    return element("div", *columns, class_="beside")


def _charts(group: str, left_out: int) -> list[Element]:
    parts = [element("div", class_="charts", data_charts=group)]
    if left_out > 0:
        parts.append(element("p", f"{count_of(left_out, 'more line')} of this run have no room here.", class_="quiet"))
    return parts


def _settings(lines: Lines) -> Iterator[Element]:
    constants = [(name, f"{value:.6g}") for name, value in lines.constants().items()]
    if lines.charts(CollectionKeys.OPTIMIZER):
        yield from _charts(CollectionKeys.OPTIMIZER, lines.left_out(CollectionKeys.OPTIMIZER))
    if constants:
        yield element("p", "The same at all steps:", class_="quiet")
        yield table(("setting", "value"), constants)


def _tensors(collected: Collected) -> Sequence[Element]:
    parts: list[Element] = []
    bad = collected.non_finite
    if bad is None or not bad.names:
        seen = f"{count_of(collected.looked_at, 'tensor')} at {count_of(len(collected.steps), 'step')}"
        parts.append(element("p", f"No NaN and no Inf in {seen}.", class_="good"))
    grids = _grids(collected)
    if not grids:
        parts.append(element("p", "No norms of gradients, weights or updates were saved.", class_="quiet"))
    for grid in grids:
        about = [grid.kind.about]
        if grid.left_out:
            about.append(f"{len(grid.names)} of {len(grid.names) + grid.left_out} tensors are shown.")
        if grid.columns.per_column > 1:
            about.append(f"{grid.columns.per_column} saved steps share a column, which shows the largest number.")
        words = element("p", " ".join(about), class_="quiet")
        if len(collected.trial.workers()) > 1:
            about.append("Of several workers the largest number is shown.")
        title = element("h3", f"{grid.kind.title}")
        parts.append(element("div", title, words, class_="grid", data_grid=grid.kind.key, id=f"grid-{grid.kind.key}"))
    return parts


def _workers(workers: Workers) -> list[Element]:
    odd = workers.odd_one()
    parts = []
    if odd is not None:
        since = f": not finite from step {odd.not_finite_from} on" if odd.not_finite_from is not None else ""
        parts.append(element("p", f"{odd.worker} is not like the others{since}.", class_="odd"))
    rows = [
        (
            one.worker,
            *(f"{one.distances[key]:.2%}" if key in one.distances else "-" for key in ("loss", "gradient", "weight")),
            "-" if one.not_finite_from is None else str(one.not_finite_from),
        )
        for one in workers.spreads()[:100]
    ]
    words = "How far each worker is from the middle of all, as a share of it; the median over the steps."
    header = ("worker", "loss", "gradients", "parameters", "not finite from step")
    return [*parts, element("p", words, class_="quiet"), table(header, rows, "loss,gradients,parameters")]


def _outcome(outcome: Outcome) -> Element:
    where = f"{outcome.predictions} and {outcome.labels}, {outcome.place.mode.name} step {outcome.place.step}."
    head = element("p", where, class_="quiet")
    if outcome.counts is None:
        words = "Residuals: prediction minus label."
        return element("div", head, element("p", words), element("div", class_="charts", data_residuals="1"))
    counts = outcome.counts
    right, total = int(counts.trace()), int(counts.sum())
    share = element("p", f"{right} of {total} right ({right / max(total, 1):.1%}). Rows are labels.")
    if len(counts) > MOST_CLASSES:
        words = f"There are {len(counts)} classes; a table is shown of at most {MOST_CLASSES}."
        return element("div", head, share, element("p", words, class_="quiet"))
    rows = [
        [
            element("b", str(label)),
            *(
                element("span", str(count), class_="right" if place == label else f"w{_darkness(count, row)}")
                for place, count in enumerate(row)
            ),
        ]
        for label, row in enumerate(counts.tolist())
    ]
    header = ["label", *(f"pred. {place}" for place in range(len(counts)))]
    return element("div", head, share, table(header, rows, ",".join(header[1:])), class_="confusion")


def _darkness(count: int, row: Sequence[int]) -> int:
    """Return from 0, for none, to 4 how much of a label is predicted so."""
    return -(-4 * count // max(sum(row), 1))


def _picture(collected: Collected) -> Element:
    lines = [*collected.lines.found[CollectionKeys.LOSSES].values()][:8]
    grids = _grids(collected)
    image, width, height = picture(lines, grids)
    names = ", ".join([*(["losses"] if lines else []), *(grid.kind.title for grid in grids)])
    source = f"data:image/png;base64,{base64.b64encode(image).decode()}"
    words = f"From top to bottom: {names or 'nothing'}. Steps go from left to right; red is NaN, orange Inf."
    figure = [element("img", src=source, alt=words, width=width, height=height), element("figcaption", words)]
    return element("figure", *figure, id="picture")
