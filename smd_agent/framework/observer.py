"""Observer of a run: writes down what a program trains, for `verify`, with the agent and without it alike.

It must not be of the agent that it watches, and the program must not find the agent where there is none. So this file,
and what it loads, imports nothing of the package: `sitecustomize` loads it from its place, under no name.

After each update of an optimizer, or boosting round, it writes one line of JSON: digests of the losses since the one
before, of all weights that are trained, of what models keep beside them, and of the states of random number generators.
The bytes of the first values go into a second file. Nothing is drawn, and nothing that the program holds is changed.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    import weakref
    from collections.abc import Callable, Iterable
    from importlib.machinery import ModuleSpec
    from types import ModuleType
    from typing import Any

    Value = tuple[str, tuple[int, ...], bytes]
    # Name and value.
    Weights = Iterable[tuple[str, Value]]
    Look = Callable[[Any], Weights]


_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PARTS = "parts"
"""File with a line for each framework that may be imported: its name and the file that knows where it trains."""

MAIN = "main"
STEPS, VALUES = ".steps", ".values"
OTHERS = "other-"
# In bytes: so much of the first values is kept, so that a difference can be shown and not only told.
KEPT = 256 * 1024 * 1024


def start(order: str, rank: str | None) -> None:
    """Observe this process, if it is the program itself or one of its ranks.

    Args:
        order: process that started the program, number of steps to observe (0 for all) and folder to write to, with
            colons between them.
        rank: of this process, as a launcher such as torchrun gives it.
    """
    parent, steps, folder = order.split(":", 2)
    if os.getppid() == int(parent):
        name = MAIN
    elif rank is not None and rank.isdecimal():
        name = f"rank-{rank}"
    else:
        os.close(os.open(os.path.join(folder, f"{OTHERS}{os.getpid()}"), os.O_WRONLY | os.O_CREAT))
        return
    with open(os.path.join(folder, PARTS), encoding="utf-8") as lines:
        parts = dict(line.rstrip("\n").split(" ", 1) for line in lines)
    sys.meta_path.insert(0, Imports(parts, Observer(os.path.join(folder, name), int(steps)).imported))


def load(path: str) -> Any:
    """Execute a file that imports nothing of the package, in which it lies unless its path is absolute.

    The program cannot find what comes of it.
    """
    from _frozen_importlib import module_from_spec
    from _frozen_importlib_external import spec_from_file_location

    spec = spec_from_file_location("smd_observer", os.path.join(_PACKAGE, path))
    module = module_from_spec(spec)  # type: ignore[arg-type]
    spec.loader.exec_module(module)  # type: ignore[union-attr]
    return module


class Imports:
    """The imports of frameworks that are observed.

    Args:
        parts: by import name of a framework, the file that knows where it trains.
        imported: called once for each, when it has been executed: with its name, its module and that file.
    """

    def __init__(self, parts: dict[str, str], imported: Callable[[str, ModuleType, str], object]) -> None:
        self._parts = parts
        self._when_imported = imported
        self._looking: set[str] = set()
        self._seen: set[str] = set()

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        """The spec of a framework that is looked for, which tells us when it has been executed; else None."""
        if fullname not in self._parts or fullname in self._looking or fullname in self._seen:
            return None
        self._looking.add(fullname)
        try:
            finders = (getattr(finder, "find_spec", None) for finder in [*sys.meta_path] if finder is not self)
            found = (find(fullname, path, target) for find in finders if find is not None)
            spec: Any = next((spec for spec in found if spec is not None), None)
        finally:
            self._looking.discard(fullname)
        if spec is not None and hasattr(spec.loader, "exec_module"):
            self._tell_of(fullname, spec.loader)
        return spec  # type: ignore[no-any-return]

    def _tell_of(self, name: str, loader: Any) -> None:
        execute = loader.exec_module

        def exec_module(module: ModuleType) -> None:
            # The loader is as it was when the module's own code looks at it.
            vars(loader).pop("exec_module", None)
            execute(module)
            self._imported(name, sys.modules.get(name, module))

        loader.exec_module = exec_module

    def _imported(self, name: str, module: ModuleType) -> None:
        if name not in self._seen:
            self._seen.add(name)
            self._when_imported(name, module, self._parts[name])


class Records:
    """The two files of a process: a line of JSON for each record, and bytes of the first values.

    Args:
        path: of the files, without their endings.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        self._file = -1
        self._values = -1
        self._kept = 0

    def open(self) -> bool:
        """Make the files, once; False if others have: this is a child of the rank's, which has its number too."""
        if self._file < 0:
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND
            try:
                self._file = os.open(self._path + STEPS, flags, 0o600)
            except FileExistsError:
                return False
            self._values = os.open(self._path + VALUES, flags, 0o600)
        return True

    def write(self, record: dict[str, Any]) -> None:
        """Write a record."""
        import json

        os.write(self._file, json.dumps(record).encode() + b"\n")

    def item(self, name: str, value: Value) -> list[Any]:
        """A value as it stands in a record."""
        dtype, shape, data = value
        return [name, _digest(data), dtype, list(shape), self._keep(data)]

    def _keep(self, data: bytes) -> int:
        """Keep the bytes of a value; returns where they begin, -1 if there are enough of them or the disk is full."""
        at, self._kept = self._kept, self._kept + len(data)
        if self._kept > KEPT:
            return -1
        try:
            wrote = os.write(self._values, data)
        except OSError:
            wrote = -1
        if wrote != len(data):
            self._kept = KEPT
            return -1
        return at


