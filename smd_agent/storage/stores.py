"""A folder in a store such as S3, by way of fsspec: the only place that imports it, and only where an address is given.

Whoever writes brings an event loop, which runs on its own thread. Then nothing is asked of the threads that fsspec and
asyncio start elsewhere, which Python ends before a program's last functions. Whoever reads uses fsspec's own loop, so
that reading works where the program has a loop running, as a notebook has.
"""

from __future__ import annotations

import asyncio
import time
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from smd_agent import guard
from smd_agent.formats.addresses import protocol_of
from smd_agent.printable import printable, shortened

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
    from pathlib import Path

    _Call = tuple[str, tuple[Any, ...], dict[str, Any]]

EXTRA = "pip install 'smd-agent[stores]'"
# A file of twice this size or more is uploaded in parts of this size, of which a few at a time are in memory.
PART_BYTES = 8 << 20
_PARTS_AT_ONCE = 4
_FILES_AT_ONCE = 32
# Of one request, in seconds: until it is connected, and until an answer comes. The store's own clients try no second
# time: it is done here, and their waiting would draw from the program's random numbers.
_S3_OPTIONS = {"connect_timeout": 10, "read_timeout": 30, "retries": {"total_max_attempts": 1}}
_ATTEMPTS = 6
_FIRST_PAUSE = 0.2
_TIME_KEYS = ("LastModified", "last_modified", "mtime", "updated", "created")
_LONGEST_REASON = 200


class StoreFailure(OSError):
    """A store cannot be reached or does not do what it is asked; ``strerror`` is one sentence without its address."""

    def __init__(self, reason: str) -> None:
        super().__init__(5, reason)


class Entry(NamedTuple):
    """A file in a store: bytes, when it was written (seconds since the epoch), and what tells its versions apart."""

    size: int
    changed: float
    version: str


