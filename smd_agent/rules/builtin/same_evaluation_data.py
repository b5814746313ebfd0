"""SameEvaluationData: evaluation sets of a boosted training that are the same rows."""

from __future__ import annotations

import itertools
import re
from dataclasses import dataclass, field

from smd_agent.rules.built_in import BuiltInRule, CollectionKeys, ModeKeys, Place, Severity, StepView
from smd_agent.rules.parameters import Parameter, whole

# As boosted trainings name their metrics.
_METRIC = re.compile("([^-/]+)-(.+)")


@dataclass
class _Pair:
    """The facts of two evaluation sets.

    Attributes:
        first: the first round.
        values: those of all metrics, of the rounds at which they were the same.
        rounds: how many these are.
        differ: whether any metric has ever been different.
    """

    first: Place
    values: set[tuple[float, ...]] = field(default_factory=set)
    rounds: int = 0
    differ: bool = False


class SameEvaluationData(BuiltInRule):
    """Evaluation sets of a boosted training that are the same rows.

    A metric such as an error may be the same of different rows by chance, or stand still. So all metrics of both sets
    have to be the same to the last bit at all saved rounds, with several values.
    """

    meaning = "all metrics of two evaluation sets are the same to the last bit at all saved rounds"
    values = Parameter(whole, 3, "different values that the metrics must have had")
    brings = {"metrics": {}}
    # Boosted trainings have it.
    only_with = CollectionKeys.FEATURE_IMPORTANCE
    fewest_steps = 3
    severity = Severity.WARNING
    evidence = {
        "rounds": "at how many saved rounds they were the same by then",
        "metrics": "how many metrics they have",
    }
    cause = "Both evaluation sets were made of the same rows, so that one of them says nothing"
    advice = "Give evals or eval_set rows that the model is not trained on; early stopping goes by the last set"

    def start(self) -> None:
        """Begin with nothing seen."""
        self._pairs: dict[tuple[str, str, ModeKeys], _Pair] = {}

    def take(self, step: StepView) -> None:
        """Compare the metrics of a round."""
        sets: dict[str, dict[str, float]] = {}
        for name, value in step.numbers(step.names(CollectionKeys.METRICS)).items():
            metric = _METRIC.fullmatch(name)
            if metric is not None:
                sets.setdefault(metric[1], {})[metric[2]] = value
        for first, second in itertools.combinations(sorted(sets, key=_order), 2):
            pair = self._pairs.setdefault((first, second, step.mode), _Pair(step.place))
            tensor = f"{second}-{next(iter(sets[second]))}"
            if pair.differ or sets[first] != sets[second]:
                pair.differ = True
                self.withdraw(step, tensor)
                continue
            pair.rounds += 1
            pair.values.add(tuple(sets[first].values()))
            if len(pair.values) >= self.values:
                cause = f"The evaluation sets {first} and {second} were made of the same rows, so one says nothing"
                evidence = {"rounds": pair.rounds, "metrics": len(sets[first])}
                self.found(pair.first, tensor, evidence, cause=cause, until=step, steps=pair.rounds)

    @property
    def is_concerned(self) -> bool:
        """True if there were two sets."""
        return bool(self._pairs)


def _order(name: str) -> tuple[bool, str]:
    """The training set comes first: the other one is what has to be mended."""
    return "train" not in name.lower(), name
