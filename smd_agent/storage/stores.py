"""A folder in a store such as S3, by way of fsspec: the only place that imports it, and only where an address is given.

Whoever writes brings an event loop, which runs on its own thread. Then nothing is asked of the threads that fsspec and
asyncio start elsewhere, which Python ends before a program's last functions. Whoever reads uses fsspec's own loop, so
that reading works where the program has a loop running, as a notebook has. Asyncio takes a while to import, so that is
left to who needs it.
"""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from smd_agent import guard
from smd_agent.formats.addresses import protocol_of
from smd_agent.printable import printable, shortened

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
    from concurrent.futures import Future
    from pathlib import Path

    # A function of fsspec's, and what it is given behind the path.
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
NO_ANSWER = "it does not answer in time"


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
        opened = _answer(lambda: _opened(address, loop))
        if isinstance(opened, BaseException):
            raise StoreFailure(_why_not_opened(address, opened)) from opened
        self._files, self._root = opened

    def at(self, ending: str) -> Store:
        """Another folder of the same store, whose address is this one's and an ending."""
        other = object.__new__(Store)
        other.__dict__.update(self.__dict__, address=self.address + ending, _root=self._root + ending)
        return other

    def find(self, *folders: str) -> dict[str, Entry]:
        """Every file below some folders, by its name below this one.

        Raises:
            StoreFailure: that cannot be told.
        """
        calls: dict[str, _Call] = {folder: ("find", (), {"detail": True}) for folder in folders}
        listed = [one for listed in self._answers(calls, missing_ok=False).values() for one in listed.items()]
        start = len(self._root) + 1
        return {
            path[start:]: _entry(info) for path, info in listed if path[:start] == f"{self._root}/" and _is_file(info)
        }

    def infos(self, *names: str) -> dict[str, Entry]:
        """Those of some files that are there.

        Raises:
            StoreFailure: that cannot be told.
        """
        found = self._answers({name: ("info", (), {}) for name in names})
        return {name: _entry(info) for name, info in found.items() if _is_file(info)}

    def read(self, places: Mapping[str, tuple[int, int] | None]) -> dict[str, bytes]:
        """Bytes of files by their names; those that are not there any more are left out.

        Args:
            places: first byte and the one behind the last, or None for the whole file, by the file's name.

        Raises:
            StoreFailure: one of them cannot be read.
        """
        calls: dict[str, _Call] = {}
        for name, part in places.items():
            calls[name] = ("cat_file", (), {} if part is None else {"start": part[0], "end": part[1]})
        return self._answers(calls)

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
        if self._files.async_impl:
            calls = [("put_file", (str(folder / name), f"{self._root}/{name}"), {**options}) for name in names]
            answers = self._made(calls, seconds)
        else:
            answers = [_answer(partial(self._put_whole, folder / name, f"{self._root}/{name}")) for name in names]
        return {name: one for name, one in zip(names, answers, strict=True) if isinstance(one, BaseException)}

    def _put_whole(self, path: Path, place: str) -> None:
        # A store is asked for a file by its name or has it whole; a folder of a server may have a part of it.
        self._files.makedirs(place.rpartition("/")[0], exist_ok=True)
        self._files.put_file(str(path), f"{place}.tmp")
        self._files.mv(f"{place}.tmp", place)

    def write(self, name: str, content: bytes) -> None:
        """Put a small file in place, whatever is there.

        Raises:
            StoreFailure: that is not possible.
        """
        self._answers({name: ("pipe_file", (content,), {})}, missing_ok=False)

    def create(self, name: str, content: bytes) -> bool:
        """Put a small file in place if none is there; whether that has worked.

        Of several that do it at once it works for one. A store that knows no such condition is written to without.

        Raises:
            StoreFailure: that is not possible.
        """
        (answer,) = self._tried({name: ("pipe_file", (content,), {"mode": "create"})}).values()
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
        self._answers({name: ("rm_file", (), {}) for name in names})

    def close(self) -> None:
        """Close the connections of whoever writes."""
        client = getattr(self._files, "_s3", None)
        if client is not None and self._loop is not None:
            guard.attempt(lambda: self._run(client.close, 1.0))

    def _answers(self, calls: Mapping[str, _Call], missing_ok: bool = True) -> dict[str, Any]:
        """The results of calls, by the names of the files that they are about, without those that are not there.

        Raises:
            StoreFailure: one of them has failed.
        """
        answers = {}
        for name, answer in self._tried(calls).items():
            if missing_ok and isinstance(answer, FileNotFoundError):
                continue
            if isinstance(answer, BaseException):
                which = f"{name}: " if calls[name][0] == "cat_file" else ""
                raise StoreFailure(f"{which}{reason_of(answer)}") from answer
            answers[name] = answer
        return answers

    def _tried(self, calls: Mapping[str, _Call]) -> dict[str, Any]:
        """The results of calls, or what they raise; those that may work the next time are made again."""
        answers: dict[str, Any] = {}
        pause = _FIRST_PAUSE
        left = dict(calls)
        for attempt in range(_ATTEMPTS):
            if attempt:
                time.sleep(pause)
                pause *= 2
            made = self._made(
                [(kind, (f"{self._root}/{name}", *args), named) for name, (kind, args, named) in left.items()]
            )
            answers |= zip(left, made, strict=True)
            left = {name: call for name, call in left.items() if _may_pass(answers[name])}
            if not left:
                break
        return answers

    def _made(self, calls: Sequence[_Call], seconds: float = 60.0) -> list[Any]:
        if not self._files.async_impl:
            return [_answer(partial(getattr(self._files, kind), *args, **named)) for kind, args, named in calls]
        answer = _answer(lambda: self._run(partial(self._gathered, calls), seconds))
        return answer if isinstance(answer, list) else [answer] * len(calls)

    async def _gathered(self, calls: Sequence[_Call]) -> list[Any]:
        import asyncio

        turn = asyncio.Semaphore(_FILES_AT_ONCE)

        async def one(kind: str, args: tuple[Any, ...], named: dict[str, Any]) -> Any:
            async with turn:
                return await getattr(self._files, f"_{kind}")(*args, **named)

        return await asyncio.gather(*(one(*call) for call in calls), return_exceptions=True)

    def _run(self, work: Callable[[], Coroutine[Any, Any, Any]], seconds: float) -> Any:
        if self._loop is not None:
            import asyncio

            return self._loop.run_until_complete(asyncio.wait_for(work(), seconds))
        from fsspec.asyn import sync

        return sync(self._files.loop, work, timeout=seconds)


