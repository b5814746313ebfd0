"""The report on what was requested of a run: what came up, and what never did, with the names that are nearest."""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass
from itertools import islice

from smd_agent.core.collection_keys import BUILT_IN_NAMES, CollectionKeys
from smd_agent.core.modes import ModeKeys
from smd_agent.core.patterns import name_pattern

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from smd_agent.analysis.trial import Trial
    from smd_agent.core.collection import Collection
    from smd_agent.core.reduction_config import ReductionConfig
    from smd_agent.core.save_config import SaveConfigMode

_SHOWN = 3
# Of a text, how much of it must stand in a name in one order to be taken for it, in pieces of at least so many letters.
_LEAST_SHARE, _PIECE = 0.6, 3
_MOST_NAMES = 5000
_MOST_STEPS = 8
_LONGEST_TEXT, _LONGEST_PATTERN = 200, 2000
# Of a regular expression: looks around, heads of groups, classes, how often, any, escapes, and what stands for itself.
_TOKEN = re.compile(
    r"\(\?<?[!=][^)]*\)|\((?:\?(?:P<\w+>|:))?|\[[^]]*\]|\{[\d,]*\}|\.(?=[*+?{])|[*+?^$)|]|\\[A-Za-z0-9]"
    r"|\\(?P<escaped>.)|(?P<plain>.)",
    re.DOTALL,
)


@dataclass(frozen=True)
class Wanted:
    """A collection that was requested, or that tensors are in.

    Attributes:
        name: its name.
        asked: whether somebody requested it; None in a run that does not tell.
        steps: when it is saved, in words, by mode; one entry ``""`` for all modes alike.
        form: in which form, in words.
        regexes: by which tensors join it.
        tensors: how many have.
    """

    name: str
    asked: bool | None
    steps: dict[str, str]
    form: str
    regexes: list[str]
    tensors: int


@dataclass(frozen=True)
class Steps:
    """The steps of a mode that were saved, as the mode counts them."""

    mode: str
    number: int
    first: int
    last: int


@dataclass(frozen=True)
class Missing:
    """Something that was requested and never came up.

    Attributes:
        what: ``collection``, ``include_regex`` or ``steps``.
        name: of the collection; of steps, their mode.
        asked: the text that was requested: name, regex or step numbers.
        why: in words.
        nearest: names in the run that are like it.
    """

    what: str
    name: str
    asked: str
    why: str
    nearest: tuple[str, ...] = ()


@dataclass(frozen=True)
class RequestReport:
    """The report, as it is printed for programs.

    Attributes:
        run: its folder.
        state: what has become of it, in words.
        tensors: how many there are.
        collections: those that were requested, and others with tensors.
        steps: that were saved, by mode.
        never_came_up: what is missing.
    """

    run: str
    state: str
    tensors: int
    collections: list[Wanted]
    steps: list[Steps]
    never_came_up: list[Missing]


def request_report(trial: Trial, path: str, state: str) -> RequestReport:
    """Return what was requested of a run, and what came of it."""
    names = trial.tensor_names()
    known = trial.collection_manager.asked_for
    steps = _saved_steps(trial)
    members = {name: sum(map(one.matches, names)) for name, one in trial.collections().items()}
    own = [name for name in members if name not in BUILT_IN_NAMES]
    asked = [*dict.fromkeys((*(known or ()), *own))]
    everything = CollectionKeys.ALL in asked
    listed = [name for name in members if members[name] or (name in asked and name != CollectionKeys.ALL)]
    collections = []
    for name in sorted(listed, key=lambda name: (name not in asked, name)):
        collection = trial.collections()[name]
        is_asked = None if known is None and name not in own else everything or name in asked
        form = form_text(collection.reduction_config)
        text = steps_by_mode(collection, [step.mode for step in steps])
        collections.append(Wanted(name, is_asked, text, form, list(collection.include_regex), members[name]))
    missing = [
        *_missing_collections(trial, asked, members, names, steps),
        *_missing_steps(trial, [name for name in listed if members[name]], steps),
    ]
    return RequestReport(path, state, len(names), collections, steps, missing)


def steps_by_mode(collection: Collection, modes: Sequence[str]) -> dict[str, str]:
    """Return when a collection is saved, in words, by mode; one entry ``""`` where all of these modes are alike."""
    if collection.save_config is None:
        return {}
    texts = {mode: rule_text(collection.save_config.get_save_config(ModeKeys[mode])) for mode in modes or ["TRAIN"]}
    return {"": next(iter(texts.values()))} if len({*texts.values()}) == 1 else texts


def rule_text(rule: SaveConfigMode) -> str:
    """Return when a mode is saved, in words."""
    parts = []
    first = rule.next_step(0) if not rule.save_steps else rule.start_step
    if rule.end_step is None or (first is not None and first < rule.end_step):
        parts.append("every step" if rule.save_interval == 1 else f"every {rule.save_interval}")
        if rule.start_step:
            parts[0] += f" from {rule.start_step}"
        if rule.end_step is not None:
            parts[0] += f" to {rule.end_step - 1}"
    if rule.save_steps:
        parts.append(_numbers(rule.save_steps))
    return " and ".join(parts) or "never"


def form_text(config: ReductionConfig | None) -> str:
    """Return in which form tensors are saved, in words."""
    if config is None or not (config.ops or config.histogram):
        return "shapes" if config is not None and not config.save_raw_tensor else "whole"
    text = f"whole and {config.describe()}" if config.save_raw_tensor else config.describe()
    return f"{text}, whole up to {config.save_raw_up_to}" if config.save_raw_up_to else text


