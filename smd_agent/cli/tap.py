"""Ask a running training for something: save more for some steps, save a step whole, keep it, stop, save more seldom.

--collection NAME --steps N: the next N training steps save these collections, too, whether or not the run is
configured to save them. --dump: the next one saves every tensor whole. --replay-next: what the next one is given is
kept, by which replay makes it again (PyTorch). --stop WHY: training ends as its framework ends it, and in a plain loop
before the next update, with exit code 86. set KEY VALUE: save_interval, or that of a mode, such as eval.save_interval.

The request is a file below control in the run's folder, where the training looks once a second; only who can write
into that folder can ask. With several workers all obey at one step. The command waits for their answers.

Exit code 0: all workers have obeyed. 1: one has refused, or not all have answered in time. 2: nobody writes the run.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

from smd_agent.cli.errors import USAGE_ERROR, CommandError
from smd_agent.cli.output import emit
from smd_agent.cli.run_folders import further_runs
from smd_agent.core.requests import DUMP, KEEP, KEYS, SAVE, SET, STOP, Answer
from smd_agent.errors import SMDebugError
from smd_agent.formats.addresses import is_address
from smd_agent.printable import count_of, printable
from smd_agent.storage.claim import describe_state, is_gone, owner_text
from smd_agent.storage.control_files import answers_to, owners_of, planned, post, writer_of

SECONDS = 60.0
STEPS = 5
_BETWEEN_LOOKS = 0.1


def prepare_parser(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument("run", metavar="RUN", help="folder of the run")
    asks = parser.add_argument_group("requests, one of them").add_argument
    asks("set", nargs="*", metavar="set KEY VALUE", help=f"change a setting: {', '.join(KEYS)}")
    asks("--collection", action="append", metavar="NAME", help="save this collection; may be repeated")
    asks("--dump", action="store_true", help="save the next training step whole")
    asks("--replay-next", action="store_true", help="keep what the next training step is given, for replay (PyTorch)")
    asks("--stop", metavar="WHY", help="end the training, and say why")
    parser.add_argument("--steps", type=int, metavar="N", help=f"training steps of --collection (default: {STEPS})")
    parser.add_argument("--at", type=int, default=0, metavar="STEP", help="first training step (default: the next one)")
    words = f"how long answers are waited for, in seconds (default: {SECONDS:g})"
    parser.add_argument("--wait", type=float, default=SECONDS, metavar="S", help=words)


def run(args: argparse.Namespace) -> int:
    """Ask, and print the answers; 1 if not all workers obey."""
    root = _folder(args.run)
    action, given = _request(args)
    try:
        owner = writer_of(root)
        name = post(root, action, at=args.at, **given)
    except SMDebugError as error:
        raise CommandError(f"{error}{_elsewhere(root)}", USAGE_ERROR) from error
    except OSError as error:
        raise CommandError(f"cannot ask in {root}: {error.strerror}", USAGE_ERROR) from error
    return _wait(root, name, owner, args.wait)


def _folder(path: str) -> Path:
    if is_address(path):
        where = "tap takes the folder that the run is written into, on the machine where it trains"
        raise CommandError(f"{path} is an address: {where}", USAGE_ERROR)
    root = Path(path.strip()).expanduser().absolute()
    if not root.is_dir():
        raise CommandError(f"{root} is no folder", USAGE_ERROR)
    return root


def _elsewhere(root: Path) -> str:
    """The further run that is written, in words, where this one is not."""
    if any(not is_gone(owner) for owner in owners_of(root)):
        return ""
    written = [run for run in further_runs(root) if any(not is_gone(one) for one in owners_of(root.parent / run))]
    return f"; {root.parent / written[-1]} is written" if written else ""


def _request(args: argparse.Namespace) -> tuple[str, dict[str, object]]:
    asked: list[tuple[str, dict[str, object]]] = []
    if args.collection:
        steps = STEPS if args.steps is None else args.steps
        asked.append((SAVE, {"collections": tuple(dict.fromkeys(args.collection)), "steps": steps}))
    elif args.steps is not None:
        raise CommandError("--steps says for how many steps --collection is saved: name one", USAGE_ERROR)
    if args.dump:
        asked.append((DUMP, {}))
    if args.replay_next:
        asked.append((KEEP, {}))
    if args.stop is not None:
        asked.append((STOP, {"why": " ".join(args.stop.split())}))
    if args.set:
        asked.append((SET, _setting(args.set)))
    if len(asked) != 1:
        known = "--collection NAME, --dump, --replay-next, --stop WHY or set KEY VALUE"
        raise CommandError(f"name one request: {known}", USAGE_ERROR)
    return asked[0]


def _setting(words: list[str]) -> dict[str, object]:
    if len(words) != 3 or words[0] != "set":
        raise CommandError(f"{' '.join(words)} is no request; a setting is changed by set KEY VALUE", USAGE_ERROR)
    if not words[2].isdecimal():
        raise CommandError(f"the value of {words[1]} is {words[2]!r}, allowed is a whole number from 1 up", USAGE_ERROR)
    return {"key": words[1], "value": int(words[2])}


def _wait(root: Path, name: str, owner: dict[str, object], seconds: float) -> int:
    """Print each answer as it comes; 1 if a worker refuses, or not all answer in time."""
    until, workers, told = time.monotonic() + seconds, 0, False
    answers: dict[str, Answer] = {}
    while True:
        # The plan first: who has answered has read it.
        plan = planned(root, name)
        if plan is not None and not told:
            told, workers = True, max(plan.workers, 1)
            until = time.monotonic() + seconds
            if plan.request.fixed:
                emit(f"{count_of(workers, 'worker')}: at training step {plan.request.at}")
        found = answers_to(root, name)
        for worker in sorted(found.keys() - answers.keys()):
            emit(f"{worker}: {_said(found[worker])}")
        answers = found
        if answers and len(answers) >= workers:
            return 0 if all(answer.obeyed for answer in answers.values()) else 1
        if time.monotonic() > until:
            raise CommandError(_nobody(root, owner, workers, answers, seconds))
        time.sleep(_BETWEEN_LOOKS)


def _said(answer: Answer) -> str:
    return printable(answer.text if answer.obeyed else f"refused: {answer.text}")


def _nobody(root: Path, owner: dict[str, object], workers: int, answers: dict[str, Answer], seconds: float) -> str:
    within = f"within {seconds:g} s"
    where = f"{owner_text(owner)} writes {root} ({describe_state(root, None).partition(',')[0]})"
    if answers:
        return f"{len(answers)} of {workers} workers have answered {within}: {where}"
    if workers:
        return f"the request was taken, and no training step has obeyed {within}; it still may: {where}"
    return f"nobody has answered {within}: is the job running, on what host, and does it see this folder? {where}"
