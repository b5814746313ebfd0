"""Write a page about a run: what is wrong with it, losses and metrics, norms of all tensors over the steps.

The page is one HTML file that asks nothing of any network, for a browser on a desk or a phone. What rules find stands
at its top, as `check` says it, with links to the steps and tensors. Drag or turn the wheel with Ctrl in a picture to
see fewer steps, in all pictures at once; click a row to see the tensor's lines and its histogram.

Where there are more than 1,000 steps, several share a column, which shows their largest number; NaN and Inf stay.
Without JavaScript the page shows tables and a still picture.

With --serve no file is written: the page is served to the browsers of this machine, and follows the run as it goes on.
The address that is printed has a secret word; who does not know it is refused.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from smd_agent.analysis.trial import Trial
from smd_agent.cli.errors import USAGE_ERROR, CommandError
from smd_agent.cli.open_run import open_run
from smd_agent.cli.output import emit, progress
from smd_agent.formats.addresses import is_address
from smd_agent.printable import size_text
from smd_agent.report.page import made_page
from smd_agent.report.serving import LivePage, PageServer, waiting_page
from smd_agent.rules.judging import Verdict
from smd_agent.rules.registry import judge
from smd_agent.storage.atomic_file import replace_file

DEFAULT = "report.html"


def prepare_parser(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument("run", metavar="RUN", help="folder of the run")
    parser.add_argument("-o", "--out", metavar="FILE", help=f"file to write (default: {DEFAULT})")
    parser.add_argument("--against", metavar="RUN", help="folder of a second run, whose findings stand beside these")
    parser.add_argument("--serve", action="store_true", help="serve a page that follows the run, until Ctrl-C")
    parser.add_argument("--open", action="store_true", help="show the page in the browser, too")


def run(args: argparse.Namespace) -> int:
    """Write the page, or serve it; 1 if a part of the run cannot be read, which the page says, too."""
    if args.serve:
        return _serve(args)

    path = Path(args.out or DEFAULT).expanduser()
    if path.is_dir():
        raise CommandError(f"{path} is a folder: name a file for the page")
    trial = open_run(args.run)
    against = None if args.against is None else open_run(args.against)
    verdict = _judged(trial)
    second = None if against is None else (against, _judged(against))
    with progress("read {} of {} steps") as tell:
        page = made_page(trial, verdict, second, tell).encode()
    _write(path, page)
    emit(f"wrote {path} ({size_text(len(page))})")
    if args.open:
        import webbrowser

        webbrowser.open(path.absolute().as_uri())
    return 1 if verdict.problems or trial.problems else 0


def _serve(args: argparse.Namespace) -> int:
    import webbrowser

    if args.out is not None:
        raise CommandError("--serve writes no file: leave -o out", USAGE_ERROR)
    if is_address(args.run):
        raise CommandError("--serve follows a run in a folder: leave it out, or use watch", USAGE_ERROR)
    against = None if args.against is None else open_run(args.against)
    second = None if against is None else (against, _judged(against))

    def make(mark: str) -> str:
        try:
            trial = open_run(args.run)
        except CommandError as error:
            return waiting_page(str(error))
        return made_page(trial, _judged(trial), second, live=mark)

    with PageServer(LivePage(args.run, make)) as server:
        emit(f"serving {args.run} at {server.address}")
        emit("Ctrl-C ends it")
        sys.stdout.flush()
        if args.open:
            # It listens by now: what the browser asks for waits until it is served.
            webbrowser.open(server.address)
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            emit("ended")
    return 0


def _judged(trial: Trial) -> Verdict:
    with progress("looked at {} of {} steps") as tell:
        return judge(trial, tell)


def _write(path: Path, page: bytes) -> None:
    try:
        replace_file(path.absolute().parent, path.name, page)
    except OSError as error:
        raise CommandError(f"{path} cannot be written: {error.strerror or error}") from error
