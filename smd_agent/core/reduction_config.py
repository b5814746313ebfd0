"""The summaries of a tensor that are saved, and whether the tensor itself is.

Stored names are `min ... l2` with an optional `abs_`, and the counts and the shares of channels, which have none. The
text form adds `_norm` to l1 and l2, as in old files, and both spellings are read. `statistics` stands for nine that one
pass over the tensor gives, and the shares of channels, which only outputs of layers have.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from smd_agent.core.json_fields import as_object, as_texts
from smd_agent.errors import SMDebugValueError

ABS_REDUCTIONS = ("min", "max", "mean", "median", "std", "variance", "sum", "prod", "p5", "p50", "p95")
COUNTS = ("zero_share", "nan_count", "inf_count")
CHANNEL_SHARES = ("dead_share", "saturated_share")
ALLOWED_REDUCTIONS = (*ABS_REDUCTIONS, *COUNTS, *CHANNEL_SHARES)
ALLOWED_NORMS = ("l1", "l2")
OPS = (*ALLOWED_REDUCTIONS, *ALLOWED_NORMS)

HISTOGRAM = "histogram"
HISTOGRAM_OP = (HISTOGRAM, False)
# All that can be stored, as (name, on absolute values).
STORED_OPS = frozenset(
    {
        HISTOGRAM_OP,
        *((name, False) for name in OPS),
        *((name, True) for name in (*ABS_REDUCTIONS, *ALLOWED_NORMS)),
    }
)
STATISTICS = "statistics"
STATISTICS_TOKENS = ("min", "max", "mean", "std", "l2_norm", "abs_mean", *COUNTS, *CHANNEL_SHARES)
# In elements: what the launcher saves whole where nobody has asked for a form.
SMALL = 64
# As they stand in a configuration.
CHOICES = (
    f"{', '.join((*ABS_REDUCTIONS, *ALLOWED_NORMS))}, these with abs_ in front, "
    f"{', '.join((*COUNTS, *CHANNEL_SHARES, HISTOGRAM, STATISTICS))}"
)

# The old reader refuses a whole collections file over others, so they go under a key that it does not look at.
_OLD_REDUCTIONS = ("min", "max", "mean", "std", "variance", "sum", "prod", "l1_norm", "l2_norm")
_OLD_TOKENS = frozenset((*_OLD_REDUCTIONS, *(f"abs_{name}" for name in _OLD_REDUCTIONS)))
_EXTRA_KEY = "extra_reductions"


class ReductionConfig:
    """The summaries that are saved of a tensor.

    Args:
        reductions: of min max mean median std variance sum prod p5 p50 p95 zero_share nan_count inf_count
            dead_share saturated_share histogram; statistics stands for min max mean std zero_share nan_count
            inf_count dead_share saturated_share, the norm l2 and the mean of the absolute values.
        abs_reductions: of those from min to p95, on absolute values.
        norms: of l1 l2.
        abs_norms: of the same, on absolute values.
        save_raw_tensor: save the tensor as well. Without it and without any reduction nothing is saved.
        save_shape: save the shape as well.
        save_raw_up_to: in elements; a tensor of at most so many is saved whole instead of its reductions.

    Raises:
        SMDebugValueError: a name is unknown, a flag is no boolean, or the number is none.
    """

    def __init__(
        self,
        reductions: Iterable[str] | None = None,
        abs_reductions: Iterable[str] | None = None,
        norms: Iterable[str] | None = None,
        abs_norms: Iterable[str] | None = None,
        save_raw_tensor: bool = False,
        save_shape: bool = False,
        save_raw_up_to: int = 0,
    ) -> None:
        self.reductions = _checked("reductions", reductions, (*ALLOWED_REDUCTIONS, HISTOGRAM, STATISTICS))
        self.abs_reductions = _checked("abs_reductions", abs_reductions, ABS_REDUCTIONS)
        self.norms = _checked("norms", norms, ALLOWED_NORMS)
        self.abs_norms = _checked("abs_norms", abs_norms, ALLOWED_NORMS)
        self.save_raw_tensor = _flag("save_raw_tensor", save_raw_tensor)
        self.save_shape = _flag("save_shape", save_shape)
        self.save_raw_up_to = _number_of_elements("save_raw_up_to", save_raw_up_to)
        if STATISTICS in self.reductions:
            self.reductions.remove(STATISTICS)
            for token in STATISTICS_TOKENS:
                field, name = _sorted_in(token)
                if name not in getattr(self, field):
                    getattr(self, field).append(name)

    @property
    def ops(self) -> tuple[tuple[str, bool], ...]:
        """The reductions as (name, on absolute values), each once, in `OPS` order, plain ones first."""
        plain, absolute = {*self.reductions, *self.norms}, {*self.abs_reductions, *self.abs_norms}
        return (
            *((name, False) for name in OPS if name in plain),
            *((name, True) for name in OPS if name in absolute),
        )

    def describe(self) -> str:
        """Return in a word or two which reductions these are."""
        tokens = self.to_tokens()
        # Runs of earlier releases have no shares of channels among them.
        if {*tokens, *CHANNEL_SHARES} == {*STATISTICS_TOKENS}:
            return STATISTICS
        return ",".join(tokens) if len(tokens) == 1 else f"{len(tokens)} reductions" if tokens else "shapes"

    @property
    def histogram(self) -> bool:
        """True if the tensor's histogram is saved."""
        return HISTOGRAM in self.reductions

    @classmethod
    def from_tokens(
        cls,
        tokens: Iterable[str],
        save_raw_tensor: bool = False,
        save_shape: bool = False,
        save_raw_up_to: int = 0,
    ) -> ReductionConfig:
        """Make a config from tokens such as `mean`, `l1`, `l1_norm`, `abs_max`, `statistics`, in any case.

        Raises SMDebugValueError naming the first unknown token.
        """
        lists: dict[str, list[str]] = {"reductions": [], "norms": [], "abs_reductions": [], "abs_norms": []}
        for token in filter(None, (token.strip() for token in tokens)):
            field, name = _sorted_in(token)
            lists[field].append(name)
        return cls(**lists, save_raw_tensor=save_raw_tensor, save_shape=save_shape, save_raw_up_to=save_raw_up_to)

    def to_tokens(self) -> list[str]:
        """Return the tokens: reductions, norms, abs_reductions, abs_norms; norms end in `_norm`."""
        return [
            *self.reductions,
            *(f"{norm}_norm" for norm in self.norms),
            *(f"abs_{name}" for name in self.abs_reductions),
            *(f"abs_{norm}_norm" for norm in self.abs_norms),
        ]

    def to_json_dict(self) -> dict[str, Any]:
        """Return the form of a collections file: comma-separated tokens and two flags, and keys of our own."""
        tokens = self.to_tokens()
        extra = [token for token in tokens if token not in _OLD_TOKENS]
        known = [token for token in tokens if token in _OLD_TOKENS]
        fields: dict[str, Any] = {
            "save_raw_tensor": self.save_raw_tensor,
            "reductions": ",".join(known),
            "save_shape": self.save_shape,
        }
        if extra:
            fields[_EXTRA_KEY] = ",".join(extra)
        if self.save_raw_up_to:
            fields["save_raw_up_to"] = self.save_raw_up_to
        return fields

    def to_json(self) -> str:
        """Return `to_json_dict` as text."""
        import json

        return json.dumps(self.to_json_dict())

    @classmethod
    def from_dict(cls, params: Mapping[str, Any] | None) -> ReductionConfig | None:
        """Make a config from what `to_json_dict` gives; None stays None."""
        if params is None:
            return None
        params = as_object(params, "reduction_config")
        tokens = [*_split(params.get("reductions")), *_split(params.get(_EXTRA_KEY))]
        flags = params.get("save_raw_tensor", False), params.get("save_shape", False)
        return cls.from_tokens(tokens, *flags, params.get("save_raw_up_to", 0))

    @classmethod
    def from_json(cls, json_str: str) -> ReductionConfig | None:
        """Make a config from the text of `to_json`."""
        import json

        return cls.from_dict(json.loads(json_str))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ReductionConfig):
            return NotImplemented
        return self._saved == other._saved

    @property
    def _saved(self) -> tuple[object, ...]:
        return self.ops, self.histogram, self.save_raw_tensor, self.save_shape, self.save_raw_up_to

    __hash__ = None  # type: ignore[assignment]  # fields can change

    def __repr__(self) -> str:
        return (
            f"ReductionConfig({','.join(self.to_tokens())!r}, "
            f"save_raw_tensor={self.save_raw_tensor}, save_shape={self.save_shape}, "
            f"save_raw_up_to={self.save_raw_up_to})"
        )


