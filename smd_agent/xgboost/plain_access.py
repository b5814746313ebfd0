"""Matrices and boosters of the program's classes, as XGBoost's own classes have them.

A class of the program's may override any method, and XGBoost's own methods call each other. So what the program's
object stands for is asked of an object of XGBoost's class that has the same handle, and nothing of the program's runs.
"""

from __future__ import annotations

import functools
from typing import Any, TypeVar

import xgboost

from smd_agent.framework.plain_access import bases_of, is_a, own_dict

T = TypeVar("T")

_OWN = (xgboost.DMatrix, xgboost.Booster)


def plain(thing: T) -> T:
    """A matrix or a booster itself, or what stands for it if its class is the program's; all else as it is."""
    kind = type(thing)
    if not is_a(thing, _OWN) or "stands_for" in own_dict(thing):
        return thing
    own = next(base for base in bases_of(kind) if _is_of_xgboost(base))
    return thing if own is kind else _stand_in(thing, own)


def is_same(one: object, other: object) -> bool:
    """True if two matrices are one, or stand for one."""
    handle = own_dict(one).get("handle")
    return one is other or (handle is not None and handle is own_dict(other).get("handle"))


def _stand_in(thing: Any, own: type) -> Any:
    found = object.__new__(_stand_in_class(own))
    vars(found).update(own_dict(thing), stands_for=thing)
    return found


@functools.cache
def _stand_in_class(own: type) -> type[Any]:
    # The handle is the program's object's to free, and lives as long as that does.
    return type(own.__name__, (own,), {"__del__": lambda _: None})


def _is_of_xgboost(kind: type) -> bool:
    return kind.__module__.partition(".")[0] == "xgboost"