class Store:
    """A folder in a store. Nothing is created by making one.

    Args:
        address: such as ``s3://bucket/runs/7``.
        loop: that each call runs on, on the thread that calls; None for whoever reads.

    Attributes:
        address: the same.

    Raises:
        StoreFailure: what knows such addresses is not installed, or does not understand this one.
    """

    def __init__(self, address: str, loop: asyncio.AbstractEventLoop | None = None) -> None:
        self.address = address
        self._loop = loop
        opened: list[tuple[Any, str]] = []
        failure = guard.attempt(lambda: opened.append(_opened(address, loop)))
        if failure is not None:
            raise StoreFailure(_why_not_opened(address, failure)) from failure
        self._files, self._root = opened[0]

    def at(self, address: str, root: str) -> Store:
        """Another folder of the same store: its address, and what is appended to this one's."""
        other = object.__new__(Store)
        other.__dict__.update(self.__dict__, address=address, _root=self._root + root)
        return other

    def find(self, *folders: str) -> dict[str, Entry]:
        """Every file below some folders, by its name below this one.

        Raises:
            StoreFailure: that cannot be told.
        """
        calls: list[_Call] = [("find", (f"{self._root}/{folder}",), {"detail": True}) for folder in folders]
        found: dict[str, Entry] = {}
        for listed in self._answers(calls):
            if isinstance(listed, BaseException):
                raise StoreFailure(reason_of(listed)) from listed
            for path, info in listed.items():
                if path.startswith(f"{self._root}/") and info.get("type", "file") == "file":
                    found[path[len(self._root) + 1 :]] = _entry(info)
        return found

    def infos(self, *names: str) -> dict[str, Entry]:
        """Those of some files that are there.

        Raises:
            StoreFailure: that cannot be told.
        """
        answers = self._answers([("info", (f"{self._root}/{name}",), {}) for name in names])
        found = {}
        for name, info in zip(names, answers, strict=True):
            if isinstance(info, FileNotFoundError):
                continue
            if isinstance(info, BaseException):
                raise StoreFailure(reason_of(info)) from info
            if info.get("type", "file") == "file":
                found[name] = _entry(info)
        return found

    def read(self, places: Mapping[str, tuple[int, int] | None]) -> dict[str, bytes]:
        """Bytes of files by their names; those that are not there any more are left out.

        Args:
            places: first byte and the one behind the last, or None for the whole file, by the file's name.

        Raises:
            StoreFailure: one of them cannot be read.
        """
        calls: list[_Call] = []
        for name, part in places.items():
            ends = {} if part is None else {"start": part[0], "end": part[1]}
            calls.append(("cat_file", (f"{self._root}/{name}",), ends))
        found: dict[str, bytes] = {}
        for name, content in zip(places, self._answers(calls), strict=True):
            if isinstance(content, FileNotFoundError):
                continue
            if isinstance(content, BaseException):
                raise StoreFailure(f"{name}: {reason_of(content)}") from content
            found[name] = content
        return found

    def put(
        self, folder: Path, names: Sequence[str], seconds: float, moved: Callable[[], None]
    ) -> dict[str, BaseException]:
        """Upload files, several at a time, once; those that failed, with what was the matter.

        Args:
            folder: that has them.
            names: below that, and below this one.
            seconds: after which all that has not been uploaded counts as failed.
            moved: called whenever a part of a file has been taken.
        """
        options: dict[str, Any] = {"callback": _progress(moved)}
        if protocol_of(self.address) in ("s3", "s3a"):
            options |= {"chunksize": PART_BYTES, "max_concurrency": _PARTS_AT_ONCE}
        if not self._files.async_impl:
            # A store is asked for a file by its name or has it whole; a folder of a server may have a part of it.
            return self._put_one_by_one(folder, names)
        calls: list[_Call] = [("put_file", (str(folder / name), f"{self._root}/{name}"), {**options}) for name in names]
        answers = self._made(calls, seconds)
        return {name: one for name, one in zip(names, answers, strict=True) if isinstance(one, BaseException)}

    def _put_one_by_one(self, folder: Path, names: Sequence[str]) -> dict[str, BaseException]:
        failed: dict[str, BaseException] = {}
        for name in names:
            failure = guard.attempt(partial(self._put_whole, folder / name, f"{self._root}/{name}"))
            if failure is not None:
                failed[name] = failure
        return failed

    def _put_whole(self, path: Path, place: str) -> None:
        self._files.makedirs(place.rpartition("/")[0], exist_ok=True)
        self._files.put_file(str(path), f"{place}.tmp")
        self._files.mv(f"{place}.tmp", place)

    def write(self, name: str, content: bytes) -> None:
        """Put a small file in place, whatever is there.

        Raises:
            StoreFailure: that is not possible.
        """
        self._raise_failure(self._answers([("pipe_file", (f"{self._root}/{name}", content), {})]))

    def create(self, name: str, content: bytes) -> bool:
        """Put a small file in place if none is there; whether that has worked.

        Of several that do it at once it works for one. A store that knows no such condition is written to without.

        Raises:
            StoreFailure: that is not possible.
        """
        (answer,) = self._answers([("pipe_file", (f"{self._root}/{name}", content), {"mode": "create"})])
        if not isinstance(answer, BaseException):
            return True
        if isinstance(answer, FileExistsError) or "PreconditionFailed" in str(answer) or "412" in str(answer):
            # The answer to a request that has worked may have been lost.
            return self.read({name: None}).get(name) == content
        self.write(name, content)
        return True

    def remove(self, names: Iterable[str]) -> None:
        """Remove files; those that are not there any more do not matter.

        Raises:
            StoreFailure: one of them cannot be removed.
        """
        answers = self._answers([("rm_file", (f"{self._root}/{name}",), {}) for name in names])
        self._raise_failure([one for one in answers if not isinstance(one, FileNotFoundError)])

    def close(self) -> None:
        """Close the connections of whoever writes."""
        client = getattr(self._files, "_s3", None)
        if client is not None and self._loop is not None:
            guard.attempt(lambda: self._run(client.close, 1.0))

    @staticmethod
    def _raise_failure(answers: Iterable[object]) -> None:
        for answer in answers:
            if isinstance(answer, BaseException):
                raise StoreFailure(reason_of(answer)) from answer

    def _answers(self, calls: Sequence[_Call]) -> list[Any]:
        """What comes of calls, or what they raise, in their order; those that may work the next time are made again."""
        answers = self._made(calls)
        pause = _FIRST_PAUSE
        for _ in range(_ATTEMPTS - 1):
            again = [i for i, answer in enumerate(answers) if _may_pass(answer)]
            if not again:
                break
            time.sleep(pause)
            pause *= 2
            for i, answer in zip(again, self._made([calls[i] for i in again]), strict=True):
                answers[i] = answer
        return answers

    def _made(self, calls: Sequence[_Call], seconds: float = 60.0) -> list[Any]:
        if not self._files.async_impl:
            return [_answer(partial(getattr(self._files, name), *args, **named)) for name, args, named in calls]
        answer = _answer(lambda: self._run(partial(self._gathered, calls), seconds))
        return answer if isinstance(answer, list) else [answer] * len(calls)

    async def _gathered(self, calls: Sequence[_Call]) -> list[Any]:
        turn = asyncio.Semaphore(_FILES_AT_ONCE)

        async def one(name: str, args: tuple[Any, ...], named: dict[str, Any]) -> Any:
            async with turn:
                return await getattr(self._files, f"_{name}")(*args, **named)

        return await asyncio.gather(*(one(*call) for call in calls), return_exceptions=True)

    def _run(self, work: Callable[[], Coroutine[Any, Any, Any]], seconds: float) -> Any:
        if self._loop is not None:
            return self._loop.run_until_complete(asyncio.wait_for(work(), seconds))
        from fsspec.asyn import sync

        return sync(self._files.loop, work, timeout=seconds)