def _checked(field: str, given: Iterable[str] | None, allowed: tuple[str, ...]) -> list[str]:
    # A bare string would be taken letter by letter.
    if given is not None and (isinstance(given, str) or not isinstance(given, Iterable)):
        given = [str(given), ""]
    names = list(dict.fromkeys(given or ()))
    if any(name not in allowed for name in names):
        raise SMDebugValueError(f"{field} can only be one of {','.join(allowed)}")
    return names


def _flag(field: str, value: object) -> bool:
    if not isinstance(value, bool):
        raise SMDebugValueError(f"{field}={value} must be a boolean")
    return value


def _number_of_elements(field: str, value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise SMDebugValueError(f"{field}={value} must be a number of elements, at least 0")
    return value


def _sorted_in(token: str) -> tuple[str, str]:
    name = token.lower()
    prefix = "abs_" if name.startswith("abs_") else ""
    name = name[len(prefix) :]
    if name in ABS_REDUCTIONS or (not prefix and name in (*COUNTS, *CHANNEL_SHARES, HISTOGRAM, STATISTICS)):
        return f"{prefix}reductions", name
    norm = name[: -len("_norm")] if name.endswith("_norm") else name
    if norm in ALLOWED_NORMS:
        return f"{prefix}norms", norm
    raise SMDebugValueError(f"reduction {token!r} is unknown, allowed are {CHOICES}")


def _split(value: str | Iterable[str] | None) -> list[str]:
    return value.split(",") if isinstance(value, str) else as_texts(value, "reductions")
