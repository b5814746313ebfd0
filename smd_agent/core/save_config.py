"""Step rules: when one mode is saved, and one rule for each mode.

A step is saved if it is one of `save_steps`, or if `start_step <= step < end_step` and it is a multiple of
`save_interval`.
"""

from __future__ import annotations

import operator
from collections.abc import Mapping
from typing import Any

from smd_agent.core.json_fields import as_object
from smd_agent.core.modes import ModeKeys
from smd_agent.errors import SMDebugTypeError, SMDebugValueError

DEFAULT_SAVE_INTERVAL = 500
FIELDS = ("save_interval", "save_steps", "start_step", "end_step")


class SaveConfigMode:
    """The steps saved in one mode; every field can be assigned later and is checked when it is.

    A step is saved if it is one of ``save_steps``, or if ``start_step <= step < end_step`` and it is a multiple of
    ``save_interval``.

    Args:
        save_interval: in steps, at least 1; None is 500. Its multiples are saved, counted from 0, not from start_step.
        start_step: first step the interval applies to; None is 0.
        end_step: first step it no longer applies to; None is never.
        save_steps: further steps, whatever the other fields say.

    Raises:
        SMDebugValueError: a value is no whole number, or too small.
    """

    __slots__ = FIELDS

    save_interval: int
    save_steps: list[int]
    start_step: int
    end_step: int | None

    def __init__(
        self,
        save_interval: int | str | None = None,
        start_step: int | str | None = None,
        end_step: int | str | None = None,
        save_steps: list[int] | None = None,
    ) -> None:
        for name, value in zip(FIELDS, (save_interval, save_steps, start_step, end_step), strict=True):
            setattr(self, name, value)

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "save_interval":
            value = DEFAULT_SAVE_INTERVAL if value is None else _whole(name, value, at_least=1)
        elif name == "save_steps":
            value = _steps(value)
        elif value is not None:
            value = _whole(name, value)
        elif name == "start_step":
            value = 0
        object.__setattr__(self, name, value)

    def should_save_step(self, step_num: int) -> bool:
        """Tell whether this step of the mode is saved."""
        if step_num in self.save_steps:
            return True
        return self.is_in_range(step_num) and step_num % self.save_interval == 0

    def is_in_range(self, step_num: int) -> bool:
        """Tell whether the interval applies at a step."""
        return self.start_step <= step_num and (self.end_step is None or step_num < self.end_step)

    def next_step(self, step: int) -> int | None:
        """Return the smallest saved step that is at least `step`, None if none will come."""
        later = [one for one in self.save_steps if one >= step]
        first = -(-max(step, self.start_step) // self.save_interval) * self.save_interval
        if self.end_step is None or first < self.end_step:
            later.append(first)
        return min(later, default=None)

    def steps_below(self, step: int) -> set[int]:
        """Return the saved steps that are less than `step`."""
        end = step if self.end_step is None else min(step, self.end_step)
        first = -(-max(self.start_step, 0) // self.save_interval) * self.save_interval
        return {*range(first, end, self.save_interval), *(one for one in self.save_steps if 0 <= one < step)}

    def to_json_dict(self) -> dict[str, Any]:
        """Return the four fields as they stand in a collections file."""
        return {name: getattr(self, name) for name in FIELDS}

    @classmethod
    def from_dict(cls, params: Mapping[str, Any], default_values: Mapping[str, Any] | None = None) -> SaveConfigMode:
        """Make a rule from its fields; those missing or None come from `default_values` or the defaults."""
        params = as_object(params, "the rule of a mode")
        defaults = default_values or {}
        given = {name: params.get(name) for name in FIELDS}
        return cls(**{name: defaults.get(name) if value is None else value for name, value in given.items()})

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, SaveConfigMode):
            return NotImplemented
        return self.to_json_dict() == other.to_json_dict()

    __hash__ = None  # type: ignore[assignment]  # fields can change

    def __repr__(self) -> str:
        return f"SaveConfigMode({', '.join(f'{name}={getattr(self, name)!r}' for name in FIELDS)})"


class _EveryMode:
    """One field of a SaveConfig's modes, read and written for all of them at once."""

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, config: SaveConfig | None, owner: type | None = None) -> Any:
        if config is None:
            return self
        values = [getattr(config.get_save_config(mode), self.name) for mode in ModeKeys]
        if values.count(values[0]) != len(values):
            raise SMDebugValueError(f"{self.name} differs by mode; ask get_save_config(mode) for it")
        return values[0]

    def __set__(self, config: SaveConfig, value: Any) -> None:
        for mode in ModeKeys:
            rule = config.mode_save_configs[mode] or SaveConfigMode()
            setattr(rule, self.name, value)
            config.mode_save_configs[mode] = rule