class RandomStates:
    """The states of random number generators after each step."""

    def __init__(self) -> None:
        # What gives a generator's state, and its place in the numbers that it has made.
        self._generators: dict[str, Callable[[], tuple[bytes | None, Any]]] = {"Python": _of_python, "NumPy": _of_numpy}
        self._before: dict[str, tuple[str, int]] = {}

    def add(self, name: str, read: Callable[[], bytes | None]) -> None:
        """Look at another one; ``read`` gives None while there is none."""
        self._generators[name] = lambda: (read(), None)

    def now(self) -> dict[str, list[Any]]:
        """Of each generator: a digest of its state, its place in the numbers it has made, how often it made others.

        The last two are the same in runs that have drawn the same from a generator that nobody has seeded.
        """
        found: dict[str, list[Any]] = {}
        for name, read in self._generators.items():
            state, place = read()
            if state is None:
                continue
            digest = _digest(state)
            before, made = self._before.get(name, (digest, 0))
            made += digest != before
            self._before[name] = digest, made
            found[name] = [digest, place, made]
        return found


class Observer:
    """The writer of what frameworks train in one process.

    Args:
        path: of the files, without their endings.
        limit: steps after which the program is ended; 0 for none.

    Attributes:
        step: how many updates there have been.
        is_eager: whether what is computed now has values; set by a part.
        listeners: are given what a compiled function has returned, by the part that sees them.
    """

    def __init__(self, path: str, limit: int) -> None:
        self.step = 0
        self._records = Records(path)
        self._random = RandomStates()
        self._limit = limit
        self._pid = os.getpid()
        self._off = False
        self._losses: list[list[Any]] = []
        # What has updated, in the order of its first update, and how its weights are looked at.
        self._owners: list[tuple[weakref.ref[Any], Look, Look]] = []
        self._numbers: dict[int, int] = {}
        self._last_words: list[Look] = []
        self.is_eager: Callable[[], bool] = lambda: True
        self.listeners: list[Callable[[Any], object]] = []

    def imported(self, name: str, module: ModuleType, part: str) -> None:
        """Look at where a framework trains, as this file of the package knows it."""
        self.look(lambda: self._watch(name, module, part), f"watching {name}")

    def _watch(self, name: str, module: ModuleType, part: str) -> None:
        import atexit

        if not self.open():
            return
        self._records.write({"kind": "framework", "name": name, "version": str(getattr(module, "__version__", ""))})
        # Once for each: what a framework does itself at the end of the program comes after this.
        atexit.register(self.end)
        load(part).watch(module, self)

    def open(self) -> bool:
        """Make the files; False if this process is not to be observed."""
        self._off = self._off or not self._records.open()
        return not self._off

    # What the parts tell.

    @property
    def active(self) -> bool:
        """True if this process is still observed; a forked one is not."""
        return not self._off and os.getpid() == self._pid and not 0 < self._limit <= self.step

    def around(
        self,
        owner: Any,
        name: str,
        before: Callable[..., object] | None = None,
        after: Callable[..., object] | None = None,
    ) -> Any:
        """Look before and after each call of a function; returns what stands in its place.

        Args:
            owner: class or module whose attribute the function is.
            name: the attribute.
            before: called with what the function is called with.
            after: called with what it returned, and that.
        """
        import functools

        hidden = _hidden()
        original = getattr(owner, name)

        @functools.wraps(original)
        def observed(*args: Any, **kwargs: Any) -> Any:
            try:
                if before is not None:
                    self.look(lambda: before(*args, **kwargs), name)
                result = original(*args, **kwargs)
                if after is not None:
                    self.look(lambda: after(result, *args, **kwargs), name)
            except BaseException as error:
                hidden.leave_traceback(error)
                raise
            return result

        setattr(owner, name, hidden.unseen(observed))
        return observed

    def look(self, action: Callable[[], object], what: str) -> None:
        """Do something of ours in the program: a failure ends the observation, and nothing else.

        Raises:
            SystemExit: all steps that are to be observed have been made.
        """
        if self.active:
            failure: Exception | None = _guard().attempt(action)
            if failure is not None:
                self._off = True
                record = {"kind": "failed", "what": what, "error": _guard().describe(failure)}
                _guard().attempt(lambda: self._records.write(record))
        if 0 < self._limit <= self.step and not self._off and os.getpid() == self._pid:
            self._end_program()

    def loss(self, name: str, value: Value) -> None:
        """Note a loss, or what else a step shows of what it computed."""
        self._losses.append(self._records.item(name, value))

    def of_package(self, path: str) -> Any:
        """Another file of the package that imports nothing of it."""
        return _once(path)

    def text(self, text: str) -> Value:
        """A text as a value."""
        return "text", (), text.encode()

    def array(self, array: Any) -> Value:
        """An array of NumPy's as a value."""
        return str(array.dtype), tuple(array.shape), array.tobytes()

    def generator(self, name: str, read: Callable[[], bytes | None]) -> None:
        """Have the state of a random number generator noted after each step; None while there is none."""
        self._random.add(name, read)

    def at_end(self, look: Look) -> None:
        """Have these values noted when the program ends, too; called with the observer."""
        self._last_words.append(look)

    def updated(self, owner: Any, look: Look, beside: Look = lambda owner: ()) -> None:
        """End a step, in which this optimizer or booster has updated weights.

        Args:
            owner: what has updated.
            look: gives its weights as they stand; called now, and at the end of the program if it is alive then.
            beside: the same for buffers, which are what models keep beside weights, such as running statistics; in any
                order.
        """
        import weakref

        number = self._numbers.get(id(owner))
        if number is None or self._owners[number][0]() is not owner:
            self._numbers[id(owner)] = len(self._owners)
            self._owners.append((weakref.ref(owner), look, beside))
        self._record({"kind": "step"}, look(owner), _in_order(beside(owner)))
        self.step += 1

    def end(self) -> None:
        """Note how all stands when the program ends; done once."""
        if self._off or os.getpid() != self._pid:
            return
        # As ``look`` does it, whatever the number of steps.
        self._limit = 0
        self.look(self._end, "the end of the program")
        self._off = True

    def _end(self) -> None:
        weights, keys = [], []
        buffers, buffer_keys = [], []
        for number, (reference, look, beside) in enumerate(self._owners):
            owner = reference()
            # The agent may keep it alive for longer: compared is what both runs have.
            for place, item in enumerate(look(owner) if owner is not None else ()):
                keys.append(f"{number}/{place}")
                weights.append(item)
            for place, item in enumerate(_in_order(beside(owner)) if owner is not None else ()):
                buffer_keys.append(f"{number}/{place}")
                buffers.append(item)
        for look in self._last_words:
            for name, value in look(self):
                keys.append(name)
                weights.append((name, value))
        self._record({"kind": "end", "keys": keys, "buffer_keys": buffer_keys}, weights, buffers)

    def _record(self, record: dict[str, Any], weights: Weights, buffers: Weights) -> None:
        record["losses"], self._losses = self._losses, []
        record["weights"] = [self._records.item(name, value) for name, value in weights]
        record["buffers"] = [self._records.item(name, value) for name, value in buffers]
        record["random"] = self._random.now()
        self._records.write(record)

    def _end_program(self) -> None:
        import threading

        if threading.current_thread() is threading.main_thread():
            raise SystemExit(0)
        # Raised here it would end this thread only.
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(0)


