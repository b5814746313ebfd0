"""Collections of one boosting round, each a probe; of one that cannot be had it is said why, the others are saved.

What a library cannot give is no failure of ours, so that these probes stand in no failure domain: each is tried again
in the next round, and one line names all collections that are missing for one reason.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from smd_agent import guard
from smd_agent.core.collection_keys import CollectionKeys
from smd_agent.core.failure_domains import note_missing
from smd_agent.core.ports import StepWriter
from smd_agent.framework.boosting.affordable import Affordable
from smd_agent.framework.boosting.built_in_collections import FULL_SHAP, LABELS, PREDICTIONS
from smd_agent.framework.boosting.library import Library, Unavailable
from smd_agent.framework.plain_access import elements_of, is_a, runs_program
from smd_agent.framework.step_events import Probe, Probes, RoundEnd, on
from smd_agent.framework.training_facts import DATA_FACTS

# What NumPy and ``str`` may call.
_LOOKED_AT_BY = (
    *("__str__", "__repr__", "__iter__", "__len__", "__getitem__", "__getattribute__", "__getattr__", "__float__"),
    *("__array__", "__array_interface__", "__int__", "__index__"),
)
# Numbers and text of classes of the program's, without what these override.
_PLAINLY: dict[type, Callable[[Any], Any]] = {str: str.__str__, int: int.__int__, float: float.__float__}


class SavedRounds:
    """The rounds of one training that are saved.

    Args:
        writer: takes the values of the open step.
        library: gives them.
        built_in: the library's collections; of others nothing is saved.
        affordable: saves what nobody asked for by name, as far as that takes little time; None: all is saved.

    Attributes:
        writer, library, built_in, affordable: the same.
        told: collections that are saved once, and have been.
    """

    def __init__(
        self,
        writer: StepWriter,
        library: Library[Any, Any],
        built_in: Mapping[str, Any],
        affordable: Affordable | None = None,
    ) -> None:
        self.writer = writer
        self.library = library
        self.built_in = built_in
        self.affordable = affordable
        self.told: set[str] = set()
        self._is_noted = False
        self._missing: dict[str, list[str]] = {}
        self._shap: npt.NDArray[Any] | None = None

    def save(self, model: Any, log: Any) -> None:
        """Save what the open step wants of a round; see ``RoundEnd``."""
        self._shap = None
        self._missing = {}
        if self.affordable is not None:
            self.affordable.begin_round()
        given = RoundEnd(model, log)
        with self.library.quiet():
            probes = [kind(self) for kind in PROBES if kind.collection in self.built_in]
            if not self._is_noted:
                self._is_noted = True
                self._note_what_there_is_not(probes, given)
            Probes(probes).emit(given)
        for reason, collections in self._missing.items():
            self.writer.cannot_save(collections, reason)

    def _note_what_there_is_not(self, probes: Iterable[RoundProbe], given: RoundEnd) -> None:
        """Have the run say it of all collections."""
        for probe in probes:
            failure = guard.attempt(lambda probe=probe: probe.need(given))  # type: ignore[misc]
            if isinstance(failure, Unavailable):
                self.writer.cannot_have([probe.collection], self.library.reason(failure))

    def asks(self, collection: str, names: Iterable[str] | None = None) -> bool:
        """True if the open step saves something of a built-in collection.

        ``names`` are the tensors it would be; without them the answer is yes as soon as a collection of the user's,
        which may want any name, is due.
        """
        due = self.writer.collections_due()
        if collection in due or CollectionKeys.ALL in due:
            return True
        if all(key in self.built_in and key != CollectionKeys.DEFAULT for key in due):
            return False
        return names is None or any(self.writer.wants(name) for name in names)

    def is_missing(self, collection: str, failure: Exception) -> None:
        """Take note that a collection cannot be saved of the round."""
        self._missing.setdefault(self.library.reason(failure), []).append(collection)
        if not isinstance(failure, Unavailable):
            note_missing(collection, failure)

    def shap_values(self, model: Any) -> npt.NDArray[Any]:
        """SHAP values of the round, computed once for all collections."""
        if self._shap is None:
            self._shap = self.library.contributions(*self.library.shap_data(model))
        return self._shap

    def seconds_of_shap(self, model: Any) -> float:
        """The seconds that ``shap_values`` will take."""
        return 0.0 if self._shap is not None else self.library.seconds_of_contributions(*self.library.shap_data(model))


class RoundProbe(Probe):
    """A collection of one round that is saved.

    Args:
        rounds: those of the training.

    Attributes:
        collection: its name.
        names: of its tensors, if they are always the same.
        once: whether it is saved in one round only.
        part: of the time for what nobody asked for by name that it may make use of; 0: it is saved whatever it takes.
    """

    collection: ClassVar[str] = ""
    names: ClassVar[Sequence[str] | None] = None
    once: ClassVar[bool] = False
    part: ClassVar[float] = 0.0

    def __init__(self, rounds: SavedRounds) -> None:
        self._rounds = rounds
        self._library = rounds.library
        self._writer = rounds.writer
        self.wanted = self.collection not in rounds.told and rounds.asks(self.collection, self.names)

    @on(RoundEnd)
    def try_to_save(self, given: RoundEnd) -> None:
        """Save the collection, or take note of why it is missing."""
        failure = guard.attempt(lambda: self._save_affordable(given))
        if failure is not None:
            self._rounds.is_missing(self.collection, failure)
        if self.once:
            # Not in a later round, either, after it was said that it cannot be saved.
            self._rounds.told.add(self.collection)

    def _save_affordable(self, given: RoundEnd) -> None:
        affordable = self._rounds.affordable
        if affordable is None or not self.part or affordable.is_named(self.collection):
            self.save(given)
            return
        # What cannot be had is not left out.
        self.need(given)
        number, seconds = self._writer.position.step, self.seconds(given)
        affordable.offer(self.collection, number, self.part, seconds, lambda: self.save(given))

    def seconds(self, given: RoundEnd) -> float:
        """The seconds that saving it will take: as many as last time, and at first none."""
        affordable = self._rounds.affordable
        return (affordable.took(self.collection) if affordable is not None else None) or 0.0

    def need(self, given: RoundEnd) -> Any:
        """The things that the collection is made of.

        Raises:
            Unavailable: the training cannot have it.
        """

    def save(self, given: RoundEnd) -> None:
        """Save the collection; one that is saved with another one only has to be there."""
        self.need(given)

    def _save_numbers(self, found: Mapping[str, float]) -> None:
        self._writer.save_tensors(tuple(found), [np.array([value], np.float64) for value in found.values()])


class Metrics(RoundProbe):
    """Metrics of the evaluation sets, losses among them."""

    collection = CollectionKeys.METRICS

    def __init__(self, rounds: SavedRounds) -> None:
        super().__init__(rounds)
        # Another collection may want them. Then it is not said that there are none.
        self._is_asked, self.wanted = self.wanted, True

    def need(self, given: RoundEnd) -> Mapping[str, float]:
        """Some metrics."""
        return self._library.some_metrics(given.log)

    def save(self, given: RoundEnd) -> None:
        """Save the metrics of the round."""
        for name in self._library.losses(given.log):
            self._writer.place(CollectionKeys.LOSSES, name)
        self._save_numbers(dict(self._library.metrics(given.log)))
        if self._is_asked:
            self.need(given)


class Losses(RoundProbe):
    """Metrics of which less is better; they are saved as metrics are."""

    collection = CollectionKeys.LOSSES
    names = ()

    def need(self, given: RoundEnd) -> None:
        """One such metric."""
        library, log = self._library, given.log
        found = library.some_metrics(log)
        known = [re.compile(regex) for regex in self._rounds.built_in[self.collection]]
        if not any(library.losses(log)) and not any(regex.search(name) for regex in known for name in found):
            metrics = dict.fromkeys(re.sub("-(?:mean|std)$", "", name.partition("-")[2]) for name in found)
            raise Unavailable(f"of {', '.join(metrics)} it is not known that less is better")


class Hyperparameters(RoundProbe):
    """Parameters that the training was given."""

    collection = CollectionKeys.HYPERPARAMETERS

    def need(self, given: RoundEnd) -> Mapping[str, Any]:
        """The parameters."""
        if self._library.training.hyperparameters is None:
            raise Unavailable("the hook was made without hyperparameters")
        return self._library.training.hyperparameters

    def save(self, given: RoundEnd) -> None:
        """Save those that have a value."""
        found = {f"hyperparameters/{name}": value for name, value in self.need(given).items() if value is not None}
        self._writer.save_tensors([*found], [_as_parameter(value) for value in found.values()])


class DataFacts(RoundProbe):
    """Facts of labels and evaluation sets."""

    collection = CollectionKeys.DATA_FACTS
    once = True

    def save(self, given: RoundEnd) -> None:
        """Save the facts."""
        found = self._library.data_facts(given.model, given.log)
        self._save_numbers({f"{DATA_FACTS}{name}": number for name, number in found.items()})


class Predictions(RoundProbe):
    """Predictions of the model for the validation data."""

    collection = CollectionKeys.PREDICTIONS
    names = (PREDICTIONS,)
    part = 1.0

    def need(self, given: RoundEnd) -> Any:
        """The validation data."""
        return self._library.validation_data()

    def save(self, given: RoundEnd) -> None:
        """Save the predictions."""
        self._writer.save_tensor_now(PREDICTIONS, self._library.predict(given.model, self.need(given)))


class Labels(Predictions):
    """Labels of the validation data."""

    collection = CollectionKeys.LABELS
    names = (LABELS,)

    def save(self, given: RoundEnd) -> None:
        """Save the labels."""
        labels = self._library.labels(self.need(given))
        if not labels.size:
            raise Unavailable(self._library.without_labels)
        self._writer.save_tensor_now(LABELS, labels)


class Trees(RoundProbe):
    """Trees of the round."""

    collection = CollectionKeys.TREES
    part = 1.0

    def need(self, given: RoundEnd) -> Any:
        """A model of trees."""
        return self._library.tree_model(given.model)

    def seconds(self, given: RoundEnd) -> float:
        """As many as last time, and at first as many as the library tells."""
        return super().seconds(given) or self._library.seconds_of_trees(self.need(given))

    def save(self, given: RoundEnd) -> None:
        """Save the columns of the trees."""
        columns = self._library.trees(self.need(given))
        self._writer.save_tensors([f"trees/{name}" for name in columns], list(columns.values()))


class FeatureImportance(RoundProbe):
    """Importance of each feature, as its part of the sum."""

    collection = CollectionKeys.FEATURE_IMPORTANCE
    part = 1.0

    def need(self, given: RoundEnd) -> Any:
        """A model of trees."""
        return self._library.tree_model(given.model)

    def save(self, given: RoundEnd) -> None:
        """Save the importance, of each kind."""
        trees = self.need(given)
        found: dict[str, float] = {}
        for kind in self._library.importance_types:
            scores = self._library.scores(trees, kind)
            total = sum(scores.values())
            found.update((f"feature_importance/{kind}/{name}", score / (total or 1)) for name, score in scores.items())
        self._save_numbers(found)


class AverageShap(RoundProbe):
    """Means of the SHAP values' sizes, by feature."""

    collection = CollectionKeys.AVERAGE_SHAP
    # They take most, and leave some of the time to all else.
    part = 0.5

    def need(self, given: RoundEnd) -> Any:
        """A model of trees, and data to explain."""
        return self._library.shap_data(given.model)

    def seconds(self, given: RoundEnd) -> float:
        """As many as the SHAP values will take."""
        return self._rounds.seconds_of_shap(given.model)

    def save(self, given: RoundEnd) -> None:
        """Save the means."""
        features = self._library.feature_names(self._library.one_model(given.model))
        names = [f"average_shap/{name}" for name in features]
        if self._rounds.asks(self.collection, names):
            # The last column is the bias, which says nothing of a feature.
            values = self._rounds.shap_values(given.model)[..., :-1]
            means = np.abs(values).reshape(-1, len(names)).mean(axis=0, dtype=np.float64)
            self._writer.save_tensors(names, list(means.reshape(-1, 1)))


