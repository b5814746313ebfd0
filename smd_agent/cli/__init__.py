"""Save tensors from an unchanged training script, and read them back.

usage: python -m smd_agent [options] script.py [args ...]     run a script with the agent on
       python -m smd_agent [options] -m module [args ...]     the same for a module
       python -m smd_agent [options] -c code [args ...]       the same for a piece of code
       python -m smd_agent [options] command [args ...]       the same for a command such as torchrun
       python -m smd_agent ls RUN                             what a run has saved
       python -m smd_agent show RUN [TENSORS]                 how they go over the steps, what is unusual
       python -m smd_agent check RUN                          what is wrong, why, and what to try
       python -m smd_agent watch RUN                          both while it goes on
       python -m smd_agent tap RUN --dump                     have a running training save a step, or stop
       python -m smd_agent diff RUN_A RUN_B                   where two runs part
       python -m smd_agent report RUN                         a page for the browser: findings, charts, all tensors
       python -m smd_agent export RUN --parquet DIR           the statistics of a run as a table
       python -m smd_agent replay RUN                         make a step again that went wrong, and say why it did
       python -m smd_agent info [SCRIPT | RUN]                what the agent would do here, and what is wrong
       python -m smd_agent verify script.py [args ...]        whether the agent leaves the script as it is
       python -m smd_agent install [--check]                  make this Python, an image's, start the agent

`python -m smd_agent COMMAND --help` describes run (the options above), ls, show, check, watch, tap, diff, report,
export, replay, info, verify and install.
A script named like a command is taken for the script when it exists; `run` and `--` may stand before it.
"""

from __future__ import annotations

import importlib
import os
import sys

from smd_agent import guard
from smd_agent.cli.errors import USAGE_ERROR, CommandError
from smd_agent.errors import ConfigError, SMDebugError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import ModuleType

_NAMES = (
    "run",
    "ls",
    "show",
    "check",
    "watch",
    "tap",
    "diff",
    "report",
    "export",
    "replay",
    "info",
    "verify",
    "install",
)
COMMANDS = {name: f"smd_agent.cli.{name}" for name in _NAMES}
"""Command -> its module; the module's docstring is the command's help."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code; the only place where our errors become exit codes."""
    words = list(sys.argv[1:] if argv is None else argv)
    try:
        return _dispatch(words)
    except CommandError as error:
        return _fail(error.message, error.code)
    except ConfigError as error:
        return _fail(str(error), USAGE_ERROR)
    except SMDebugError as error:
        return _fail(str(error), 1)
    except BrokenPipeError:
        # Our reader has gone (`ls RUN | head`); the interpreter must not fail on flushing what is left.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return 1
    except KeyboardInterrupt:
        return 130


def _fail(message: str, code: int) -> int:
    guard.say(message)
    return code


def _dispatch(words: list[str]) -> int:
    if not words or words[0] in ("-h", "--help"):
        print(__doc__.strip(), file=sys.stdout if words else sys.stderr)
        return 0 if words else USAGE_ERROR
    if words[0] == "--version":
        from importlib import metadata

        print(metadata.version("smd-agent"))
        return 0
    name = words[0] if words[0] in COMMANDS and not os.path.isfile(words[0]) else None
    if name in (None, "run"):
        from smd_agent.cli import run

        if name is None:
            _refuse_options_before_command(words, run.split(words)[1])
        return run.launch(words[1:] if name else words, COMMANDS)
    return _read(name, importlib.import_module(COMMANDS[name]), words[1:])


def _refuse_options_before_command(words: list[str], target: list[str]) -> None:
    """Raise where options of run stand before a command's name; a program of the system may have that name, too."""
    name = target[0] if target else ""
    if name in COMMANDS and name != "run" and not os.path.isfile(name) and words[-len(target) - 1] != "--":
        message = f"options of run stand before {name}, which is a command: put them behind it, or -- before the name"
        raise CommandError(f"{message} of a program", USAGE_ERROR)


def _read(name: str, command: ModuleType, words: list[str]) -> int:
    import argparse

    parser = argparse.ArgumentParser(
        prog=f"python -m smd_agent {name}",
        description=command.__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    command.prepare_parser(parser)
    # argparse finds no words behind options for what stands behind a run.
    end = words.index("--") if hasattr(command, "prepare_program") and "--" in words else len(words)
    args = parser.parse_args(words[:end])
    if hasattr(command, "prepare_program"):
        command.prepare_program(args, words[end + 1 :])
    code: int = command.run(args)
    # Here and not at exit, so that a closed pipe is met where it can be handled.
    sys.stdout.flush()
    return code
