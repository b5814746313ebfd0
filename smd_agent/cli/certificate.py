"""The certificate of `verify`: a comparison of three runs of a script, and the first difference if there is one."""

from __future__ import annotations

import sys

import smd_agent
from smd_agent.printable import count_of, shortened
from smd_agent.verify.verdict import Outcome, Verdict

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from smd_agent.analysis.trial import Trial
    from smd_agent.verify.first_difference import Difference
    from smd_agent.verify.printed import Printed
    from smd_agent.verify.running import Run

    Runs = tuple[Run, Run, Run]

LABEL = 11
_LONGEST = 160
_LISTED = 3


def certificate(
    verdict: Verdict, runs: Runs, trial: Trial | None, steps: int, kept: str | None
) -> Iterator[tuple[str, str]]:
    """Yield labels and texts.

    Args:
        verdict: on the runs.
        runs: two without the agent, one with it.
        trial: what the agent has saved; None for nothing.
        steps: after which the script was ended; 0 for none.
        kept: folder in which that stays.
    """
    yield "Verdict", _verdict(verdict, trial)
    for failure in verdict.failures[:_LISTED]:
        yield "Failure", shortened(failure, _LONGEST)
    if verdict.difference is not None:
        yield from _difference(verdict, verdict.difference)
    yield from _compared(verdict, steps)
    yield "Stdout", _printed(verdict.stdout)
    yield "Stderr", _printed(verdict.stderr)
    yield "Exit code", verdict.code
    yield "Saved", _saved(trial, runs[2], kept)
    one, other, agent = (f"{run.seconds:.1f} s" for run in runs)
    yield "Time", f"{one} and {other} without the agent, {agent} with it; all of them observed"
    yield "Versions", ", ".join(f"{name} {version}" for name, version in _versions(verdict))


def _verdict(verdict: Verdict, trial: Trial | None) -> str:
    if verdict.outcome is Outcome.DIFFERENT:
        return f"different: with the agent the script does something else{_from(verdict.difference)}"
    if verdict.outcome is Outcome.NOT_DETERMINISTIC:
        return f"your script is not deterministic by itself{_from(verdict.difference)}"
    if verdict.failures:
        return "not verified: observing the runs has failed"
    if trial is None:
        return "nothing to verify: the agent has saved nothing, and the script is as it was"
    if not verdict.compared.steps:
        return "equal in what it printed and how it ended; no step was seen that could be compared"
    return "equal: with the agent the script does the same, bit for bit"


def _from(found: Difference | None) -> str:
    return "" if found is None or found.step is None else f", from step {found.step}"


def _difference(verdict: Verdict, found: Difference) -> Iterator[tuple[str, str]]:
    where = " at the end of the program" if found.at_end else "" if found.step is None else f" at step {found.step}"
    yield "First", f"{found.what}{where}{f', {found.process}' if found.process else ''}"
    labels = ("Without", "With") if verdict.outcome is Outcome.DIFFERENT else ("One run", "The other")
    yield from zip(labels, (found.here, found.there), strict=True)
    if found.step:
        yield (
            "Before",
            f"steps 0 to {found.step - 1} are the same with the agent and without"
            if found.step > 1
            else ("step 0 is the same with the agent and without"),
        )


def _compared(verdict: Verdict, steps: int) -> Iterator[tuple[str, str]]:
    compared = verdict.compared
    if len(verdict.processes) > 1 or verdict.unobserved:
        names = ", ".join(name.replace("-", " ") for name in verdict.processes) or "none"
        others = f"; not compared: {count_of(verdict.unobserved, 'other process')}" if verdict.unobserved else ""
        yield "Processes", names + others.replace("processs", "processes")
    if not compared.steps:
        return
    ended = (
        f", after which the script was ended in each run (--steps {steps})" if steps and steps <= compared.steps else ""
    )
    yield "Steps", f"{compared.steps}{ended}"
    yield "Losses", f"{count_of(compared.losses, 'value')}: the same"
    yield "Weights", f"{count_of(compared.weights, 'tensor')} after the steps and at the end: the same"
    if compared.buffers:
        yield "Buffers", f"{count_of(compared.buffers, 'tensor')} after the steps and at the end: the same"
    yield "Random", "; ".join(_random(compared.random)) or "no generator could be looked at"


