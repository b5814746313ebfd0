"""VanishingGradient: gradients too small to train by."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from smd_agent.framework.training_facts import UPDATE_RATIO
from smd_agent.rules.built_in import TRAINING, BuiltInRule, CollectionKeys, Names, Severity, Split, StepView
from smd_agent.rules.parameters import Parameter, number, whole

_PREFIX = "gradient/"
# Of the gradients of a model, in order of size, the one that the others are measured by.
_USUAL = 75
_FEWEST = 3
# A gradient that moves nothing is small beside the usual one, and those of other matrices do move them.
_SMALL = 1e-3
_MOVES = 1e-5


class VanishingGradient(BuiltInRule):
    """Gradients too small to train by.

    By themselves gradients say little: where the loss is divided by more, all are smaller. So a matrix is measured by
    the others of its model. Vectors are left out: a bias before a normalisation has no gradient but rounding.
    A gradient of up to a thousandth of the usual one counts, too, if its update is lost: a weight of float32 has seven
    digits, so what changes it by less changes nothing.
    """

    meaning = (
        "the gradient of a matrix is tiny beside those of the others of its model, or small and its updates are lost "
        "in rounding while the others move, at several steps in a row"
    )
    threshold: Parameter[float | None] = Parameter(
        number,
        None,
        "mean absolute value below which a gradient has vanished, whatever the others are, at any step",
        documented=1e-7,
    )
    ratio = Parameter(number, 1e-6, "part of the upper quartile of the model's gradients")
    lost = Parameter(number, 1e-8, "part of the weights below which an update is lost in rounding")
    patience = Parameter(whole, 5, "saved steps in a row")
    brings = {"gradients": {"reductions": "abs_mean,zero_share", "save_interval": 500}}
    modes = TRAINING
    fewest_steps = 5
    severity = Severity.WARNING
    evidence = {
        "abs_mean": "mean absolute value of the gradient, of the elements that have any",
        "usual": "the upper quartile of those of the model's matrices",
        "ratio": "the one divided by the other",
        "update_ratio": "l2 of the update divided by that of the weights before it, where that is what tells",
    }
    cause = "On the way back from the loss the gradient shrinks from layer to layer, as through saturated activations"
    advice = "Use ReLU-like activations, normalisation, residual connections, or another initialisation"
    short = "gradient vanishes: {}"

    def start(self) -> None:
        """Begin with nothing seen."""
        if self.threshold is not None:
            self.fewest_steps = 1
            self.split = Split.TENSOR
        self._models: dict[Names, list[npt.NDArray[np.int64]]] = {}

    def take(self, step: StepView) -> None:
        """Look at the gradients of a step."""
        names, sizes = step.column("abs_mean", step.names(CollectionKeys.GRADIENTS))
        if self.threshold is not None:
            for place in np.flatnonzero(sizes < self.threshold).tolist():
                self.found(step, names[place], {"abs_mean": float(sizes[place])})
            return
        shares = step.column("zero_share", names)
        if shares.names == names:
            # Rows of an embedding that were not looked up have none.
            sizes = sizes / np.maximum(1 - shares.values, 1e-30)
        if names not in self._models:
            self._models = {names: _models_of(step, names)}
        moved = dict(zip(*_update_ratios(step), strict=True))
        low: dict[str, dict[str, float]] = {}
        for places in self._models[names]:
            own = places[(sizes[places] > 0) & np.isfinite(sizes[places])]
            if len(own):
                low |= self._low_ones(names, sizes, own) | self._lost_ones(names, sizes, own, moved)
        self._in_a_row = {name: self._in_a_row.get(name, 0) + 1 for name in low}
        for name, evidence in low.items():
            if self._in_a_row[name] >= self.patience:
                self.found(step, name, evidence)

    def _low_ones(
        self, names: Names, sizes: npt.NDArray[np.float64], own: npt.NDArray[np.int64]
    ) -> dict[str, dict[str, float]]:
        usual = float(np.percentile(sizes[own], _USUAL))
        places = own[sizes[own] < self.ratio * usual].tolist()
        found = ((names[place], float(sizes[place])) for place in places)
        return {name: {"abs_mean": size, "usual": usual, "ratio": size / usual} for name, size in found}

    def _lost_ones(
        self, names: Names, sizes: npt.NDArray[np.float64], own: npt.NDArray[np.int64], moved: dict[str, float]
    ) -> dict[str, dict[str, float]]:
        ratios = {place: moved.get(names[place].removeprefix(_PREFIX), np.nan) for place in own.tolist()}
        if not any(ratio >= _MOVES for ratio in ratios.values()):
            return {}
        usual = float(np.percentile(sizes[own], _USUAL))
        lost = [place for place in own[sizes[own] < _SMALL * usual].tolist() if 0 < ratios[place] < self.lost]
        found = ((names[place], float(sizes[place]), ratios[place]) for place in lost)
        return {
            name: {"abs_mean": size, "usual": usual, "ratio": size / usual, "update_ratio": ratio}
            for name, size, ratio in found
        }


def _update_ratios(step: StepView) -> tuple[list[str], list[float]]:
    names, ratios = step.numbers(step.names(patterns=(f"^{UPDATE_RATIO}",)))
    return [name.removeprefix(UPDATE_RATIO) for name in names], ratios.tolist()


def _models_of(step: StepView, names: Names) -> list[npt.NDArray[np.int64]]:
    """Return the places of the gradients of matrices, for each model."""
    models: dict[str, list[int]] = {}
    for place, name in enumerate(names):
        if step.is_matrix(name):
            models.setdefault(_model_of(name), []).append(place)
    # Without a model's name in front, each layer is one of its own here: these are one model.
    rest = [place for places in models.values() if len(places) < _FEWEST for place in places]
    found = [places for places in models.values() if len(places) >= _FEWEST]
    return [np.array(places, np.int64) for places in (*found, rest) if places]


def _model_of(name: str) -> str:
    return name.removeprefix(_PREFIX).partition("_")[0]
