"""Inputs of losses: whether they have been through softmax or sigmoid, which classes are meant, which shapes.

``usage/loss/<function>_<i>/<fact>``, of the step's first calls of ``cross_entropy_loss``, ``nll_loss`` and
``binary_cross_entropy_with_logits_loss``:

``input_min``, ...            see ``framework.loss_facts``, as for ``log_sum_error`` of ``nll_loss``.
``activated``                 1 if the input is what softmax or sigmoid has returned, whichever the loss applies itself,
                              else 0; not where the graph does not tell.
``softmax_over``              where softmax has returned the input: over how many numbers; of all losses named here.
``labels``, ``label_min``...  see ``framework.label_counts``.

``swapped``                   see ``framework.loss_facts``, in training.

Of ``kl_div_loss`` there are ``input_min``, ``input_max``, ``row_sum_error`` and ``classes``, along the last axis. Of
``poisson_nll_loss`` there are ``input_min``, ``input_max``, ``swapped``, and where it expects logarithms ``activated``:
1 if its input is what an exponential, a softplus or a ReLU has returned.

Of these, and of ``binary_cross_entropy_loss``, which has ``swapped`` too, in training:

``classes_mixed``             see ``class_axes``.
``scale``                     see ``logit_scales``.
``loss``                      what the function has returned, by label.
``guess``, ``least``          see ``framework.loss_guesses``.
``rare_weight``, ``imbalance``  see there.

Of these, and of the losses of numbers that follow, where they are means without weights, in training:

``factor``                    what it is multiplied by until a backward pass starts, which is the gradient that the pass
                              gives to it.
``alone``                     1 if the pass starts from it and from nothing else, but for such factors; else 0.

Of ``mse_loss``, ``l1_loss``, ``smooth_l1_loss`` and ``huber_loss``:

``input_repeated``, ``target_repeated``  how often each element comes, as the shapes of the two are not the same.
``out_of_reach``, ...         see ``target_reach``, where the prediction comes from an activation that bounds it.
``spread``, ``target_spread``  standard deviations of the prediction and of the target, of 16 numbers or more.
"""

from __future__ import annotations

import math
from typing import Any

import torch

from smd_agent.core.failure_domains import LOSS_FACTS
from smd_agent.core.modes import ModeKeys
from smd_agent.framework import loss_facts
from smd_agent.framework.label_counts import LabelCounts
from smd_agent.framework.loss_guesses import LossGuesses
from smd_agent.framework.plain_access import is_a
from smd_agent.framework.step_events import BeforeBackward, LossCall, StepEnd, on
from smd_agent.framework.training_facts import LOOKED_AT
from smd_agent.framework.usage import Usage, UsageProbe
from smd_agent.pytorch.arrays import has_memory, tensors_in
from smd_agent.pytorch.capture import class_axes, logit_scales, target_reach
from smd_agent.pytorch.capture.loss_scaling import Node, identity
from smd_agent.pytorch.own_operations import fence, without_gradients
from smd_agent.pytorch.tracing import graph_task, is_opaque

_OF_LOGARITHMS = "nll_loss"
_OF_CLASSES = ("cross_entropy_loss", _OF_LOGARITHMS)
_OF_LOGITS = "binary_cross_entropy_with_logits_loss"
_OF_DISTRIBUTIONS = "kl_div_loss"
_OF_COUNTS = "poisson_nll_loss"
_OF_NUMBERS = ("mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss")
_ARGUMENTS = {
    "cross_entropy_loss": ("input", "target", "weight", "reduction", "ignore_index", "label_smoothing"),
    "nll_loss": ("input", "target", "weight", "reduction", "ignore_index"),
    _OF_LOGITS: ("input", "target", "weight", "pos_weight", "reduction"),
    "binary_cross_entropy_loss": ("input", "target", "weight", "reduction"),
    _OF_COUNTS: ("input", "target", "log_input"),
    _OF_DISTRIBUTIONS: ("input", "target"),
    **dict.fromkeys(_OF_NUMBERS, ("input", "target", "reduction")),
}

