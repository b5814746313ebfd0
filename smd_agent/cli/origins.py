"""The configuration as it counts, with the place that each value comes from."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field
from typing import NamedTuple

from smd_agent.cli import run
from smd_agent.cli.errors import CommandError
from smd_agent.config import env, keys
from smd_agent.config.hook_file import Source, read_object, shown
from smd_agent.config.load import load_settings
from smd_agent.config.precedence import MODE_PREFIXES
from smd_agent.core.modes import ModeKeys
from smd_agent.core.reduction_config import STATISTICS
from smd_agent.errors import ConfigError
from smd_agent.printable import shortened

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

    from smd_agent.config.settings import HookSettings

DEFAULT, LAUNCHER = "default", "default of the launcher"
# What frameworks save whatever is asked for.
_ALWAYS = "losses; of XGBoost metrics; of Keras both"
_OPTIONS = {
    keys.LOCAL_PATH.name: ("--out",),
    keys.COLLECTIONS.name: ("--save",),
    keys.SAVE_ALL.name: ("--save",),
    keys.SAVE_INTERVAL.name: ("--every",),
    keys.SAVE_STEPS.name: ("--every",),
    keys.EXPORT_TENSORBOARD.name: ("--tensorboard",),
    keys.TENSORBOARD_DIR.name: ("--tensorboard",),
    **dict.fromkeys(run.FORM_KEYS, ("--reductions", "--raw")),
}
# What else an object has is ignored, and a warning says so.
_OF_COLLECTION = frozenset(key.name for key in (*keys.STEPS, *keys.FORM, keys.SAVE_HISTOGRAM))


class Value(NamedTuple):
    """A value that counts.

    name: the key; with the mode or the collection that it is for.
    value: as it stands in a hook file.
    origin: the file and the key in it, an option of the command line, or which default it is.
    """

    name: str
    value: str
    origin: str

    @property
    def is_default(self) -> bool:
        """Whether nobody has asked for it."""
        return self.origin == DEFAULT


class Given(NamedTuple):
    """A variable of the environment that is set."""

    name: str
    value: str
    meaning: str


@dataclass
class Configuration:
    """What a program would be captured by.

    Attributes:
        source: where it is written, in words; empty where nothing says what to capture.
        values: all that counts.
        warnings: what is ignored, and why.
        error: why it cannot be used; empty if it can.
        settings: the same for the agent; None where there are none.
    """

    source: str = ""
    values: list[Value] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    error: str = ""
    settings: HookSettings | None = None


def configuration(options: Mapping[str, str], target: list[str]) -> Configuration:
    """Return what would count.

    Args:
        options: of the launcher's command line.
        target: the program that the launcher would start; empty where it is the environment alone that counts.
    """
    found = Configuration()
    try:
        source = run.source_for(dict(options))
        if source is None and not target and not options:
            return found
        found.source = _named(source)
        if source is not None:
            found.warnings = [*load_settings(source).warnings]
        content = run.content_for(source, dict(options)) if target or options else None
        counts = content if content is not None or source is None else read_object(source)[0]
        found.settings = load_settings(Source(_label(source), text=json.dumps(counts)))
    except (ConfigError, CommandError) as error:
        found.error = str(error.message if isinstance(error, CommandError) else error)
        return found
    found.warnings = [*dict.fromkeys((*found.warnings, *found.settings.warnings))]
    found.values = [*_Values(_label(source), counts or {}, options, source is not None, found.settings).all(target)]
    return found


def variables() -> list[Given]:
    """Return the variables of ours that are set; one of a job that is set to nothing counts, too."""
    values = ((one, env.get(one.name)) for one in env.VARIABLES)
    return [Given(one.name, value, one.meaning) for one, value in values if value is not None]


def _named(source: Source | None) -> str:
    if source is None:
        return "the launcher's defaults: no hook file is named"
    if source.text is not None:
        return f"the variable {source.name}"
    by = f"named by {source.origin}" if source.origin else "at the standard place"
    return f"{source.name}, {by}"


def _label(source: Source | None) -> str:
    return "the options" if source is None else source.name


class _Values:
    """Finds the origins of the values of one configuration.

    Args:
        label: of the file, in origins.
        content: what counts, as a hook file.
        options: that were laid over it.
        has_file: whether there is a hook file, below the options.
        settings: what the content comes to.
    """

    def __init__(
        self,
        label: str,
        content: Mapping[str, Any],
        options: Mapping[str, str],
        has_file: bool,
        settings: HookSettings,
    ) -> None:
        self._label = label
        self._content = content
        self._options = options
        self._has_file = has_file
        self._settings = settings
        self._hook: Mapping[str, Any] = content.get(keys.HOOK_PARAMETERS.name) or {}

    def all(self, target: list[str]) -> Iterator[Value]:
        """Yield them; without a LocalPath the launcher makes a folder for a program."""
        yield self._folder(target)
        yield self._collections()
        yield Value("always saved", _ALWAYS, DEFAULT)
        yield from self._steps()
        for key in (*keys.FORM, *keys.OF_HOOK):
            if key is not keys.INCLUDE_COLLECTIONS:
                yield self._of_hook(key)
        yield from self._of_collections()
        for number, entry in enumerate(self._content.get(keys.RULES.name) or ()):
            parameters = dict(entry.get(keys.RULE_PARAMETERS.name) or {})
            rule = parameters.pop(keys.RULE_TO_INVOKE.name, None) or entry.get(keys.RULE_CONFIGURATION_NAME.name)
            told = ", ".join(f"{name} {_text(value)}" for name, value in parameters.items())
            yield Value(f"rule {_text(rule)}", told or "-", self._in_file(f"{keys.RULES.name}[{number}]"))

    def _folder(self, target: list[str]) -> Value:
        name = keys.LOCAL_PATH.name
        if self._content.get(name) is not None:
            return Value(name, self._settings.out_dir, self._origin(name, name))
        if target and not self._has_file:
            new = os.path.join(os.getcwd(), run.RUNS_FOLDER, f"{run.stem_of(target)}-<date>-<time>")
            return Value(name, new, LAUNCHER)
        return Value(name, self._settings.out_dir, DEFAULT)

    def _collections(self) -> Value:
        listed = [_text(entry.get("CollectionName")) for entry in self._content.get(keys.COLLECTIONS.name) or ()]
        named = keys.INCLUDE_COLLECTIONS
        included = [*(named.kind(self._hook[named.name]) if self._hook.get(named.name) else ())]
        origins = []
        if listed:
            origins.append(self._origin(keys.COLLECTIONS.name, keys.COLLECTIONS.name))
        if included:
            origins.append(self._in_file(f"{keys.HOOK_PARAMETERS.name}.{named.name}"))
        names = dict.fromkeys((*included, *listed))
        return Value("collections", ", ".join(names) or "none but those always saved", " and ".join(origins) or DEFAULT)

    def _steps(self) -> Iterator[Value]:
        """Yield a value for each key of steps; of modes that have the same of the same origin, one together."""
        for key in keys.STEPS:
            by_mode = {mode: self._step(key, mode) for mode in MODE_PREFIXES}
            for value in dict.fromkeys(by_mode.values()):
                modes = [mode for mode, own in by_mode.items() if own == value]
                more = "" if len(modes) == len(by_mode) else f" ({', '.join(modes)})"
                yield Value(f"{key.name}{more}", *value)

    def _step(self, key: keys.Key[Any], mode: str) -> tuple[str, str]:
        for name in (f"{mode}.{key.name}", key.name):
            given = next((one for one in self._hook if one.lower() == name and self._hook[one] is not None), None)
            if given is not None:
                whose = f"{keys.HOOK_PARAMETERS.name}.{given}"
                # Of all modes alike, so that they stand in one line.
                return _text(self._hook[given]), self._origin(key.name, whose.replace(f".{mode}.", ".<mode>."))
        value = getattr(self._settings.save_config.get_save_config(ModeKeys[mode.upper()]), key.name)
        text = "none" if value in (None, []) else str(value)
        origin = self._governing(key.name) or DEFAULT
        return (f"{text}, of XGBoost 10" if key is keys.SAVE_INTERVAL and origin == DEFAULT else text), origin

    def _of_hook(self, key: keys.Key[Any]) -> Value:
        given = self._hook.get(key.name)
        if given is not None:
            return Value(key.name, _text(given), self._origin(key.name, f"{keys.HOOK_PARAMETERS.name}.{key.name}"))
        text = "none, tensors are saved whole" if key is keys.REDUCTIONS else key.default or "none"
        return Value(key.name, text, self._governing(key.name) or DEFAULT)

    def _of_collections(self) -> Iterator[Value]:
        for entry in self._content.get(keys.COLLECTIONS.name) or ():
            name = _text(entry.get(keys.COLLECTION_NAME.name))
            for key, value in (entry.get(keys.COLLECTION_PARAMETERS.name) or {}).items():
                if key.rpartition(".")[2] not in _OF_COLLECTION:
                    continue
                path = f"{keys.COLLECTIONS.name}[{name}].{_text(key)}"
                yield Value(f"{name}: {_text(key)}", _text(value), self._in_file(path))

    def _governing(self, name: str) -> str | None:
        """The option that decides about a key."""
        given = [option for option in _OPTIONS.get(name, ()) if option in self._options]
        return " ".join(given) or None

    def _origin(self, name: str, path: str) -> str:
        option = self._governing(name)
        if option is not None:
            return option
        return self._in_file(path) if self._has_file else LAUNCHER

    def _in_file(self, path: str) -> str:
        return f"{self._label}: {path}"


def _text(value: object) -> str:
    if value == STATISTICS or isinstance(value, str):
        return shortened(str(value))
    return shown(value)
