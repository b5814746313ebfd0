"""The actions that follow a finding: a command, an address that is told, a line of a file, a topic of Amazon SNS.

Each is given the finding as a JSON object. One that fails costs a line; all others are done.
"""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from importlib import import_module
from pathlib import Path
from queue import SimpleQueue
from typing import Any
from urllib.parse import urlsplit
from urllib.request import Request, urlopen

from smd_agent import guard
from smd_agent.live.finding_files import Told
from smd_agent.storage.writer_thread import start_thread

COMMAND_SECONDS, WEBHOOK_SECONDS = 60.0, 10.0
# What there is at the end of the training for those that are not done.
END_SECONDS = 60.0
# Of SNS: the subject of a mail, and the place of the region among the parts of a topic's name.
_LONGEST_SUBJECT = 100
_REGION = 3


class Actions:
    """Actions after findings, done one by one, on a thread of its own.

    Args:
        say: is told, in a line, of what could not be done.
    """

    def __init__(self, say: Callable[[str], object]) -> None:
        self._say = say
        self._waiting: SimpleQueue[tuple[Mapping[str, Any], Told]] = SimpleQueue()
        self._asked = self._done = 0
        self._failed: set[str] = set()

    def follow(self, finding: Told, actions: Iterable[Mapping[str, Any]]) -> None:
        """Have actions done."""
        for action in actions:
            if not self._asked:
                start_thread("smd_agent-actions", self._work, "following findings")
            self._asked += 1
            self._waiting.put((action, finding))

    def wait(self, seconds: float = END_SECONDS) -> None:
        """Wait until all are done, but no longer than this."""
        until = time.monotonic() + seconds
        while self._done < self._asked and time.monotonic() < until:
            time.sleep(0.02)

    def _work(self) -> None:
        while True:
            action, finding = self._waiting.get()
            kind, given = next(iter(action.items()))
            failure = guard.attempt(partial(_KINDS[kind], given, finding.to_json()))
            name = f"{kind} {_shown(kind, given)}"
            if failure is not None and name not in self._failed:
                self._failed.add(name)
                self._say(f"the action {name} failed: {_reason(failure)}")
            self._done += 1


def _command(words: Sequence[str], finding: Mapping[str, Any]) -> None:
    _run(words, finding, shell=False)


def _shell(text: str, finding: Mapping[str, Any]) -> None:
    _run(text, finding, shell=True)


def _run(command: str | Sequence[str], finding: Mapping[str, Any], shell: bool) -> None:
    done = subprocess.run(
        command,
        input=json.dumps(finding),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        shell=shell,
        text=True,
        errors="replace",
        timeout=COMMAND_SECONDS,
        check=False,
    )
    if done.returncode:
        last = ([line for line in done.stderr.splitlines() if line.strip()] or [""])[-1]
        raise OSError(f"exit code {done.returncode}{f' ({last.strip()})' if last else ''}")


def _webhook(address: str, finding: Mapping[str, Any]) -> None:
    request = Request(address, json.dumps(finding).encode(), {"Content-Type": "application/json"})
    with urlopen(request, timeout=WEBHOOK_SECONDS) as answer:
        answer.read(1)


def _file(path: str, finding: Mapping[str, Any]) -> None:
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    with open(path, "a", encoding="utf-8") as file:
        file.write(json.dumps(finding) + "\n")


def _sns(topic: str, finding: Mapping[str, Any]) -> None:
    try:
        boto3: Any = import_module("boto3")
    except ImportError:
        raise OSError("it needs the package boto3: pip install 'smd-agent[sns]'") from None
    parts = topic.split(":")
    client = boto3.client("sns", region_name=parts[_REGION] if len(parts) > _REGION else None)
    subject = f"{finding['rule']}: {finding['words']}".encode("ascii", "replace").decode()[:_LONGEST_SUBJECT]
    client.publish(TopicArn=topic, Subject=subject, Message=json.dumps(finding))


_KINDS: Mapping[str, Callable[[Any, Mapping[str, Any]], None]] = {
    "command": _command,
    "shell": _shell,
    "webhook": _webhook,
    "file": _file,
    "sns": _sns,
}


def _shown(kind: str, given: Any) -> str:
    """The part of an action that is named in lines: addresses and commands may have secrets."""
    if kind == "webhook":
        return str(urlsplit(given).hostname)
    if kind in ("command", "shell"):
        return str(given[0] if kind == "command" else str(given).split()[0])
    return str(given)


def _reason(failure: Exception) -> str:
    if isinstance(failure, subprocess.TimeoutExpired):
        return f"it took more than {failure.timeout:g} s"
    if isinstance(failure, OSError):
        return str(failure.strerror or failure)
    return guard.describe(failure)