# Those in which a prediction and its target have a place each. A divergence is meant either way round.
_ONE_WAY = (*_OF_CLASSES, _OF_LOGITS, "binary_cross_entropy_loss", _OF_COUNTS)

# How a loss is reduced, as its function is told it.
_MEAN = 1

_IGNORED = -100

_SOFTMAX = "SoftmaxBackward0"
_SUM = "AddBackward0"
_POSITIVE = {"ExpBackward0", "ReluBackward0", "SoftplusBackward0"}
_APPLIED = {"cross_entropy_loss": {_SOFTMAX}, _OF_LOGITS: {"SigmoidBackward0"}, _OF_COUNTS: _POSITIVE}
SAME_VALUES = {
    *("AliasBackward0", "CloneBackward0", "ExpandBackward0", "PermuteBackward0", "ReshapeAliasBackward0"),
    *("SqueezeBackward0", "SqueezeBackward1", "ToCopyBackward0", "TransposeBackward0", "UnsafeViewBackward0"),
    *("UnsqueezeBackward0", "ViewBackward0"),
}
"""What only gives another shape or dtype to values."""

# What gives a part of them, too.
_SOME_VALUES = {
    *SAME_VALUES,
    *("GatherBackward0", "IndexBackward0", "NarrowBackward0", "SelectBackward0", "SliceBackward0", "SplitBackward0"),
    "UnbindBackward0",
}
# Of fewer numbers it is no matter how far they are spread.
_FEWEST_SPREAD = 16
# What multiplies a loss, and how many of such nodes are looked at.
_MULTIPLIED = {*SAME_VALUES, "DivBackward0", "MulBackward0"}
_FACTORS = 16
OPAQUE_NODES = ("CompiledFunctionBackward",)
"""What does not show what it computes."""


