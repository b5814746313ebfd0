"""Interfaces of Keras's classes, as far as they are used here; the classes of Keras 2 and 3 alike have them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any, Protocol, TypeAlias

KerasModule: TypeAlias = ModuleType
"""An imported Keras: ``keras`` or ``tf_keras``."""

Call: TypeAlias = Callable[..., Any]
"""A function of the program's or of Keras's, with any arguments."""


class Variable(Protocol):
    """A weight, or a value that an optimizer keeps beside it."""

    @property
    def shape(self) -> Sequence[int]:
        """Its sizes."""


class Optimizer(Protocol):
    """Changes variables. Its own ones are a property or, of Keras 2's, a method."""

    @property
    def variables(self) -> Any:
        """Variables that it keeps."""


class Layer(Protocol):
    """A layer; a model is one too."""

    @property
    def name(self) -> str:
        """Given by the program or by Keras; several may share it."""

    @property
    def weights(self) -> Sequence[Variable]:
        """Its variables and those of the layers inside."""


class Model(Layer, Protocol):
    """A model that can be trained."""

    @property
    def variables(self) -> Sequence[Variable]:
        """All that it owns."""

    @property
    def trainable_variables(self) -> Sequence[Variable]:
        """Those of them that training changes."""