def nearest_names(pattern: str, names: Iterable[str]) -> tuple[str, ...]:
    """Return the names that are most like what a regular expression, or a plain name, says; the best first."""
    found: dict[str, float] = {}
    for literal in literals(pattern):
        matcher = difflib.SequenceMatcher(autojunk=False)
        matcher.set_seq2(literal)
        for name in islice(names, _MOST_NAMES):
            matcher.set_seq1(name.lower()[:_LONGEST_TEXT])
            pieces = [block.size for block in matcher.get_matching_blocks()]
            share = sum(size for size in pieces if size >= min(_PIECE, len(literal))) / len(literal)
            if max(share, matcher.ratio()) >= _LEAST_SHARE:
                found[name] = max(found.get(name, 0.0), share + matcher.ratio())
    return tuple(sorted(found, key=lambda name: (-found[name], name))[:_SHOWN])


def literals(pattern: str) -> list[str]:
    """Return the plain texts in a regular expression, in lower case, an entry for each alternative."""
    parts = [""]
    for found in _TOKEN.finditer(pattern[:_LONGEST_PATTERN]):
        if found[0] == "|":
            parts.append("")
        else:
            parts[-1] += found["escaped"] or found["plain"] or ""
    return [part.lower()[:_LONGEST_TEXT] for part in parts if len(part) > 1]


def _numbers(steps: Sequence[int]) -> str:
    return ",".join(map(str, steps[:_MOST_STEPS])) + (",..." if len(steps) > _MOST_STEPS else "")


def _saved_steps(trial: Trial) -> list[Steps]:
    by_mode: dict[ModeKeys, list[int]] = {}
    for step in trial.step_table.steps(ModeKeys.GLOBAL, incomplete=True):
        mode, number = trial.mode_modestep(step)
        if mode is not None and number is not None:
            by_mode.setdefault(mode, []).append(number)
    ordered = sorted(by_mode.items(), key=lambda entry: entry[0].value)
    return [Steps(mode.name, len(own), min(own), max(own)) for mode, own in ordered]


def _missing_collections(
    trial: Trial, asked: Sequence[str], members: Mapping[str, int], names: Sequence[str], steps: Sequence[Steps]
) -> Iterator[Missing]:
    for name in asked:
        collection = trial.collections().get(name)
        built_in = name in BUILT_IN_NAMES
        if collection is None or not (built_in or collection.include_regex or collection.tensor_names):
            # A hook leaves it out.
            known = sorted({*members, *BUILT_IN_NAMES} - {name})
            why = "it is not built in and has no include_regex"
            yield Missing("collection", name, name, why, nearest_names(name, known))
            continue
        own_regexes = [] if built_in and name != CollectionKeys.DEFAULT else collection.include_regex
        late = "" if members[name] or name == CollectionKeys.ALL else _never_due(collection, steps)
        if late:
            yield Missing("collection", name, name, late)
        elif own_regexes or members[name] or name == CollectionKeys.ALL:
            yield from _missing_regexes(name, own_regexes, names)
        else:
            like = nearest_names(name, [one for one in members if members[one] and one != name])
            reason = trial.collection_manager.cannot_save.get(name)
            why = f"no tensor of it came up{f': {reason}' if reason else ''}"
            yield Missing("collection", name, name, why, like)


def _missing_regexes(name: str, regexes: Iterable[str], names: Sequence[str]) -> Iterator[Missing]:
    for regex in dict.fromkeys(regexes):
        if not any(map(name_pattern(regex).found_in, names)):
            why = f"none of the {len(names)} tensors that were saved matches"
            yield Missing("include_regex", name, regex, why, nearest_names(regex, names))


def _never_due(collection: Collection, steps: Sequence[Steps]) -> str:
    """The reason why no step could save a collection; empty where one could."""
    if collection.save_config is None or not steps:
        return ""
    reasons = []
    for step in steps:
        due = collection.save_config.get_save_config(ModeKeys[step.mode]).next_step(0)
        if due is not None and due <= step.last:
            return ""
        reasons.append(f"{step.mode} {'has none' if due is None else f'from {due} on'}, the last was {step.last}")
    return f"no step was due: {'; '.join(reasons)}"


def _missing_steps(trial: Trial, collections: Iterable[str], steps: Sequence[Steps]) -> Iterator[Missing]:
    never: dict[str, list[Steps]] = {}
    configs = {name: trial.collections()[name].save_config for name in collections}
    for step in steps:
        rules = {name: one.get_save_config(ModeKeys[step.mode]) for name, one in configs.items() if one is not None}
        listed = sorted({one for rule in rules.values() for one in rule.save_steps if one > step.last})
        if listed:
            never.setdefault(_numbers(listed), []).append(step)
        for start in sorted({rule.start_step for rule in rules.values() if rule.start_step > step.last}):
            names = ", ".join(name for name, rule in rules.items() if rule.start_step == start)
            never.setdefault(f"from {start} on ({names})", []).append(step)
    for numbers, modes in never.items():
        last = " and ".join(str(step.last) for step in modes)
        why = f"the last that {'was' if len(modes) == 1 else 'were'} saved: {last}"
        yield Missing("steps", ", ".join(step.mode for step in modes), numbers, why)