class LossInputs(UsageProbe, domain=LOSS_FACTS, doing="looking at what a loss is given"):
    """The inputs of losses of one step that is saved.

    Args:
        usage: takes the numbers.
        guesses: has the labels of the steps before.
    """

    def __init__(self, usage: Usage, guesses: LossGuesses) -> None:
        super().__init__(usage)
        self._guesses = guesses
        self._calls: dict[str, int] = {}
        self._factors: dict[str, torch.Tensor] = {}
        # By the nodes of the losses that no backward pass has reached yet.
        self._means: dict[Node, str] = {}
        self._alone: set[str] = set()

    @on(LossCall)
    @without_gradients
    def look_at(self, call: LossCall) -> None:
        """Save what a call of a functional loss was given, and what it has returned."""
        function, args, kwargs, loss = call
        if function not in _ARGUMENTS:
            return
        given: dict[str, Any] = {**dict(zip(_ARGUMENTS[function], args, strict=False)), **kwargs}
        values: Any = given.get("input")
        target: Any = given.get("target")
        if not _can_be_read(values) or not _can_be_read(target) or not values.is_floating_point():
            return
        # A loss that is trained is none of an evaluation that comes between.
        if values.requires_grad and self._usage.writer.mode is ModeKeys.EVAL:
            return
        number = self._calls.get(function, 0)
        self._calls[function] = number + 1
        if number >= loss_facts.CALLS:
            return
        name = f"{function}_{number}"
        numbers = self._facts(name, function, given, loss)
        if function in _ONE_WAY and self._usage.writer.mode is not ModeKeys.EVAL:
            numbers |= loss_facts.swapped(values.requires_grad, target.requires_grad)
        self._usage.save(f"loss/{name}", numbers, here=True)

    def _facts(self, name: str, function: str, given: dict[str, Any], loss: Any) -> dict[str, Any]:
        values, target = given["input"], given["target"]
        if function in _OF_NUMBERS:
            if _can_be_read(loss) and given.get("reduction", _MEAN) == _MEAN:
                self._take_factor(name, loss)
            return _of_numbers(values, target)
        # A target may be trained, by mistake or not.
        given["target"] = target = target.detach()
        if function == _OF_DISTRIBUTIONS:
            # Along any axis, so that the sum of what they are logarithms of tells nothing.
            return loss_facts.rows(values.detach(), library=torch)
        applied = _is_activated(values.grad_fn, _APPLIED.get(function))
        numbers: dict[str, Any] = {} if applied is None else {"activated": applied}
        if function == _OF_COUNTS:
            return {**(numbers if given.get("log_input", True) else {}), **loss_facts.ends(values.detach())}
        numbers.update(softmax_over(values.grad_fn))
        trained = loss if _can_be_read(loss) and loss.requires_grad else None
        if function in _OF_CLASSES:
            axis = 1 if values.dim() > 1 else 0
            numbers.update(loss_facts.rows(values.detach(), axis, function == _OF_LOGARITHMS, torch))
            if not target.is_floating_point():
                numbers.update({**class_axes.facts(values), **logit_scales.facts(values)})
                numbers.update(self._of_classes(name, given, trained, numbers["classes"]))
            return numbers
        if function == _OF_LOGITS:
            numbers.update(loss_facts.ends(values.detach()))
        if trained is not None and given.get("weight") is None:
            numbers.update(self._of_yes_and_no(name, given, trained))
        return numbers

    def _of_yes_and_no(self, name: str, given: dict[str, Any], loss: torch.Tensor) -> dict[str, Any]:
        target, weight = given["target"], given.get("pos_weight")
        columns = loss_facts.columns(target)
        if given.get("reduction", _MEAN) == _MEAN and weight is None:
            self._take_factor(name, loss)
        if weight is None:
            return {**_by_label(loss, given, target.numel()), **self._guesses.of_yes_and_no(name, columns)}
        return self._guesses.of_weighed_yes(name, columns, weight.detach()) if _can_be_read(weight) else {}

    def _of_classes(self, name: str, given: dict[str, Any], loss: torch.Tensor | None, classes: int) -> dict[str, Any]:
        target, weight = given["target"], given.get("weight")
        part = target.reshape(-1)[:LOOKED_AT].to(torch.int64)
        counted = LabelCounts(part, part != given.get("ignore_index", _IGNORED), classes, torch)
        numbers = counted.facts(_row_length(given["input"], target))
        if loss is not None and counted.counts is not None:
            if given.get("reduction", _MEAN) == _MEAN or (weight is None and counted.size == target.numel()):
                numbers.update(_by_label(loss, given, counted.labels))
            if given.get("reduction", _MEAN) == _MEAN and weight is None:
                self._take_factor(name, loss)
            smoothing = given.get("label_smoothing", 0.0)
            numbers.update(self._guesses.of_classes(name, counted.counts, counted.size, weight, smoothing))
        return numbers

    def _take_factor(self, name: str, loss: torch.Tensor) -> None:
        """Have the gradient kept that the first backward pass gives to a loss."""

        @fence("looking at what a loss is multiplied by", LOSS_FACTS)
        def take(gradients: tuple[torch.Tensor | None, ...]) -> None:
            handle.remove()
            if gradients[0] is not None:
                self._factors[name] = gradients[0].detach().clone()

        if loss.grad_fn is not None:
            handle = loss.grad_fn.register_prehook(take)
            self._means[identity(loss.grad_fn)] = name

    @on(BeforeBackward)
    def before_backward(self, backward: BeforeBackward) -> None:
        """A backward pass is about to start: perhaps from one of these losses alone."""
        starts = [*tensors_in(backward.tensors)]
        node: Any = starts[0].grad_fn if len(starts) == 1 else None
        for _ in range(_FACTORS):
            if node is None:
                return
            name = self._means.get(identity(node))
            if name is not None:
                self._alone.add(name)
                return
            behind_it = [source for source, _ in node.next_functions if source is not None]
            node = behind_it[0] if len(behind_it) == 1 and node.name() in _MULTIPLIED else None

    @on(StepEnd)
    def close(self, _: StepEnd) -> None:
        """Save what the backward passes of the step have given."""
        for name, factor in self._factors.items():
            self._usage.save(f"loss/{name}", {"factor": factor, "alone": float(name in self._alone)})
        self._means.clear()