def _in_order(values: Weights) -> list[tuple[str, Value]]:
    """By name and, of one name, by value: in every run of a program the same."""
    return sorted(values, key=lambda item: (item[0], item[1][0], _digest(item[1][2])))


def _of_python() -> tuple[bytes | None, Any]:
    module: Any = sys.modules.get("random")
    if module is None:
        return None, None
    _, state, gauss = module.getstate()
    return repr(state[:-1]).encode(), [state[-1], gauss is None]


def _of_numpy() -> tuple[bytes | None, Any]:
    module: Any = sys.modules.get("numpy.random")
    if module is None:
        return None, None
    state = module.get_state(legacy=False)
    inner = state.pop("state")
    place = inner.pop("pos", None)
    rest = [state.get("bit_generator"), state.get("has_gauss")]
    return repr({**inner, "key": inner["key"].tobytes()} if "key" in inner else inner).encode(), [place, *rest]


def _digest(data: bytes) -> str:
    try:
        from _blake2 import blake2b
    except ImportError:
        from hashlib import blake2b
    return blake2b(data, digest_size=16).hexdigest()


_loaded: dict[str, Any] = {}


def _once(path: str) -> Any:
    if path not in _loaded:
        _loaded[path] = load(path)
    return _loaded[path]


def _guard() -> Any:
    return _once("guard.py")


def _hidden() -> Any:
    return _once("interpreter/hidden_frames.py")
