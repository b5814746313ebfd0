"""Facts of one saved step of a Keras model or a tape; see ``training_facts``.

What a step changes is what its variables differ by before and after it. Which of them an optimizer was given, and
whether with a gradient, is seen where the optimizer is called: in a compiled step, while that is traced.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from smd_agent.core.failure_domains import INPUTS, LOSS_FACTS
from smd_agent.core.ports import StepWriter
from smd_agent.framework import training_facts as facts
from smd_agent.framework.flipped_targets import Images
from smd_agent.framework.input_digests import InputDigests
from smd_agent.framework.keras.first_layers import taken_as_they_are
from smd_agent.framework.keras.last_steps import LastSteps
from smd_agent.framework.keras.layer_modes import LayerModes
from smd_agent.framework.keras.optimizers import (
    LEARNING_RATE,
    LOSS_SCALE,
    GivenVariables,
    Knowledge,
    loss_scale_of,
    number_of,
    settings_of,
    skipped,
    with_inner,
)
from smd_agent.framework.layer_modes import Modes
from smd_agent.framework.loss_guesses import LossGuesses
from smd_agent.framework.model_inputs import ModelInputs, Numbers
from smd_agent.framework.monitored_metrics import MonitoredMetrics
from smd_agent.framework.optimizer_settings import OptimizerSettings, title_of
from smd_agent.framework.parameter_facts import ParameterFacts
from smd_agent.framework.step_events import (
    AfterUpdate,
    BeforeOptimizer,
    BeforeUpdate,
    ModelCall,
    ModelReturn,
    NewParameters,
    Probes,
    StepEnd,
    on,
)
from smd_agent.framework.usage import Usage, UsageProbe
from smd_agent.framework.weight_changes import Moved, WeightChanges, Weights
from smd_agent.framework.weights_or_biases import ParameterRoles


class Look(Weights, Protocol):
    """Looks at the variables and tensors of what Keras computes with; variables stand for an optimizer."""

    def digest_of(self, inputs: Any) -> Any | None:
        """The digest of what a model is called with, of shape (1,); None where that has no tensors."""

    def numbers_of(self, inputs: Any, most: int) -> Iterable[tuple[int, Numbers]]:
        """The numbers of each of the first inputs that has numbers, by its place."""

    def padding_of(self, given: Any) -> Numbers | None:
        """The facts of the padding of an input; None of one that has no rows of tokens, or of steps of numbers."""

    def numbers_in(self, inputs: Any) -> Iterable[Any]:
        """The inputs that are floats or integers and can be read."""

    def as_floats(self, part: Any) -> npt.NDArray[np.float32]:
        """A copy of a part of such an input."""


class NoLook:
    """Of a library whose variables and tensors nothing looks at: there are no updates and no digests."""

    def owned_by(self, optimizer: Sequence[Any]) -> Sequence[Any]:
        """Variables, which stand for the optimizer that updates them."""
        return optimizer

    def size_of(self, parameter: object) -> int:
        """Not known."""
        return 0

    def sample(self, parameter: object) -> None:
        """Nothing: it cannot be read."""

    def changes(self, found: Sequence[Moved]) -> Sequence[tuple[Moved, Any, Any]]:
        """None."""
        return ()

    def digest_of(self, inputs: object) -> None:
        """None."""

    def numbers_of(self, inputs: object, most: int) -> Iterable[tuple[int, Numbers]]:
        """None."""
        return ()

    def padding_of(self, given: object) -> None:
        """None."""

    def numbers_in(self, inputs: object) -> Iterable[Any]:
        """None."""
        return ()

    def as_floats(self, part: Any) -> npt.NDArray[np.float32]:
        """Not asked for."""
        raise NotImplementedError


class FactsSaver(Protocol):
    """Takes the facts of a step; a hook."""

    @property
    def recorder(self) -> StepWriter:
        """Takes the values of a step."""

    @property
    def roles(self) -> ParameterRoles:
        """Keep facts out of the weights."""

    @property
    def facts_told(self) -> dict[str, str]:
        """The facts that were told last of the variables of each model."""

    @property
    def loss_guesses(self) -> LossGuesses:
        """The labels that losses were given so far."""


class StepFacts(Probes):
    """The facts of one step.

    Args:
        saver: takes them.
        look: looks at variables and tensors.
        ever: the variables that optimizers were given in all steps.

    Attributes:
        given: the variables that optimizers were given in this step.
        digests: of what models are called with.
        usage: of losses and models.
        images: that a model was called with last.
    """

    def __init__(self, saver: FactsSaver, look: Look, ever: GivenVariables) -> None:
        self.given = GivenVariables()
        self.digests = InputDigests(saver.recorder, look.digest_of)
        self.usage = Usage(saver.recorder, saver.roles, saver.facts_told)
        self.images = Images(look.as_floats)
        self._saver = saver
        self._ever = ever
        self._changes = WeightChanges(saver.recorder, saver.roles, look)
        self._settings = OptimizerSettings(saver.recorder, saver.roles, self._settings_of)
        inputs, metrics = _Inputs(self.usage, look.numbers_of), MonitoredMetrics(self.usage)
        last_steps, images = LastSteps(self.usage, look.padding_of), _Images(self.usage, self.images, look.numbers_in)
        super().__init__((self.digests, inputs, images, LayerModes(self.usage), last_steps, metrics, self._changes))
        self._seen: dict[str, dict[str, Any]] = {}
        self._is_one_update = True

    @property
    def wants_updates(self) -> bool:
        """True if variables are read before and after the step."""
        return self._changes.wanted

    def before_call(self, title: str, model: Any, inputs: Sequence[Any]) -> None:
        """A model of this title is called with these tensors."""
        self.emit(ModelCall(title, model, inputs))

    def after_call(self, title: str, modes: Modes | None) -> None:
        """A model of this title has been called in these modes; None where they are not known."""
        if modes is not None:
            self.emit(ModelReturn(title, title, None, modes))

    def add(self, names: Sequence[str], variables: Sequence[Any]) -> None:
        """Save the updates of these variables, of these names in the run, if an optimizer is given them."""
        self.emit(NewParameters("", None, [*zip(names, variables, strict=True)]))

    def before_update(self, variables: Sequence[Any]) -> None:
        """Remember the values of variables that are about to be updated."""
        self.emit(BeforeUpdate(variables))

    @LOSS_FACTS.fence("looking at the scale of a loss")
    def before_optimizers(self, optimizers: Iterable[Any]) -> None:
        """Read what optimizers change themselves in their updates."""
        if self._settings.wanted:
            for optimizer in with_inner(optimizers):
                scale = loss_scale_of(optimizer)
                if scale is not None:
                    self._seen.setdefault(title_of(optimizer), {}).setdefault(LOSS_SCALE, scale)

    def saw_learning_rate(self, title: str, value: Any) -> None:
        """The optimizer of this title has updated with this learning rate."""
        self._seen.setdefault(title, {}).setdefault(LEARNING_RATE, number_of(value))

    def after_update(self, variables: Sequence[Any]) -> None:
        """Save how far variables have moved."""
        self.emit(AfterUpdate(variables))

    def after_optimizers(self, optimizers: Iterable[Any], is_one_update: bool = True) -> None:
        """Save the settings of optimizers that have updated, perhaps several times."""
        self._is_one_update = is_one_update
        if self._settings.wanted:
            for optimizer in with_inner(optimizers):
                self._settings.save(AfterUpdate(optimizer))

    def tell_of_variables(
        self,
        model: str,
        names: Sequence[str],
        variables: Sequence[Any],
        trainable: Iterable[Any],
        differentiated: Container[int] = (),
        marks: Mapping[str, Container[int]] = MappingProxyType({}),
    ) -> None:
        """Save what is known of these variables of a model, if optimizers were given any.

        Args:
            model: its title.
            names: of the variables in the run.
            variables: all that are told of.
            trainable: those of them that can be trained.
            differentiated: ids of those that have a gradient, whatever optimizers were given.
            marks: ids of those that have one of ``facts.MARKS``, by mark.
        """
        if not self.given:
            return
        known = Knowledge(self.given, self._ever, trainable, differentiated)
        told = self._saver.facts_told
        probes = Probes([ParameterFacts(self._saver.recorder, told, known, marks=marks)])
        probes.emit(NewParameters(model, None, [*zip(names, variables, strict=True)]))
        probes.emit(BeforeOptimizer(self.given))
        probes.emit(StepEnd())

    def close(self) -> None:
        """Let go of what is remembered."""
        self.emit(StepEnd())

    def _settings_of(self, optimizer: Any) -> dict[str, Any]:
        seen = self._seen.get(title_of(optimizer), {})
        left_out = skipped(optimizer, seen.get(LOSS_SCALE)) if self._is_one_update else {}
        return {**settings_of(optimizer), **seen, **left_out}


class _Inputs(ModelInputs, domain=INPUTS, doing="looking at the scales of a model's inputs"):
    """Inputs of models, and which of them a layer is given as they are."""

    def _save(self, call: ModelCall, found: list[tuple[str, Numbers]]) -> None:
        taken = taken_as_they_are(call.model, len(call.inputs)) if found else []
        for name, numbers in found:
            known = taken[int(name.rpartition("_")[2])]
            self._usage.save(name, numbers if known is None else {**numbers, facts.AS_IT_IS: known})


class _Images(UsageProbe, domain=INPUTS, doing="looking at the images that a model is given"):
    """Images of the model's last call, for what losses compare with them."""

    def __init__(self, usage: Usage, images: Images, numbers_in: Callable[[Any], Iterable[Any]]) -> None:
        super().__init__(usage, in_training=True)
        self._images = images
        self._numbers_in = numbers_in

    @on(ModelCall)
    def before_call(self, call: ModelCall) -> None:
        """A model is about to be called."""
        self._images.take(self._numbers_in(call.inputs))

    @on(StepEnd)
    def close(self, _: StepEnd) -> None:
        """Let go of them."""
        self._images.clear()


def learning_rate_name(optimizer: Any) -> str:
    """The name that the learning rate of an optimizer is saved under."""
    return f"{facts.OPTIMIZER}{title_of(optimizer)}/{LEARNING_RATE}"


def title_in(name: str) -> str:
    """The title of the optimizer whose learning rate has this name."""
    return name.removeprefix(facts.OPTIMIZER).removesuffix(f"/{LEARNING_RATE}")