def new_loop() -> asyncio.AbstractEventLoop:
    """An event loop for the thread of whoever writes, which starts no further thread."""
    import asyncio
    from concurrent.futures import Future, ThreadPoolExecutor

    class Inline(ThreadPoolExecutor):
        """Does at once what it is handed, such as looking up a host: at exit Python starts no thread any more."""

        def submit(self, fn: Callable[..., Any], /, *args: Any, **named: Any) -> Future[Any]:
            done: Future[Any] = Future()
            failure = guard.attempt(lambda: done.set_result(fn(*args, **named)))
            if failure is not None:
                done.set_exception(failure)
            return done

    loop = asyncio.new_event_loop()
    loop.set_default_executor(Inline(max_workers=1))
    return loop


def reason_of(error: BaseException) -> str:
    """The reason that an error gives, in a few words."""
    if isinstance(error, TimeoutError) or type(error).__name__ in ("TimeoutError", "FSTimeoutError"):
        return NO_ANSWER
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


def _why_not_opened(address: str, failure: BaseException) -> str:
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


def _is_file(info: Mapping[str, Any]) -> bool:
    return bool(info.get("type", "file") == "file")


def _entry(info: Mapping[str, Any]) -> Entry:
    changed: Any = next((info[key] for key in _TIME_KEYS if info.get(key) is not None), 0.0)
    changed = changed.timestamp() if hasattr(changed, "timestamp") else changed
    known = float(changed) if isinstance(changed, (int, float)) else 0.0
    return Entry(int(info.get("size") or 0), known, f"{info.get('ETag') or info.get('etag') or ''} {known}")
