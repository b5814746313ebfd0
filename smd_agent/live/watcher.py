"""The process beside a training: it looks at the run again and again, and says what rules find as soon as they do.

It is started by the training's process and is not its child, see ``storage.watch_process``. It ends when the training
has ended, however that was. It reads files of the run and asks nothing of the training; no framework is imported.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from smd_agent import guard
from smd_agent.analysis.trial import Trial, create_trial
from smd_agent.config import env
from smd_agent.config.live import ALL
from smd_agent.core.requests import DUMP, STOP
from smd_agent.errors import SMDebugError
from smd_agent.live.actions import Actions
from smd_agent.live.finding_files import FINDINGS_FILE, FindingFile, Told
from smd_agent.process_age import start_of
from smd_agent.rules.built_in import BuiltInRule
from smd_agent.rules.finding import Severity
from smd_agent.rules.judging import Judging, Verdict
from smd_agent.rules.registry import applied_unasked, built_in_rules, configured_rules, rules_of_file
from smd_agent.rules.step_view import Limits
from smd_agent.rules.verdict_in_time import LARGEST_VALUE, Stopwatch
from smd_agent.storage.control_files import post

if TYPE_CHECKING:
    from smd_agent.rules.rule import Rule

SECONDS = 1.0
# While there is nothing to look at.
_FIRST_SECONDS = 0.25
# The part of a processor that looking takes at most, and seconds of it for saved steps at a look; the rest waits.
_SHARE = 0.1
_FOR_STEPS = 0.2
_AT_THE_END = 1.0
_OUTPUT = 1
_NICENESS, _NICENESS_OF_GROUP = 19, 10
_FOR_TRACKERS = ("rule", "severity", "mode", "words", "run")


@dataclass(frozen=True)
class Wish:
    """A rule that is to be asked, and what is done when it finds something.

    Attributes:
        name: of the rule, `ALL`, or the path of a Python file with rules.
        parameters: that it is told; None for one that is asked as `check` asks.
        on_find: ``warn``, ``dump`` or ``stop``.
        actions: that follow, each an object with one key.
    """

    name: str
    parameters: Mapping[str, Any] | None
    on_find: str
    actions: tuple[Mapping[str, Any], ...]


class Program:
    """The process that trains.

    Args:
        pid, started: its number, and when it began, which tells it from a later one of that number.
    """

    def __init__(self, pid: int, started: str) -> None:
        self._pid = pid
        self._started = started

    @property
    def is_running(self) -> bool:
        """True until it has ended."""
        return start_of(self._pid) == self._started

    def tell(self, **said: object) -> None:
        """Tell it something; one that has ended does not hear it."""
        with suppress(OSError):
            os.write(_OUTPUT, f"{json.dumps(said)}\n".encode())

    def say(self, line: str) -> None:
        """Have it write a line."""
        self.tell(say=line)


def watch(job: Mapping[str, Any]) -> None:
    """Watch a run until its training has ended.

    Args:
        job: what the training's process has told this one.
    """
    # They were for this process alone.
    for name, text in job["variables"].items():
        env.put(name, text)
    program = Program(*job["program"])
    failure = guard.attempt(partial(_watch, job, program))
    if failure is None:
        program.tell(ended=True)
    else:
        print(guard.describe(failure), file=sys.stderr)


def _watch(job: Mapping[str, Any], program: Program) -> None:
    root = Path(job["root"])
    trial = _opened(root, program)
    if trial is None:
        return
    file = FindingFile(root, job["shown"], job["goes_on"])
    watcher = Watcher(trial, [Wish(*wish) for wish in job["rules"]], program, file)
    while True:
        # Before the look: what is written while it lasts is left for the next one.
        goes_on = program.is_running and not trial.loaded_all_steps and root.is_dir()
        began = time.process_time()
        watcher.look(_FOR_STEPS if goes_on else _AT_THE_END, ended=not goes_on)
        if not goes_on:
            break
        if os.nice(0) < _NICENESS:
            # Not before: where all processors are busy, the start would take long.
            _be_nice()
        time.sleep(max(SECONDS, (time.process_time() - began) / _SHARE))
    watcher.end()


def _be_nice() -> None:
    """Take the lowest priority."""
    os.nice(_NICENESS)
    # Where the system knows groups, that holds among the processes of this session alone, which has no other.
    with suppress(OSError):
        Path("/proc/self/autogroup").write_text(str(_NICENESS_OF_GROUP))


def _opened(root: Path, program: Program) -> Trial | None:
    """The run, as soon as there is one; None if the training ends before that."""
    while program.is_running:
        with suppress(SMDebugError):
            return create_trial(root, timeout=0)
        time.sleep(_FIRST_SECONDS)
    return None


class Watcher:
    """Rules that look on.

    Args:
        trial: the run.
        wishes: which rules, and what follows.
        program: the process that trains.
        file: of the findings.
    """

    def __init__(self, trial: Trial, wishes: Iterable[Wish], program: Program, file: FindingFile) -> None:
        self._program = program
        self._file = file
        self._actions = Actions(program.say)
        self._wishes: dict[str, Wish] = {}
        self._failed: set[str] = set()
        # What is announced and not there is not waited for.
        trial.dynamic_refresh = True
        rules: list[Rule] = []
        # Those of "all" last: one that is named is asked as it is there.
        for wish in sorted(wishes, key=lambda wish: wish.name == ALL):
            made = self._made(wish, trial)
            rules += [rule for rule in made if self._wishes.setdefault(rule.rule_name, wish) is wish]
        limits = Limits(LARGEST_VALUE, lambda: True)
        self._judging = Judging(trial, rules, limits, guard.attempt)
        self._is_written = False
        self._asked: set[str] = set()
        self._trial = trial

    def look(self, seconds: float, ended: bool) -> None:
        """Look at what is new, and tell what is found.

        Args:
            seconds: for saved steps, see `Stopwatch`.
            ended: whether it is the last look.
        """
        # The loss first: where others use the processors, saved steps take their time.
        self._trial.maybe_refresh()
        self._judging.take_series()
        self._tell_news()
        watch = Stopwatch(seconds)
        self._judging.take_new(incomplete=True, goes_on=lambda: watch.used < 1)
        verdict = self._tell_news()
        if ended or not self._is_written:
            self._write(verdict, ended)

    def _tell_news(self) -> Verdict:
        """Tell what is found and has not been told; return the verdict."""
        verdict = self._judging.verdict()
        news = self._file.news(verdict.findings)
        if news:
            self._write(verdict, ended=False)
        for told in news:
            self._tell(told)
        for name, error in verdict.failed.items():
            if name not in self._failed:
                self._failed.add(name)
                self._program.say(f"{name} failed while training, and is asked no more ({guard.describe(error)})")
        return verdict

    def _write(self, verdict: Verdict, ended: bool) -> None:
        self._is_written = True
        failure = guard.attempt(partial(self._file.write, verdict.steps, verdict.losses, ended))
        if failure is None:
            self._program.tell(wrote=FINDINGS_FILE)
        elif not ended:
            self._program.say(f"the findings cannot be written ({guard.describe(failure)})")

    def end(self) -> None:
        """Wait for the actions that are not done."""
        self._actions.wait()

    def _tell(self, told: Told) -> None:
        # Before it is asked to end.
        finding = told.to_json()
        line = f"{finding['severity']} while training: {told.words}; more: python -m smd_agent check {told.run}"
        self._program.tell(say=line, found={key: finding[key] for key in _FOR_TRACKERS})
        self._ask(told, self._wishes[told.finding.rule].on_find)
        self._actions.follow(told, self._wishes[told.finding.rule].actions)

    def _ask(self, told: Told, on_find: str) -> None:
        """Ask the training for what a rule is to do about a problem; a warning may be none, and nothing is done."""
        if on_find not in (DUMP, STOP) or told.finding.severity is not Severity.PROBLEM or STOP in self._asked:
            return
        self._asked.add(on_find)
        root, by = self._trial.root, f"the rule {told.finding.rule}"
        why = {"why": told.words} if on_find == STOP else {}
        failure = guard.attempt(partial(post, root, on_find, asked_by=by, **why))
        if failure is not None:
            self._program.say(f"the training was not asked for a {on_find} ({guard.describe(failure)})")

    def _made(self, wish: Wish, trial: Trial) -> list[Rule]:
        made: list[Rule] = []
        failure = guard.attempt(lambda: made.extend(self._rules_of(wish, trial)))
        if failure is not None:
            self._program.say(f"{wish.name} is not asked while training ({guard.describe(failure)})")
        return made

    def _rules_of(self, wish: Wish, trial: Trial) -> list[Rule]:
        if wish.name.endswith(".py"):
            found = rules_of_file(wish.name).values()
            return [rule() if issubclass(rule, BuiltInRule) else rule(trial) for rule in found]
        known = built_in_rules()
        ignored = trial.collection_manager.ignored_rules
        if wish.name == ALL:
            return [rule() for name, rule in applied_unasked(known).items() if name not in ignored]
        if wish.parameters is None:
            return [known[wish.name]()]
        made, left = configured_rules([(wish.name, wish.parameters)], known)
        for one in left:
            self._program.say(f"{one.rule} is not asked while training ({one.reason})")
        return [*made]
