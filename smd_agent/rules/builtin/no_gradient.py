"""NoGradient: parameters that an optimizer has, and that the loss never reaches."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from dataclasses import dataclass

from smd_agent.framework.training_facts import NOT_NOW, PARAMETERS
from smd_agent.rules.built_in import TRAINING, BuiltInRule, CollectionKeys, Place, Severity, StepView
from smd_agent.rules.known_parameters import known_parameters
from smd_agent.rules.parameters import Parameter, whole
from smd_agent.rules.series_view import GRADIENT, Course, SeriesView

_OUTPUT = re.compile(r"(_output_\d+|/outputs(_\d+)?)$")
# Of a loop with a tape, variables are those of any models, in any order.
_OF_NO_MODEL = "variables"

_Kind = tuple[Severity, str, str]
_WHOLE = (
    Severity.PROBLEM,
    "No gradient reaches the optimizer: backward() is not called, gradients are cleared between it and the update, or"
    " the loss is computed from detached values (.item(), .numpy(), no_grad)",
    "Have zero_grad(), the loss, loss.backward() and optimizer.step() come in this order, with a loss of the outputs",
)
_ALL_ZERO = (
    "The gradients of all parameters are exactly 0 in every step: the loss is multiplied by 0, is clamped, or all units"
    " before it are dead",
    "Look at what lies between the last layer and the loss: a clamp, a mask, a ReLU, a weight of the loss that is 0",
)
_FRONT = (
    Severity.WARNING,
    "Gradients end behind this parameter: a detach(), .data, .numpy() or no_grad() lies between it and the loss, or a"
    " checkpoint with use_reentrant=True that is given nothing that needs a gradient",
    "Take that away, or call checkpoint with use_reentrant=False; if the part shall not be trained, say so by"
    " requires_grad=False",
)
_ASIDE = (
    Severity.NOTE,
    "Its module is called, and the loss does not depend on what it returns: an output that is not used, or is detached",
    "Add the output to the loss if it is meant to be trained; otherwise leave the module out, or freeze it",
)


@dataclass
class _Known:
    """The facts of a parameter.

    Attributes:
        model: whose it is.
        had_gradient: whether it had one at any update of its optimizer that was saved.
        steps: at how many saved steps it was in use since its optimizer was first seen.
        is_called: whether its module has returned anything.
    """

    model: str
    had_gradient: bool = False
    steps: int = 0
    is_called: bool = False


class NoGradient(BuiltInRule):
    """Parameters that an optimizer has, and that the loss never reaches.

    If it is all of a model, nothing is trained. If it is the model's first parameters, up to one that has a gradient,
    gradients do not come through to the input. Others are told only where their module is called: of parts that are
    not in use, `ls` tells.
    """

    meaning = (
        "a parameter can be trained, is in an optimizer, and has had no gradient at any of several saved steps; or all"
        " gradients are 0 in every step"
    )
    patience = Parameter(whole, 5, "saved steps")
    brings = {"parameters": {}}
    modes = TRAINING
    evidence = {
        "without": "how many parameters of the model are so by then",
        "with_gradient": "how many parameters of it have had a gradient by then",
    }
    _, cause, advice = _WHOLE

    def start(self) -> None:
        """Begin with nothing seen."""
        self._known: dict[str, _Known] = {}
        self._first: Place | None = None
        self._told: set[str] = set()
        self._count = 0
        self._sees_layers = False
        self._norms: list[Course] = []

    def take_series(self, series: SeriesView) -> None:
        """Take in the norm of all gradients together, of the steps that have it."""
        self._norms = [*series.courses(GRADIENT)]

    def end(self) -> None:
        """Judge the norms of all gradients, where nothing is known of any parameter by itself."""
        cause, advice = _ALL_ZERO
        for norms in self._norms:
            self.withdraw(norms.place(0), GRADIENT)
            if not self._findings and len(norms) >= self.patience and not norms.values.any():
                until, steps = norms.place(-1), len(norms)
                self.found(norms.place(0), GRADIENT, cause=cause, advice=advice, until=until, steps=steps)

    def take(self, step: StepView) -> None:
        """Look at what is known of the parameters by a step."""
        for model, facts in known_parameters(step).items():
            for name, fact in facts.items():
                if not fact.requires_grad or fact.optimizer is None:
                    self._known.pop(name, None)
                elif fact.optimizer != NOT_NOW:
                    known = self._known.setdefault(name, _Known(model))
                    known.had_gradient |= fact.gradient
        self.pass_over(step)

    def pass_over(self, step: StepView) -> None:
        """Facts are saved when they change: what is known holds at a step without any."""
        self._first = self._first or step.place
        self._count += 1
        called = {_OUTPUT.sub("", name) for name in step.names(CollectionKeys.LAYERS)}
        self._sees_layers |= bool(called)
        for name, known in self._known.items():
            known.steps += 1
            known.is_called |= _module_of(name, known.model) in called
        by_model: dict[str, list[str]] = {}
        for name, known in self._known.items():
            by_model.setdefault(known.model, []).append(name)
        told = {
            tensor: (evidence, kind)
            for model, names in by_model.items()
            for tensor, evidence, kind in self._judged(model, names)
        }
        for tensor in self._told - told.keys():
            self.withdraw(step, tensor)
        self._told = {*told}
        for tensor, (evidence, (severity, cause, advice)) in told.items():
            known_finding = self.finding_of(step, tensor)
            if known_finding is not None and known_finding.severity is not severity:
                self.withdraw(step, tensor)
            self.found(
                self._first,
                tensor,
                evidence,
                severity=severity,
                cause=cause,
                advice=advice,
                until=step,
                steps=self._count,
            )

    def _judged(
        self, model: str, names: list[str]
    ) -> Iterator[tuple[str, dict[str, float], tuple[Severity, str, str]]]:
        """Yield the tensors of a model that something is to be said of: which, by which numbers, and what."""
        without = [name for name in names if not self._known[name].had_gradient]
        ripe = [name for name in without if self._known[name].steps >= self.patience]
        evidence: dict[str, float] = {"without": len(without), "with_gradient": len(names) - len(without)}
        if ripe and len(without) == len(names):
            yield PARAMETERS + model, evidence, _WHOLE
            return
        front = [*itertools.takewhile(lambda name: not self._known[name].had_gradient, names)]
        for name in ripe:
            is_called = self._known[name].is_called
            if name in front and model != _OF_NO_MODEL and (is_called or not self._sees_layers):
                yield name, evidence, _FRONT
            elif is_called:
                yield name, evidence, _ASIDE


def _module_of(parameter: str, model: str) -> str:
    """Return what the module that has a parameter is called where Keras, PyTorch or Gluon names its outputs."""
    if "/" in parameter:
        return parameter.rpartition("/")[0].rpartition("/")[2]
    return parameter.removeprefix(f"{model}_").rpartition(".")[0] or parameter.rpartition("_")[0]