def new_loop() -> asyncio.AbstractEventLoop:
    """An event loop for the thread of whoever writes, which starts no further thread."""
    loop = asyncio.new_event_loop()
    loop.set_default_executor(_Inline(max_workers=1))
    return loop


class _Inline(ThreadPoolExecutor):
    """Does at once what it is handed, such as looking up a host's name: at exit Python starts no thread any more."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **named: Any) -> Future[Any]:
        done: Future[Any] = Future()
        failure = guard.attempt(lambda: done.set_result(fn(*args, **named)))
        if failure is not None:
            done.set_exception(failure)
        return done


def reason_of(error: BaseException) -> str:
    """What is the matter, in a few words."""
    if isinstance(error, (asyncio.TimeoutError, TimeoutError)) or type(error).__name__ == "FSTimeoutError":
        return "it does not answer in time"
    text = getattr(error, "strerror", None) or str(error) or type(error).__name__
    return shortened(printable(" ".join(str(text).split())).rstrip("."), _LONGEST_REASON)


def _opened(address: str, loop: asyncio.AbstractEventLoop | None) -> tuple[Any, str]:
    import fsspec
    from fsspec.asyn import AsyncFileSystem

    protocol = protocol_of(address)
    options: dict[str, Any] = {"skip_instance_cache": True}
    if issubclass(fsspec.get_filesystem_class(protocol), AsyncFileSystem):
        options["use_listings_cache"] = False
        if loop is not None:
            options |= {"asynchronous": True, "loop": loop}
    if protocol in ("s3", "s3a"):
        options["config_kwargs"] = _S3_OPTIONS
    files, root = fsspec.core.url_to_fs(address, **options)
    if protocol in ("s3", "s3a"):
        files.retries = 1
    return files, root.rstrip("/")


def _why_not_opened(address: str, failure: Exception) -> str:
    protocol = protocol_of(address)
    if isinstance(failure, ImportError) and (protocol in ("s3", "s3a") or "fsspec" in str(failure)):
        return f"what reads and writes {protocol}:// is not installed: {EXTRA}"
    return reason_of(failure)


def _progress(moved: Callable[[], None]) -> Any:
    from fsspec.callbacks import Callback

    class Progress(Callback):  # type: ignore[misc]
        """Tells that a part of a file has been taken."""

        def relative_update(self, inc: int = 1) -> None:
            moved()

    return Progress()


def _answer(action: Callable[[], Any]) -> Any:
    answers: list[Any] = []
    failure = guard.attempt(lambda: answers.append(action()))
    return answers[0] if failure is None else failure


def _may_pass(answer: object) -> bool:
    settled = (FileNotFoundError, FileExistsError, PermissionError)
    return isinstance(answer, Exception) and not isinstance(answer, settled) and "Credentials" not in str(type(answer))


def _entry(info: Mapping[str, Any]) -> Entry:
    times = [info[key] for key in _TIME_KEYS if info.get(key) is not None]
    changed = times[0] if times else 0.0
    changed = changed.timestamp() if hasattr(changed, "timestamp") else changed
    known = float(changed) if isinstance(changed, (int, float)) else 0.0
    return Entry(int(info.get("size") or 0), known, f"{info.get('ETag') or info.get('etag') or ''} {known}")
