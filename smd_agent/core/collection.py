"""A named group of tensors with its own rules for when they are saved and in which form."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from smd_agent.core.json_fields import as_object, as_texts
from smd_agent.core.patterns import UnfitPattern, name_pattern
from smd_agent.core.reduction_config import ReductionConfig
from smd_agent.core.save_config import SaveConfig
from smd_agent.errors import SMDebugTypeError, SMDebugValueError
from smd_agent.printable import shortened


class Collection:
    """A named group of tensors with rules of its own.

    Members are the tensors listed in `tensor_names`, and those in whose name an `include_regex` is found.

    Args:
        name: the collection's name.
        include_regex: one or several regular expressions.
        tensor_names: exact names.
        reduction_config: what is saved of each tensor; None takes the hook's.
        save_config: when they are saved; None takes the hook's. It may be a dict by mode; modes that are left out take
            the hook's.
        save_histogram: write histograms of these tensors when TensorBoard files are written.

    Raises:
        SMDebugTypeError: a value has the wrong type.
        SMDebugValueError: a regex does not compile.
    """

    def __init__(
        self,
        name: str,
        include_regex: str | Iterable[str] | None = None,
        tensor_names: list[str] | set[str] | None = None,
        reduction_config: ReductionConfig | None = None,
        save_config: SaveConfig | Mapping[Any, Any] | None = None,
        save_histogram: bool = True,
    ) -> None:
        self.name = name
        self._not_by: dict[str, frozenset[str]] = {}
        self.include_regex = include_regex
        self.tensor_names = tensor_names
        self.reduction_config = reduction_config
        self.save_config = save_config
        self.save_histogram = save_histogram

    @property
    def include_regex(self) -> list[str]:
        """The regexes; any of them found in a tensor's name makes it a member."""
        return self._include_regex

    @include_regex.setter
    def include_regex(self, regexes: str | Iterable[str] | None) -> None:
        self._include_regex: list[str] = []
        self.include(_as_list(regexes))

    @property
    def tensor_names(self) -> set[str]:
        """Names of tensors that are members whatever the regexes say."""
        return self._tensor_names

    @tensor_names.setter
    def tensor_names(self, names: list[str] | set[str] | None) -> None:
        if not isinstance(names, (list, set, type(None))):
            raise SMDebugTypeError("tensor_names can only be list or set")
        self._tensor_names = set(names or ())

    @property
    def reduction_config(self) -> ReductionConfig | None:
        """The summaries that are saved of each tensor; None until set here or taken from the hook."""
        return self._reduction_config

    @reduction_config.setter
    def reduction_config(self, config: ReductionConfig | None) -> None:
        if not isinstance(config, (ReductionConfig, type(None))):
            raise SMDebugTypeError(f"reduction_config={config} must be of type ReductionConfig")
        self._reduction_config = config

    @property
    def save_config(self) -> SaveConfig | None:
        """The step rules of the tensors; None until set here or taken from the hook."""
        return self._save_config

    @save_config.setter
    def save_config(self, config: SaveConfig | Mapping[Any, Any] | None) -> None:
        if not isinstance(config, (SaveConfig, Mapping, type(None))):
            raise SMDebugTypeError(
                f"save_config={config} must be of type SaveConfig or type Dict[ModeKeys, SaveConfigMode]"
            )
        self._save_config = None if config is None else SaveConfig.parse(config)

    def include(self, t: str | list[str]) -> None:
        """Add a regex or a list of them; one that does not compile is refused."""
        if not isinstance(t, (str, list)):
            raise SMDebugTypeError("Can only include str or list")
        regexes = _as_list(t)
        for regex in regexes:
            self._check_regex(regex)
        self._include_regex.extend(regexes)

    def matches(self, tensor_name: str) -> bool:
        """Tell whether the tensor is a member, by its exact name or by a regex."""
        # Patterns are kept, and reading the list anew sees what the user appended to it.
        if tensor_name in self._tensor_names:
            return True
        passed_over = self._not_by.get(tensor_name, ())
        return any(
            name_pattern(regex).found_in(tensor_name) for regex in self._include_regex if regex not in passed_over
        )

    def pass_over(self, tensor_name: str, regexes: Iterable[str]) -> None:
        """Have these regexes not make the tensor a member, though they match; none: all do so again."""
        self._not_by[tensor_name] = frozenset(regexes)

    def add_tensor_name(self, tname: str) -> None:
        """Make the tensor of this name a member."""
        self._tensor_names.add(tname)

    def remove_tensor_name(self, tname: str) -> None:
        """Take a name off the list of names; regexes may still match it."""
        self._tensor_names.discard(tname)

    def has_tensor_name(self, tname: str) -> bool:
        """Tell whether the name is on the list of names, regexes aside."""
        return tname in self._tensor_names

    def to_json_dict(self) -> dict[str, Any]:
        """Return the collection as it stands in a collections file.

        A regex is left out that matches tensors which it does not make members: who reads the file would take it at its
        word, and the members that have been saved are there by their names.
        """
        passed_over = {
            regex for name, regexes in self._not_by.items() for regex in regexes if name_pattern(regex).found_in(name)
        }
        return {
            "name": self.name,
            "include_regex": [regex for regex in self._include_regex if regex not in passed_over],
            "tensor_names": sorted(self._tensor_names),
            "reduction_config": self._reduction_config and self._reduction_config.to_json_dict(),
            "save_config": self._save_config and self._save_config.to_json_dict(),
            "save_histogram": self.save_histogram,
        }

    def to_json(self) -> str:
        """Return `to_json_dict` as text."""
        import json

        return json.dumps(self.to_json_dict())

    @classmethod
    def from_dict(cls, params: Mapping[str, Any]) -> Collection:
        """Make a collection from what `to_json_dict` gives; everything but the name may be missing."""
        params = as_object(params, "a collection")
        if "name" not in params:
            raise SMDebugValueError(f"a collection needs a name; found only {', '.join(params) or 'nothing'}")
        name, regexes = params["name"], params.get("include_regex") or None
        if not isinstance(name, str):
            raise SMDebugValueError(f"the name of a collection is {shortened(repr(name), 60)}, allowed is a text")
        shown = shortened(name)
        save_config = params.get("save_config")
        return cls(
            name=name,
            include_regex=regexes if isinstance(regexes, str) else as_texts(regexes, f"include_regex of {shown}"),
            tensor_names=as_texts(params.get("tensor_names"), f"tensor_names of {shown}"),
            reduction_config=ReductionConfig.from_dict(params.get("reduction_config")),
            save_config=None if save_config is None else SaveConfig.from_dict(save_config),
            save_histogram=params.get("save_histogram", True),
        )

    @classmethod
    def from_json(cls, json_str: str) -> Collection:
        """Make a collection from the text of `to_json`."""
        import json

        return cls.from_dict(json.loads(json_str))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Collection):
            return NotImplemented
        return (
            self.name == other.name
            and self._include_regex == other._include_regex
            and self._tensor_names == other._tensor_names
            and self._reduction_config == other._reduction_config
            and self._save_config == other._save_config
            and self.save_histogram == other.save_histogram
        )

    def __hash__(self) -> int:
        return hash(self.name)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r}, include_regex={self._include_regex!r})"

    def _check_regex(self, regex: str) -> None:
        if not isinstance(regex, str):
            raise SMDebugValueError(f"include_regex={regex!r} of collection {self.name} is not a regular expression")
        try:
            name_pattern(regex)
        except UnfitPattern as error:
            where = f"include_regex={shortened(repr(regex))} of collection {shortened(self.name)}"
            raise SMDebugValueError(f"{where} {error.reason}") from error


def _as_list(regexes: str | Iterable[str] | None) -> list[str]:
    return [regexes] if isinstance(regexes, str) else list(regexes or ())