def _can_be_read(tensor: Any) -> bool:
    return is_a(tensor, torch.Tensor) and graph_task() == -1 and not is_opaque() and has_memory(tensor)


def _by_label(loss: torch.Tensor, given: dict[str, Any], labels: Any) -> dict[str, Any]:
    loss = loss.detach()
    return {"loss": loss if given.get("reduction", _MEAN) == _MEAN else loss.sum() / labels}


def _of_numbers(values: torch.Tensor, target: torch.Tensor) -> dict[str, Any]:
    found: dict[str, Any] = {"input_repeated": times_repeated(values), "target_repeated": times_repeated(target)}
    # Some give the two in the other order, which is the same loss.
    prediction, target = (values, target) if values.requires_grad else (target, values)
    if prediction.requires_grad and target.numel():
        found.update(target_reach.facts(behind(prediction.grad_fn, _SOME_VALUES), target))
        found.update(softmax_over(prediction.grad_fn))
        if min(prediction.numel(), target.numel()) >= _FEWEST_SPREAD:
            found |= {"spread": _spread(prediction), "target_spread": _spread(target)}
    return found


def _spread(values: torch.Tensor) -> torch.Tensor:
    """The standard deviation of the elements that are looked at."""
    return values.detach().reshape(-1)[:LOOKED_AT].to(torch.float32).std(correction=0)


def behind(node: Any, names: frozenset[str] | set[str]) -> Any:
    """The first node behind those of these names; None if there is none."""
    while node is not None and node.name() in names:
        node = node.next_functions[0][0]
    return node


def _is_activated(node: Any, wanted: set[str] | None) -> float | None:
    """True if a node is a wanted one, behind others that leave values as they are; None if that is not known."""
    node = behind(node, SAME_VALUES)
    if wanted is _POSITIVE and node is not None and node.name() == _SUM and node.next_functions[1][0] is None:
        # Something small is added, so that no rate is 0.
        node = behind(node.next_functions[0][0], SAME_VALUES)
    if wanted is None or node is None or node.name() in OPAQUE_NODES:
        return None
    return float(node.name() in wanted)


def softmax_over(node: Any) -> dict[str, int]:
    """Over how many numbers the softmax is, if a node is one behind others that leave values as they are."""
    node = behind(node, SAME_VALUES)
    # Its result is not asked for: hooks of the program may have packed it.
    told = getattr(node, "_input_metadata", None) if node is not None and node.name() == _SOFTMAX else None
    if not told:
        return {}
    shape = told[0].shape
    # A negative axis is told as an unsigned number of 64 bits.
    axis = (node._saved_dim + (1 << 63)) % (1 << 64) - (1 << 63)
    return {"softmax_over": shape[axis]} if len(shape) else {}


def times_repeated(tensor: torch.Tensor) -> float:
    """Number of times that each element of a tensor comes that has been broadcast, which has not copied it."""
    return float(math.prod(size for size, stride in zip(tensor.shape, tensor.stride(), strict=True) if not stride))


def _row_length(values: torch.Tensor, target: torch.Tensor) -> int | None:
    """The length of the rows in which labels come; None where they come in none, or in images.

    Args:
        values: the input of the loss. Where it was made flat for the loss, the graph knows its rows.
        target: the labels.
    """
    if target.dim() == 2:
        return target.shape[1]
    sizes: tuple[int, ...] = getattr(values.grad_fn, "_saved_self_sym_sizes", ())
    is_flat = target.dim() == 1 and len(sizes) == 3 and sizes[0] * sizes[1] == values.shape[0] == target.shape[0]
    return int(sizes[1]) if is_flat else None
