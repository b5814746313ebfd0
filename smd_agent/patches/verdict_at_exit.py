"""The line at exit on a run that was saved: the verdict, as far as a second tells."""

from __future__ import annotations

import gc
from contextlib import contextmanager
from threading import get_ident
from typing import TYPE_CHECKING

from smd_agent import guard
from smd_agent.config import env
from smd_agent.stalled_disk import in_time

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from logging import LogRecord

    from smd_agent.core.hook import BaseHook
    from smd_agent.rules.verdict_in_time import ShortLook

# Part of the time after which judging ends by itself.
_BUDGET = 0.8
# Seconds by the clock that there are for the last loss, however little time there is for all else.
_PATIENCE = 3.0


@guard.fence("judging the runs")
def judge_runs(hooks: list[BaseHook]) -> None:
    """Say what is wrong with the runs that this process has written and ended."""
    ended = [hook for hook in hooks if hook.ended_worker]
    seconds = env.verdict_seconds()
    if ended and seconds:
        try:
            with _no_garbage_collection():
                for hook in ended:
                    _judge(hook, seconds / len(ended), alone=len(ended) == 1)
        except KeyboardInterrupt:
            # The program is over: nothing of it is left to interrupt.
            guard.say(f"not judged, because that was interrupted: python -m smd_agent check {ended[0].out_dir}")


@contextmanager
def _no_garbage_collection() -> Iterator[None]:
    """Keep the garbage collector still: one turn of it, over all objects of a framework, takes a tenth of a second."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def _judge(hook: BaseHook, seconds: float, alone: bool) -> None:
    from smd_agent.rules.verdict_in_time import CLOCK_TIMES

    shown, folder, worker = hook.out_dir, hook.local_dir, hook.ended_worker
    check = f"python -m smd_agent check {shown}"
    if folder is None:
        guard.say(f"not judged, because it is too large to be here, too: {check}")
        return
    lines: list[str] = []
    budget, patience = _BUDGET * seconds, max(CLOCK_TIMES * seconds, _PATIENCE)
    first: list[str] = []

    def look() -> str:
        return _verdict(folder, worker, budget, check, first.append)

    failure = guard.attempt(lambda: lines.append(in_time(look, patience)))
    if isinstance(failure, TimeoutError):
        lines = first[-1:] or [""]
    if failure is None or isinstance(failure, TimeoutError):
        line = lines[0] or f"not judged within {patience:g} s: {check}"
        guard.say(line if alone or shown in line else f"{line} of {shown}")
    else:
        guard.say(f"judging the run failed ({guard.describe(failure)}): {check}")


def _verdict(folder: str, worker: str, seconds: float, check: str, tell: Callable[[str], object]) -> str:
    """Return the line; empty where there was no time for any. ``tell`` is told one as soon as there is one."""
    import logging

    from smd_agent.analysis.own_part import OwnPart
    from smd_agent.rules.verdict_in_time import look_shortly

    logger, thread = logging.getLogger("smd_agent"), get_ident()

    def is_of_another_thread(record: LogRecord) -> bool:
        return record.thread != thread

    # A reader's warnings would go to the handlers of the program.
    logger.addFilter(is_of_another_thread)
    try:
        part = OwnPart(folder, worker)
        several = part.num_workers > 1
        look = look_shortly(
            *(part, part.saved_steps(), part.files_at, seconds),
            one_worker=several,
            attempt=guard.attempt,
            tell=lambda early: tell(_line(early, check)),
        )
    finally:
        logger.removeFilter(is_of_another_thread)
    return _line(look, check)


def _line(look: ShortLook, check: str) -> str:
    from smd_agent.rules.verdict_in_time import in_one_line

    if not (look.looked or look.saw_last or look.groups or look.verdict.losses):
        return ""
    line = in_one_line(look)
    if look.is_whole and not (look.groups or look.notes):
        return line
    return f"{line}; {'more' if look.is_whole else 'the rest'}: {check}"
