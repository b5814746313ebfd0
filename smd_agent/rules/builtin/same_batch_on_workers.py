"""SameBatchOnWorkers: workers that train the same model on the same batches."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from smd_agent.rules.built_in import CollectionKeys, ModeKeys, Severity, StepView
from smd_agent.rules.inputs_of_models import first_inputs
from smd_agent.rules.parameters import Parameter, whole
from smd_agent.rules.workers import OfWorkers

_WEIGHTS = (CollectionKeys.WEIGHTS, CollectionKeys.BIASES)
# Of the steps at which workers were compared.
_MOST = 0.5


class _Seen(NamedTuple):
    """The inputs of a worker at a step.

    weights: names, and what tells their values apart.
    digests: of the inputs of each model, where they are not those of the step before.
    """

    weights: tuple[tuple[str, ...], bytes]
    digests: dict[str, int]


@dataclass
class _Count:
    """At how many steps a model of several workers was compared, and at how many it had the same inputs."""

    compared: int = 0
    same: int = 0
    last_compared: int = -1
    last_same: int = -1


class SameBatchOnWorkers(OfWorkers[_Seen]):
    """Workers that train the same model on the same batches.

    Parts of one model that lie on several workers need the same inputs, and so may models that are compared with each
    other. So only workers with the same weights are looked at. A batch that does not change from step to step is one
    for RepeatedBatch. It is for runs that save every worker (`include_workers` is `all`).
    """

    meaning = "at most saved steps, workers with the same weights are given the same inputs"
    patience = Parameter(whole, 5, "saved steps with the same inputs")
    brings = {"input_digests": {}, "weights,biases": {"reductions": "abs_mean"}}
    fewest_steps = 5
    severity = Severity.WARNING
    evidence = {
        "same": "at how many saved steps inputs were the same by then",
        "compared": "at how many saved steps workers with the same weights were compared by then",
        "workers": "how many workers had been seen by then",
    }
    cause = "Each worker reads all of the data in the same order, so that they all compute the same gradient"
    advice = "Give the loader a DistributedSampler, or each worker a part of the data of its own (its rank)"

    def start(self) -> None:
        """Begin with nothing seen."""
        super().start()
        self.fewest_steps = min(self.fewest_steps, self.patience)
        self._last: dict[tuple[str, str], int] = {}
        self._counts: dict[tuple[str, ModeKeys], _Count] = {}

    def value_of(self, step: StepView) -> _Seen:
        """Return digests and weights of a worker."""
        weights = step.column("abs_mean", step.names(*_WEIGHTS))
        digests = {}
        for name, digest in first_inputs(step).items():
            if self._last.get((step.worker, name)) != digest:
                digests[name] = digest
            self._last[step.worker, name] = digest
        return _Seen((weights.names, weights.values.tobytes()), digests)

    def compare(self, step: StepView, value: _Seen, others: dict[str, _Seen]) -> None:
        """Compare the inputs of a worker with those of its replicas."""
        replicas = [other for other in others.values() if other.weights == value.weights]
        for name, digest in value.digests.items():
            known = [other.digests[name] for other in replicas if name in other.digests]
            if not known:
                continue
            count = self._counts.setdefault((name, step.mode), _Count())
            count.compared += count.last_compared != step.step
            count.last_compared = step.step
            if digest in known and count.last_same != step.step:
                count.same += 1
                count.last_same = step.step
                if count.same >= self.patience and count.same > _MOST * count.compared:
                    numbers = {"same": count.same, "compared": count.compared, "workers": len(self._workers)}
                    self.found(step, name, numbers)
            if count.same <= _MOST * count.compared:
                self.withdraw(step, name)
