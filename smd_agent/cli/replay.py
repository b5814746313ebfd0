"""Make a training step again that went wrong, and say what made it so.

PyTorch: the first step of a run whose loss or gradients are not finite, or that an error has ended, leaves a bundle:
batch, weights, random state. The program is started again, in its folder and with its arguments, or as it is named
behind "--"; the first step in which it trains the model gets what the bundle has, is saved whole, and ends the program
before the update. What the program does up to there, such as files that it writes, it does again. Where the first step
does something else than that of the run, as in a program that goes by the number of a step, the step of that number is
taken: at once where the run took less than a minute to it, else with --from-start.

TensorFlow, Keras and MXNet Gluon: there is nothing to put into a step. The program trains again, as it is, up to the
first step whose loss is not finite, and runs that one operation by operation. The losses of the steps before are
compared with those of the run, bit for bit; where one differs, nobody is blamed.

Exit code 0: the step was made again, the same or as it was asked for. 1: it was made, and is not the same. 2: it could
not be made.
"""

from __future__ import annotations

import argparse
import dataclasses
import math
import shutil
from collections.abc import Iterator
from pathlib import Path

from smd_agent.cli import trained_again
from smd_agent.cli.errors import USAGE_ERROR, CommandError
from smd_agent.cli.output import emit_all, emit_json, facts
from smd_agent.cli.replayed_program import free_folder, last_line, run_program, words_of
from smd_agent.formats.addresses import is_address
from smd_agent.formats.bundles import ASKED_FOR, Bundle
from smd_agent.formats.replays import Order, Replayed
from smd_agent.printable import some_of
from smd_agent.storage.bundle_reader import bundles_in

LABEL = 11
NOT_THE_SAME = 1
_NAMED = 3
# Seconds that a program trains once more without being asked.
_SHORT = 60.0
_DTYPES = ("float64", "float32", "bfloat16", "float16")


