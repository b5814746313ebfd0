"""Parameters of a rule, with their defaults and what they mean."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, TypeVar, overload

from smd_agent.errors import SMDebugValueError
from smd_agent.printable import shortened

if TYPE_CHECKING:
    from typing_extensions import Self

Value = TypeVar("Value")


def number(given: Any) -> float:
    """a number"""
    return float(given)


def whole(given: Any) -> int:
    """a whole number"""
    return int(given)


def percent(given: Any) -> float:
    """a number above 0 and below 100"""
    value = float(given)
    if not 0 < value < 100:
        raise ValueError(value)
    return value


def mode(given: Any) -> str:
    """TRAIN, EVAL or GLOBAL"""
    text = str(getattr(given, "name", given)).strip().upper()
    if text not in ("TRAIN", "EVAL", "GLOBAL"):
        raise ValueError(text)
    return text


def flag(given: Any) -> bool:
    """true or false"""
    text = str(given).strip().lower()
    if text not in ("true", "false"):
        raise ValueError(text)
    return text == "true"


def names(given: Any) -> tuple[str, ...]:
    """names or patterns, a list or text with commas"""
    parts: Iterable[Any] = given.split(",") if isinstance(given, str) else given
    return tuple(str(part).strip() for part in parts if str(part).strip())


@dataclass(eq=False)
class Parameter(Generic[Value]):
    """One parameter of a rule: an attribute of its class, in whose place an object of the class has a value.

    Attributes:
        kind: makes a value of what is given, which may be text; raises ValueError.
        default: what our commands judge by.
        meaning: a sentence without a full stop.
        documented: the default of smdebug's rule of this name, which holds where the rule is made for a trial;
            None where there is none, or where it is the same.
        name: as it is given: that of the attribute.
    """

    kind: Callable[[Any], Value]
    default: Any
    meaning: str
    documented: Any = None
    name: str = field(default="", init=False)

    @classmethod
    def of_collections(cls, *default: str) -> Parameter[tuple[str, ...] | None]:
        """Return the parameter that names the collections to look at; as documented it has no default."""
        return Parameter(names, default or None, "collections whose tensors are looked at", () if default else None)

    def __set_name__(self, rule: type, name: str) -> None:
        self.name = name

    @overload
    def __get__(self, rule: None, kind: type) -> Self: ...
    @overload
    def __get__(self, rule: object, kind: type) -> Value: ...
    def __get__(self, rule: object, kind: type) -> Any:
        return self

    def value_of(self, given: Any) -> Any:
        """Return the value that is meant.

        Raises:
            SMDebugValueError: it is none of the parameter's.
        """
        if given is None:
            return None
        try:
            return self.kind(given)
        except (ValueError, TypeError, OverflowError):
            message = f"{self.name} is {shortened(repr(given), 60)}, allowed is {self.kind.__doc__}"
            raise SMDebugValueError(message) from None


TENSOR_REGEX: Parameter[tuple[str, ...] | None] = Parameter(
    names, None, "regular expressions: tensors in whose names one is found"
)
