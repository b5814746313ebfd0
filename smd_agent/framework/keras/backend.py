"""Base of what each library that Keras computes with adds to the watcher: captures, and how many steps a call makes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import ClassVar, Generic, NamedTuple, TypeVar

from smd_agent.core.modes import ModeKeys
from smd_agent.framework.hook_source import HookSource
from smd_agent.framework.keras.logs import KerasLogs
from smd_agent.framework.keras.names import Names
from smd_agent.framework.keras.saved_step import KerasCapture
from smd_agent.framework.keras.types import Call, Model
from smd_agent.framework.keras.variables import ModelVariables

H = TypeVar("H", bound=KerasLogs)
C = TypeVar("C", bound=KerasCapture)


class StepsPerCall(NamedTuple):
    """Number of steps that a call of a model's function makes.

    steps: the number, or what tells it of the call's arguments.
    make_single: makes a function for one step out of the model, given the arguments of a call; only asked when a call
        makes several. None, or its result None: there is none.
    ends_early: whether a call for several steps, when the data end after some of them, returns what the last of these
        gave; else it raises.
    """

    steps: int | Callable[[tuple[object, ...]], int] = 1
    make_single: Callable[[tuple[object, ...]], Call | None] | None = None
    ends_early: bool = True


class RunningStep(Generic[C]):
    """A model's step function as the backend sees it while it runs.

    Attributes:
        mode: of its steps.
        capture: what collects the current step; None if that is not saved.
        variables: lists of what the model's saved steps read.
    """

    mode: ModeKeys
    capture: C | None
    variables: ModelVariables

    @property
    def model(self) -> Model:
        """The model whose function this is."""
        raise NotImplementedError


class Current(Generic[C]):
    """Holds the step function that is running now.

    Attributes:
        step: it, None between steps.
    """

    __slots__ = ("step",)

    def __init__(self) -> None:
        self.step: RunningStep[C] | None = None


class Backend(ABC, Generic[H, C]):
    """One Keras with the library that it computes with.

    Args:
        trainer: the class whose ``make_*_function`` make what ``fit`` and its like call for a step.
        history: the callback that every ``fit`` has.
        names: of layers and variables.

    Attributes:
        callbacks: the class that calls the callbacks of a ``fit``; None: the ends of epochs are not seen before them.
        end_of_data: exceptions by which a step tells that there were no data for it.
        pause_others: called with True before a step runs and with False afterwards, so that whatever else watches the
            library does not look at it; None: nothing else does.
    """

    end_of_data: ClassVar[tuple[type[Exception], ...]] = (StopIteration,)
    pause_others: Callable[[bool], None] | None = None
    callbacks: type | None = None

    def __init__(self, trainer: type, history: type, names: Names) -> None:
        self.trainer = trainer
        self.history = history
        self.names = names

    def install(self, current: Current[C], source: HookSource[H]) -> None:
        """Begin to watch what is looked at in all steps; called once."""

    def leave_untraced(self, replacement: Call) -> None:
        """Have what compiles the program's functions run a function of ours as it is."""

    def entered(self) -> None:
        """The program has called ``fit`` or one of its like."""

    def can_watch(self, model: Model) -> bool:
        """True if the steps of a model can be counted; one line says why not."""
        return True

    def steps_per_call(self, model: Model, kind: str, function: Call, make: Call) -> StepsPerCall:
        """Number of steps that a function makes.

        Args:
            model: whose function it is.
            kind: ``"train"``, ``"test"`` or ``"predict"``.
            function: the model's own.
            make: Keras's method that makes such functions.
        """
        return StepsPerCall()

    @abstractmethod
    def capture(self, hook: H, step: RunningStep[C]) -> C:
        """The capture of a step that has been opened."""