class SaveConfig:
    """The step rules for each mode: one rule for all modes, or `mode_save_configs` with a rule for some.

    The four fields of a rule are attributes of this object too: assigning `config.end_step = 0` sets it in every mode.

    Args:
        mode_save_configs: rules by mode; they make the other arguments unused. A mode that is left out has the hook's
            rule when this belongs to a collection, else the defaults.
        save_interval: see SaveConfigMode; likewise the other three.
        start_step: first step the interval applies to.
        end_step: first step it no longer applies to.
        save_steps: further steps.

    Raises:
        SMDebugValueError: a mode is none, or a value is wrong.
    """

    save_interval = _EveryMode()
    save_steps = _EveryMode()
    start_step = _EveryMode()
    end_step = _EveryMode()

    def __init__(
        self,
        mode_save_configs: Mapping[ModeKeys, SaveConfigMode | None] | None = None,
        save_interval: int | str | None = None,
        start_step: int | str | None = None,
        end_step: int | str | None = None,
        save_steps: list[int] | None = None,
    ) -> None:
        self.mode_save_configs: dict[ModeKeys, SaveConfigMode | None]
        if mode_save_configs is None:
            self.mode_save_configs = {
                mode: SaveConfigMode(save_interval, start_step, end_step, save_steps) for mode in ModeKeys
            }
            return
        _check_modes(mode_save_configs)
        self.mode_save_configs = {mode: mode_save_configs.get(mode) for mode in ModeKeys}

    def get_save_config(self, mode: ModeKeys) -> SaveConfigMode:
        """Return the mode's rule; a mode without one has the defaults."""
        return self.mode_save_configs[_mode(mode)] or SaveConfigMode()

    def set_save_config(self, mode: ModeKeys, save_config_mode: SaveConfigMode) -> None:
        """Replace the mode's rule."""
        if not isinstance(save_config_mode, SaveConfigMode):
            raise SMDebugValueError(f"save_config_mode={save_config_mode!r} must be type SaveConfigMode")
        self.mode_save_configs[_mode(mode)] = save_config_mode

    def should_save_step(self, mode: ModeKeys, step_num: int) -> bool:
        """Tell whether this step of this mode is saved."""
        return self.get_save_config(mode).should_save_step(step_num)

    def merge_default_save_config(self, default_save_config: SaveConfig) -> None:
        """Give every mode that has no rule the rule of `default_save_config`."""
        for mode, rule in self.mode_save_configs.items():
            if rule is None:
                self.mode_save_configs[mode] = _copied(default_save_config.get_save_config(mode))

    def copy(self) -> SaveConfig:
        """Return an independent SaveConfig with the same rules."""
        return SaveConfig({mode: rule and _copied(rule) for mode, rule in self.mode_save_configs.items()})

    def to_json_dict(self) -> dict[str, Any]:
        """Return {mode name: fields or None} as it stands in a collections file."""
        return {mode.name: rule and rule.to_json_dict() for mode, rule in self.mode_save_configs.items()}

    def to_json(self) -> str:
        """Return `to_json_dict` as text."""
        import json

        return json.dumps(self.to_json_dict())

    @classmethod
    def from_json(cls, json_str: str) -> SaveConfig:
        """Make a SaveConfig from the text of `to_json`."""
        import json

        return cls.from_dict(json.loads(json_str))

    @classmethod
    def from_dict(cls, params: Mapping[Any, Any], default_values: Mapping[str, Any] | None = None) -> SaveConfig:
        """Make a SaveConfig from {mode or its name: fields, SaveConfigMode or None}.

        default_values: fields for the modes that are listed and leave some out.
        """
        rules: dict[ModeKeys, SaveConfigMode | None] = {}
        for mode, fields in as_object(params, "save_config").items():
            ready = fields is None or isinstance(fields, SaveConfigMode)
            rules[_mode(mode)] = fields if ready else SaveConfigMode.from_dict(fields, default_values)
        return cls(rules)

    @classmethod
    def from_save_config_mode(cls, save_config_mode: SaveConfigMode) -> SaveConfig:
        """Make a SaveConfig with the same rule in every mode."""
        return cls({mode: _copied(save_config_mode) for mode in ModeKeys})

    @classmethod
    def parse(cls, obj: object) -> SaveConfig:
        """Take what a hook accepts as save_config: None, SaveConfig, SaveConfigMode, or a dict by mode."""
        if obj is None:
            return cls()
        if isinstance(obj, SaveConfig):
            return obj
        if isinstance(obj, SaveConfigMode):
            return cls.from_save_config_mode(obj)
        if isinstance(obj, Mapping):
            return cls.from_dict(obj)
        raise SMDebugTypeError(f"obj={obj!r} cannot be parsed into a SaveConfig object")

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, SaveConfig):
            return NotImplemented
        return self.mode_save_configs == other.mode_save_configs

    __hash__ = None  # type: ignore[assignment]  # rules can change

    def __repr__(self) -> str:
        return f"SaveConfig({ {mode.name: rule for mode, rule in self.mode_save_configs.items()} })"


def _copied(rule: SaveConfigMode) -> SaveConfigMode:
    return SaveConfigMode.from_dict(rule.to_json_dict())


def _mode(mode: object) -> ModeKeys:
    if isinstance(mode, ModeKeys):
        return mode
    try:
        return ModeKeys[mode.upper() if isinstance(mode, str) else ""]
    except KeyError:
        raise SMDebugValueError(f"mode={mode!r} must be one of TRAIN,EVAL,PREDICT,GLOBAL") from None


def _check_modes(modes: object) -> None:
    rule_types = (SaveConfigMode, type(None))
    if isinstance(modes, Mapping) and all(
        isinstance(mode, ModeKeys) and isinstance(rule, rule_types) for mode, rule in modes.items()
    ):
        return
    raise SMDebugValueError(f"Each key,value in mode_save_configs={modes!r} must be of type ModeKey,SaveConfigMode")


def _whole(name: str, value: Any, at_least: int | None = None) -> int:
    try:
        number = int(value)
        # Through a floating-point number a large one would lose its last digits.
        exact = number == (value if isinstance(value, int) else float(value))
    except (TypeError, ValueError, OverflowError):
        exact = False
    if not exact or (at_least is not None and number < at_least):
        limit = "" if at_least is None else f" of at least {at_least}"
        raise SMDebugValueError(f"{name}={value!r} must be a whole number{limit}")
    return number


def _steps(value: Any) -> list[int]:
    if value is None:
        return []
    try:
        if isinstance(value, list):
            return [operator.index(step) for step in value]
    except TypeError:
        pass
    raise SMDebugValueError(f"save_steps={value} must be type(list(int))")