def _random(generators: dict[str, bool]) -> Iterator[str]:
    seeded = ", ".join(sorted(name for name, strictly in generators.items() if strictly))
    others = ", ".join(sorted(name for name, strictly in generators.items() if not strictly))
    if seeded:
        yield f"{seeded}: the same"
    if others:
        yield f"{others}: not seeded by the script, as many numbers were drawn"


def _printed(printed: Printed) -> str:
    text = count_of(printed.lines, "line")
    if printed.difference is not None:
        text += f": {printed.difference.what} is different"
    elif not printed.counted:
        text += ": not compared, there is another number of them in each run"
    elif printed.lines:
        text += ": the same"
    if printed.counted and printed.varying:
        listed = ", ".join(map(str, printed.varying[:_LISTED])) + (", ..." if printed.varying[_LISTED:] else "")
        lines = "line" if len(printed.varying) == 1 else "lines"
        text += f", but for what is another in each run without the agent too ({lines} {listed})"
    if printed.ours:
        text += f"; {count_of(printed.ours, 'line')} of the agent's own left out"
    return text


def _saved(trial: Trial | None, agent: Run, kept: str | None) -> str:
    if trial is None:
        said = [line for line in agent.stderr.decode(errors="replace").splitlines() if line.startswith("smd_agent: ")]
        return f"nothing{': ' + shortened(said[-1], _LONGEST) if said else ''}"
    text = f"{count_of(len(trial.tensor_names()), 'tensor')} at {count_of(len(trial.steps()), 'step')}"
    return f"{text}, in {kept}" if kept else text


def _versions(verdict: Verdict) -> Iterator[tuple[str, str]]:
    from smd_agent.patches.declared import declared

    yield "Python", ".".join(map(str, sys.version_info[:3]))
    frameworks = declared()
    for name, version in verdict.versions.items():
        yield frameworks[name].title, version
    yield "smd_agent", smd_agent.__version__


def as_json(verdict: Verdict, runs: Runs, trial: Trial | None, steps: int) -> dict[str, Any]:
    """Return the same for programs."""
    found = verdict.difference
    first: dict[str, Any] | None = None
    if found is not None:
        first = {"what": found.what, "step": found.step, "at_end": found.at_end, "process": found.process or "main"}
        first |= {"values": [found.here, found.there]}
    return {
        "verdict": verdict.outcome.value,
        "first_difference": first,
        "failures": verdict.failures,
        "steps": verdict.compared.steps,
        "ended_after": steps or None,
        "losses": verdict.compared.losses,
        "weights": verdict.compared.weights,
        "buffers": verdict.compared.buffers,
        "random": {name: "the same" if strictly else "as many" for name, strictly in verdict.compared.random.items()},
        "stdout": _printed_as_json(verdict.stdout),
        "stderr": _printed_as_json(verdict.stderr),
        "exit_codes": [run.code for run in runs],
        "processes": verdict.processes,
        "processes_not_compared": verdict.unobserved,
        "saved": None if trial is None else {"tensors": len(trial.tensor_names()), "steps": len(trial.steps())},
        "seconds": [round(run.seconds, 3) for run in runs],
        "versions": dict(_versions(verdict)),
    }


def _printed_as_json(printed: Printed) -> dict[str, Any]:
    found, own = printed.difference, printed.own
    return {
        "lines": printed.lines,
        "left_out": printed.ours,
        "lines_that_vary": len(printed.varying),
        "first_that_varies": own and {"what": own.what, "values": [own.here, own.there]},
        "difference": None if found is None else {"what": found.what, "values": [found.here, found.there]},
    }