class FullShap(AverageShap):
    """SHAP values of each row."""

    collection = CollectionKeys.FULL_SHAP
    names = (FULL_SHAP,)

    def save(self, given: RoundEnd) -> None:
        """Save the values."""
        self._writer.save_tensor_now(FULL_SHAP, self._rounds.shap_values(given.model))


PROBES: tuple[type[RoundProbe], ...] = (
    *(Metrics, Losses, Hyperparameters, DataFacts, Predictions, Labels),
    *(FeatureImportance, Trees, AverageShap, FullShap),
)


def _as_parameter(value: Any) -> npt.NDArray[Any]:
    """A hyperparameter as something that has a place in the files: numbers and text stay, the rest is told in text."""
    kind = type(value)
    for base, plainly in _PLAINLY.items():
        if issubclass(kind, base):
            return np.array([value if kind in (base, bool) else plainly(value)])
    if is_a(value, (list, tuple)):
        value = [*elements_of(value)]
    elif runs_program(kind, *_LOOKED_AT_BY):
        return np.array([f"<{kind.__name__}>"])
    if isinstance(value, Iterable) and not isinstance(value, Mapping):
        array = np.array([_part(part) for part in value])
        if array.dtype.kind in "fiubU" and array.size:
            return array
    return np.array([str(value)])


def _part(value: Any) -> Any:
    """A part of a list: itself, or the name of its class if to look at it runs something of the program's."""
    return f"<{type(value).__name__}>" if runs_program(type(value), *_LOOKED_AT_BY) else value
