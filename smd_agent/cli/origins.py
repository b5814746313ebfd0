"""The configuration as it counts, with the place that each value comes from."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from smd_agent.cli import run
from smd_agent.cli.errors import CommandError
from smd_agent.config import env, keys
from smd_agent.config.hook_file import Source, read_object, shown
from smd_agent.config.load import load_settings
from smd_agent.config.precedence import MODE_PREFIXES
from smd_agent.config.settings import HookSettings
from smd_agent.core.modes import ModeKeys
from smd_agent.errors import ConfigError
from smd_agent.printable import shortened

DEFAULT, LAUNCHER = "default", "default of the launcher"
# What frameworks save whatever is asked for.
_ALWAYS = "losses; of XGBoost metrics; of Keras both"
_OPTIONS = {
    keys.LOCAL_PATH.name: ("--out",),
    keys.COLLECTIONS.name: ("--save",),
    keys.SAVE_ALL.name: ("--save",),
    keys.SAVE_INTERVAL.name: ("--every",),
    keys.SAVE_STEPS.name: ("--every",),
    keys.BLAME.name: ("--blame",),
    keys.BUDGET.name: ("--budget",),
    keys.EXPORT_TENSORBOARD.name: ("--tensorboard",),
    keys.TENSORBOARD_DIR.name: ("--tensorboard",),
    keys.LIVE_RULES.name: ("--rules",),
    keys.ON_FIND.name: ("--on-find",),
    keys.IGNORED_RULES.name: ("--ignore",),
    **dict.fromkeys(run.FORM_KEYS, ("--reductions", "--raw")),
}
# What else an object has is ignored, and a warning says so.
_OF_COLLECTION = frozenset(key.name for key in (*keys.STEPS, *keys.FORM, keys.SAVE_HISTOGRAM))


@dataclass(frozen=True)
class Value:
    """A value that counts.

    Attributes:
        name: the key; with the mode or the collection that it is for.
        value: as it stands in a hook file.
        origin: the file and the key in it, an option of the command line, or which default it is.
    """

    name: str
    value: str
    origin: str


@dataclass
class Configuration:
    """The configuration that a program would be captured by.

    Attributes:
        source: where it is written, in words; empty where nothing says what to capture.
        error: why it cannot be used; empty if it can.
        warnings: what is ignored, and why.
        values: all that counts; none where there is no configuration that can be used.
    """

    source: str = ""
    error: str = ""
    warnings: list[str] = field(default_factory=list)
    values: list[Value] = field(default_factory=list)


def configuration(options: dict[str, str], target: list[str]) -> Configuration:
    """Return what would count.

    Args:
        options: of the launcher's command line.
        target: the program that the launcher would start; empty where it is the environment alone that counts.
    """
    found = Configuration()
    try:
        source = run.source_for(options)
        if source is None and not (target or options):
            return found
        found.source = _named(source)
        warnings = [] if source is None else load_settings(source).warnings
        content = run.content_for(source, options) if target or options else None
        if content is None and source is not None:
            content = read_object(source)[0]
        settings = load_settings(Source(_label(source), text=json.dumps(content)))
    except (ConfigError, CommandError) as error:
        found.error = error.message if isinstance(error, CommandError) else str(error)
        return found
    found.warnings = [*dict.fromkeys((*warnings, *settings.warnings))]
    found.values = [*_Values(source, content or {}, options, settings).all(target)]
    return found


def variables() -> list[dict[str, str]]:
    """Return the variables of ours that are set; one of a job that is set to nothing counts, too."""
    return [
        {"name": one.name, "value": value, "meaning": one.meaning}
        for one in env.VARIABLES
        if (value := env.get(one.name)) is not None
    ]


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
    """The values of a configuration, each with its origin.

    Args:
        source: the hook file, below the options; None where there is none.
        content: what counts, as a hook file.
        options: that were laid over it.
        settings: what the content comes to.
    """

    def __init__(
        self, source: Source | None, content: Mapping[str, Any], options: Mapping[str, str], settings: HookSettings
    ) -> None:
        self._source = source
        self._content = content
        self._options = options
        self._settings = settings
        self._hook: Mapping[str, Any] = content.get(keys.HOOK_PARAMETERS.name) or {}

    def all(self, target: list[str]) -> Iterator[Value]:
        """Yield them; without a LocalPath the launcher makes a folder for a program."""
        yield self._folder(target)
        yield self._collections()
        yield Value("always saved", _ALWAYS, DEFAULT)
        for step_key in keys.STEPS:
            yield from self._of_modes(step_key)
        for key in (*keys.FORM, *keys.OF_HOOK):
            if key is not keys.INCLUDE_COLLECTIONS:
                text = "none, tensors are saved whole" if key is keys.REDUCTIONS else key.default or "none"
                yield Value(key.name, *self._in_hook(key, [key.name], text))
        yield from self._of_collections()
        yield from self._rules()
        yield from self._ignored()

    def _folder(self, target: list[str]) -> Value:
        name = keys.LOCAL_PATH.name
        if self._content.get(name) is not None:
            return Value(name, self._settings.out_dir, self._origin(name, name))
        if target and self._source is None:
            new = os.path.join(os.getcwd(), run.RUNS_FOLDER, f"{run.stem_of(target)}-<date>-<time>")
            return Value(name, new, LAUNCHER)
        return Value(name, self._settings.out_dir, DEFAULT)

    def _collections(self) -> Value:
        own, named = keys.COLLECTIONS.name, keys.INCLUDE_COLLECTIONS
        listed = [_text(entry.get(keys.COLLECTION_NAME.name)) for entry in self._content.get(own) or ()]
        included = named.kind(self._hook[named.name]) if self._hook.get(named.name) else ()
        origins = [self._origin(own, own)] if listed else []
        origins += [self._origin(named.name, f"{keys.HOOK_PARAMETERS.name}.{named.name}")] if included else []
        names = ", ".join(dict.fromkeys((*included, *listed))) or "none but those always saved"
        return Value("collections", names, " and ".join(origins) or DEFAULT)

    def _of_modes(self, key: keys.Key[Any]) -> Iterator[Value]:
        """Yield the values of a key of steps; of modes that have the same of the same origin, one together."""
        by_mode = {mode: self._of_mode(key, mode) for mode in MODE_PREFIXES}
        for value in dict.fromkeys(by_mode.values()):
            modes = [mode for mode, own in by_mode.items() if own == value]
            more = "" if len(modes) == len(by_mode) else f" ({', '.join(modes)})"
            yield Value(f"{key.name}{more}", *value)

    def _of_mode(self, key: keys.Key[Any], mode: str) -> tuple[str, str]:
        value = getattr(self._settings.save_config.get_save_config(ModeKeys[mode.upper()]), key.name)
        text = "none" if value in (None, []) else str(value)
        if key is keys.SAVE_INTERVAL and self._origin(key.name) == DEFAULT:
            text += ", of XGBoost 10"
        return self._in_hook(key, [f"{mode}.{key.name}", key.name], text)

    def _in_hook(self, key: keys.Key[Any], names: list[str], default: str) -> tuple[str, str]:
        """Return the value of the first of some names, or the default, and where it comes from."""
        for name in names:
            given = next((one for one in self._hook if one.lower() == name and self._hook[one] is not None), None)
            if given is not None:
                # Of all modes alike, so that they stand in one line.
                place = given if name == key.name else f"<mode>.{key.name}"
                return _text(self._hook[given]), self._origin(key.name, f"{keys.HOOK_PARAMETERS.name}.{place}")
        return default, self._origin(key.name)

    def _of_collections(self) -> Iterator[Value]:
        for entry in self._content.get(keys.COLLECTIONS.name) or ():
            name = _text(entry.get(keys.COLLECTION_NAME.name))
            for key, value in (entry.get(keys.COLLECTION_PARAMETERS.name) or {}).items():
                if key.rpartition(".")[2] in _OF_COLLECTION:
                    place = f"{keys.COLLECTIONS.name}[{name}].{_text(key)}"
                    yield Value(f"{name}: {_text(key)}", _text(value), f"{_label(self._source)}: {place}")

    def _rules(self) -> Iterator[Value]:
        for number, entry in enumerate(self._content.get(keys.RULES.name) or ()):
            parameters = dict(entry.get(keys.RULE_PARAMETERS.name) or {})
            rule = parameters.pop(keys.RULE_TO_INVOKE.name, None) or entry.get(keys.RULE_CONFIGURATION_NAME.name)
            told = ", ".join(f"{name} {_text(value)}" for name, value in parameters.items())
            yield Value(f"rule {_text(rule)}", told or "-", f"{_label(self._source)}: {keys.RULES.name}[{number}]")

    def _ignored(self) -> Iterator[Value]:
        ignored = self._content.get(keys.IGNORED_RULES.name)
        if ignored:
            origin = self._origin(keys.IGNORED_RULES.name, keys.IGNORED_RULES.name)
            yield Value(keys.IGNORED_RULES.name, _text(ignored), origin)

    def _origin(self, name: str, place: str = "") -> str:
        """The options that decide about a key, else the place where the content has it, else the default."""
        options = [option for option in _OPTIONS.get(name, ()) if option in self._options]
        if options or not place:
            return " ".join(options) or DEFAULT
        return LAUNCHER if self._source is None else f"{self._source.name}: {place}"


def _text(value: object) -> str:
    return shortened(value) if isinstance(value, str) else shown(value)
