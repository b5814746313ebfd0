"""EqualUnits: a layer of which all units began with the same weights, and are the same after several updates."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from smd_agent.rules.built_in import TRAINING, BuiltInRule, CollectionKeys, Need, StepView
from smd_agent.rules.parameters import Parameter, whole

_ROLES = (CollectionKeys.WEIGHTS, CollectionKeys.BIASES)
# The variable in the name of a value that Keras or a tape has.
_VARIABLE = re.compile(r"(?:^|/)weights/(.+):0$")
# How far elements that are the same are apart by rounding, as part of the largest; of gradients, which are sums, more.
_SAME = 1e-4
_SAME_GRADIENT = 1e-3

_Range = tuple[float, float]


@dataclass
class _Layer:
    """A layer with a weight of which all elements were the same number.

    Attributes:
        value: that number.
        first: smallest and largest element of its weight and its vectors at the first step, by name.
        count: at how many steps its units had moved, and were the same.
    """

    value: float
    first: dict[str, _Range]
    count: int = 0


class EqualUnits(BuiltInRule):
    """A layer of which all units began with the same weights, and are the same after several updates.

    Such units have the same gradients, so that they stay the same for ever: the layer is as good as one unit. It is
    seen by a weight that began with one number in all of its elements, and where the weight itself, or a vector of the
    layer such as its bias, has moved and still has one number in all of them, with one gradient for all.
    Layers that begin at 0 and part by their first updates, such as heads and adapters, are none, nor are frozen ones.
    """

    meaning = "all elements of a weight were the same at first, and the layer's units are after several updates, too"
    patience = Parameter(whole, 3, "saved steps")
    brings = {"weights,biases,gradients": {"reductions": "min,max"}}
    needs = (Need((CollectionKeys.WEIGHTS,), ("min",)), Need((CollectionKeys.GRADIENTS,), ("min",)))
    modes = TRAINING
    fewest_steps = 4
    evidence = {
        "value": "what all elements of the weight were at the first saved step",
        "spread": "how far the elements that tell it are apart by now, as part of the largest one",
    }
    cause = "All elements of the weight were given the same number, so that all units of the layer learn the same"
    advice = "Draw weights at random, as layers do by default; only biases may begin with the same number"
    short = "units that stay equal: {}"

    def start(self) -> None:
        """Begin with nothing seen."""
        self._seen: set[str] = set()
        self._layers: dict[str, _Layer] = {}

    def take(self, step: StepView) -> None:
        """Look at the layers of a step that began with equal weights."""
        new = tuple(name for name in step.names(CollectionKeys.WEIGHTS) if name not in self._seen)
        if not new and not self._layers:
            return
        names = step.names(*_ROLES)
        ranges = _ranges(step, names)
        if new:
            self._seen.update(new)
            self._add(step, new, ranges)
        gradients = _ranges(step, step.names(CollectionKeys.GRADIENTS)) if self._layers else {}
        for name, layer in [*self._layers.items()]:
            self._look_at(step, name, layer, ranges, gradients)

    def _add(self, step: StepView, new: tuple[str, ...], ranges: dict[str, _Range]) -> None:
        for name in new:
            shape = step.shape(name) or ()
            if name in ranges and sum(size > 1 for size in shape) > 1 and _spread(ranges[name]) <= _SAME:
                beside = [
                    other
                    for other in ranges
                    if _layer_of(other) == _layer_of(name) and sum(size > 1 for size in step.shape(other) or ()) == 1
                ]
                first = {one: ranges[one] for one in (name, *beside) if one == name or _spread(ranges[one]) <= _SAME}
                self._layers[name] = _Layer(ranges[name][1], first)

    def _look_at(
        self, step: StepView, name: str, layer: _Layer, ranges: dict[str, _Range], gradients: dict[str, _Range]
    ) -> None:
        tell = None
        for one, first in layer.first.items():
            if one not in ranges or ranges[one] == first:
                continue
            spread = _spread(ranges[one])
            if spread <= _SAME and any(_same_gradient(gradients.get(of)) for of in _gradients_of(one)):
                tell = spread
            elif one != name:
                # Its units have parted.
                del self._layers[name]
                return
        if tell is not None:
            layer.count += 1
            if layer.count >= self.patience:
                self.found(step, name, {"value": layer.value, "spread": tell})
        elif len(layer.first) == 1 and ranges.get(name, layer.first[name]) != layer.first[name]:
            del self._layers[name]


def _ranges(step: StepView, names: tuple[str, ...]) -> dict[str, _Range]:
    largest = dict(step.column("max", names).items())
    return {name: (least, largest[name]) for name, least in step.column("min", names).items() if name in largest}


def _spread(found: _Range) -> float:
    """Return how far the ends of a range are apart, as part of the larger one; what is not finite is far apart."""
    size = max(map(abs, found))
    if not size < float("inf"):
        return float("inf")
    return (found[1] - found[0]) / size if size else 0.0


def _same_gradient(found: _Range | None) -> bool:
    return found is not None and found != (0.0, 0.0) and _spread(found) <= _SAME_GRADIENT


def _variable(name: str) -> str:
    found = _VARIABLE.search(name)
    return found[1] if found else name


def _layer_of(name: str) -> str:
    variable = _variable(name)
    separator = next((one for one in "./_" if one in variable), "")
    return variable.rpartition(separator)[0] if separator else variable


def _gradients_of(name: str) -> Iterator[str]:
    """Yield what the gradient of a parameter may be called."""
    variable = _variable(name)
    yield f"gradient/{variable}"
    yield f"gradients/{variable}Grad"