def prepare_parser(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.usage = f"{parser.prog} RUN [options] [-- script.py args ...]"
    parser.add_argument("run", metavar="RUN", help="folder of the run")
    parser.add_argument("--step", type=int, metavar="N", help="the training step, where there are several bundles")
    parser.add_argument("--dtype", choices=_DTYPES, help="compute in this type, whatever the program casts to")
    parser.add_argument("--device", metavar="DEVICE", help="compute there, such as cpu")
    parser.add_argument("--eager", action="store_true", help="run compiled code as it was written")
    words = "let the program train up to the step of that number, as it may go by it"
    parser.add_argument("--from-start", action="store_true", help=words)
    parser.add_argument("--out", metavar="DIR", help="folder for what is saved of the step (default: RUN-replay)")
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def prepare_program(args: argparse.Namespace, words: list[str]) -> None:
    """Add the program, which stands behind ``--``; empty where it is that of the run."""
    args.words = words


def run(args: argparse.Namespace) -> int:
    """Print what has come of it; the exit code says whether it is the same."""
    root = _root(args.run)
    known = bundles_in(root)
    if trained_again.is_for(root, known.values()):
        return trained_again.run(args, next(iter(known.values()), None))
    folder, bundle = _chosen(args, known)
    words = words_of(args.words, bundle.words)
    out = free_folder(args.run, args.out)
    at = bundle.step if args.from_start else 0
    order = Order(str(folder), "", args.dtype or "", args.device or "", args.eager, at)
    replayed, ended = run_program(words, order, bundle.folder, out)
    if _is_made(replayed) and _differs(bundle, replayed, order) and at < bundle.step and bundle.seconds < _SHORT:
        shutil.rmtree(out, ignore_errors=True)
        later = dataclasses.replace(order, at=bundle.step)
        other, said = run_program(words, later, bundle.folder, out)
        if _is_made(other):
            replayed, order, ended = other, later, said
    if args.json:
        told = {"why": bundle.why, "loss_in_run": bundle.loss, **vars(replayed)}
        emit_json({**told, "step": bundle.step})
    else:
        emit_all(facts(_told(bundle, replayed, order, out, ended), LABEL))
    if not _is_made(replayed):
        return USAGE_ERROR
    return NOT_THE_SAME if _differs(bundle, replayed, order) else 0


def _root(run: str) -> Path:
    if is_address(run):
        raise CommandError(f"{run} is in a store: copy it to this machine first", USAGE_ERROR)
    root = Path(run).expanduser().absolute()
    if not root.is_dir():
        raise CommandError(f"there is no run at {run}", USAGE_ERROR)
    return root


def _chosen(args: argparse.Namespace, known: dict[Path, Bundle]) -> tuple[Path, Bundle]:
    run, step = args.run, args.step
    found = [pair for pair in known.items() if step is None or pair[1].step == step]
    if not found:
        others = ", ".join(str(bundle.step) for bundle in known.values())
        of = f" of step {step}; there is one of step {others}" if others else ""
        raise CommandError(f"{run} has no bundle{of or ': no step of it went wrong, or none was kept'}", USAGE_ERROR)
    return found[0]


def _is_made(replayed: Replayed) -> bool:
    return replayed.passed or bool(replayed.error and replayed.reached)


def _told(bundle: Bundle, replayed: Replayed, order: Order, out: Path, ended: str) -> Iterator[tuple[str, str]]:
    how = "kept as" if bundle.why == ASKED_FOR else "which went wrong:"
    yield "Step", f"{bundle.step}, {how} {bundle.why}"
    for path in bundle.changed:
        yield "Changed", f"{path} was changed in place after the call: the step is made with what the program has"
    if replayed.problem or not replayed.reached:
        yield "Not made", replayed.problem or f"{bundle.model} was not trained again{last_line(ended)}"
        return
    if replayed.error and not replayed.passed:
        yield "Error", replayed.error
    if replayed.passed:
        yield "Loss", _loss(bundle, replayed, order)
    if bundle.gradients:
        yield "Gradients", f"not finite: {some_of(replayed.broken, _NAMED)}" if replayed.broken else "finite"
    if replayed.maker:
        yield "Made by", replayed.maker
    yield from _compared(bundle, replayed, order)
    if order.at:
        yield "Note", f"made as step {order.at} of the program"
    for note in bundle.notes:
        yield "Note", note
    step = f" --step {order.at}" if order.at else ""
    yield "Saved", f"all tensors of the step: python -m smd_agent show {out}{step}"


def _compared(bundle: Bundle, replayed: Replayed, order: Order) -> Iterator[tuple[str, str]]:
    differs = _differs(bundle, replayed, order)
    if differs:
        yield "Not same", f"not reproducible: {differs}"
        for line in replayed.missing:
            yield "Missing", f"{line} was not found"
        if order.at < bundle.step:
            yield "Note", f"the program may go by the number of its steps: --from-start makes its step {bundle.step}"
    elif replayed.alike:
        yield "Same", "it goes wrong without the compiler, too, of whose operations none are compared"
    elif not order.changes:
        yield "Same", "as in the run, bit for bit" if replayed.passed else "the error of the run"


def _loss(bundle: Bundle, replayed: Replayed, order: Order) -> str:
    before = f"; in the run it was {bundle.loss}" if bundle.loss else ""
    if not order.changes:
        return f"{replayed.loss}{before}"
    ways = {f"in {order.dtype}": order.dtype, f"on {order.device}": order.device, "eager": order.eager}
    way = " and ".join(words for words, asked in ways.items() if asked)
    try:
        finite = math.isfinite(float(replayed.loss)) and not math.isfinite(float(bundle.loss))
    except ValueError:
        finite = False
    return f"{way} {replayed.loss}{before}{': finite, so it is how it was computed' if finite else ''}"


def _differs(bundle: Bundle, replayed: Replayed, order: Order) -> str:
    if order.changes:
        return ""
    if replayed.error and not replayed.passed:
        return "" if replayed.error == bundle.why else "the step has ended with another error"
    if replayed.passed and not bundle.loss:
        return "in the run an error ended the step"
    return replayed.differs
