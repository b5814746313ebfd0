"""AccumulationWeights: gradients that are accumulated from means over different numbers of targets."""

from __future__ import annotations

from smd_agent.framework.training_facts import USAGE
from smd_agent.rules.built_in import Severity, StepView
from smd_agent.rules.parameters import Parameter, number
from smd_agent.rules.usage import Numbers, UsageInARow, numbers_of

# Of factors that are the same but for rounding.
_NOISE = 1e-3


_TWICE = (
    "Each loss is divided by the number of backward passes of an update twice, so that the update is that of a loss"
    " that is smaller by that number"
)
_ONCE = "Divide once: accelerator.backward of accelerate and Trainer of transformers divide the loss themselves"


class AccumulationWeights(UsageInARow):
    """Gradients that are accumulated from means over different numbers of targets.

    Each backward pass of an update starts from the mean over the targets that count of its own batch, and all of these
    means have the same factor. Where batches have different numbers of such targets, those of a batch with few weigh
    more than those of a batch with many, and the update is another than that of one large batch.

    It also finds means that are divided by the number of passes twice, which is a warning: of any loss that is a mean,
    where the backward passes start from it and nothing else.
    """

    meaning = "an update adds up means over different numbers of targets, each with the same factor"
    ratio = Parameter(number, 1.05, "largest number of targets of a batch by the smallest one, at least")
    much = Parameter(number, 2.0, "the same, for a warning")
    kind = "loss"
    facts = ("factor",)
    severity = Severity.NOTE
    evidence = {
        "fewest": "how many targets count in the batch that has the fewest of them",
        "most": "how many in the one that has the most",
        "passes": "backward passes before the update",
        "factor": "what each mean is multiplied by",
    }
    cause = (
        "Each backward pass of an update gives the mean over the targets of its own batch, and these are of different"
        " numbers: a target of a batch with few of them weighs more than one of a batch with many"
    )
    advice = (
        "Sum up the losses of all targets, by reduction='sum', and divide by how many count in all batches of the"
        " update; Trainer of transformers does so from 4.46 on, if the model's loss takes num_items_in_batch"
    )
    short = "means over different numbers of targets: {}"

    def take(self, step: StepView) -> None:
        """Look at the losses of a step, by their functions."""
        passes = max((numbers.get("passes", 0.0) for numbers in numbers_of(step, "optimizer").values()), default=0.0)
        by_function: dict[str, list[Numbers]] = {}
        for of, numbers in numbers_of(step, self.kind).items():
            if "factor" in numbers:
                by_function.setdefault(of.rpartition("_")[0], []).append(numbers)
        for function, calls in by_function.items():
            self._has_any = True
            self._compare(step, function, calls, passes)

    def _compare(self, step: StepView, function: str, calls: list[Numbers], passes: float) -> None:
        """Look at the calls of one function, of which the first ones of a step are known."""
        counts = [numbers.get("labels", 0.0) for numbers in calls]
        fewest, most = min(counts), max(counts)
        is_accumulated = 1 < len(calls) <= passes and _are_alike(calls, "factor") and _are_alike(calls, "classes")
        # Of batches that are merely smaller, as the last one of an epoch is, no label is ignored.
        leaves_out = any(numbers.get("ignored") for numbers in calls)
        is_alone = all(numbers.get("alone", 1.0) for numbers in calls)
        is_divided_twice = is_accumulated and is_alone and abs(calls[0]["factor"] * passes**2 - 1) <= _NOISE
        if self.row(f"{function} twice", is_divided_twice) >= self.patience:
            evidence = {"factor": calls[0]["factor"], "passes": passes}
            tensor = f"{USAGE}{function}_0/factor"
            self.found(step, tensor, evidence, severity=Severity.WARNING, cause=_TWICE, advice=_ONCE)
            return
        differs = is_accumulated and leaves_out and most >= self.ratio * fewest > 0
        is_much = self.row(f"{function} much", differs and most >= self.much * fewest) >= self.patience
        if self.row(function, differs) >= self.patience:
            evidence = {"fewest": fewest, "most": most, "passes": passes}
            severity = Severity.WARNING if is_much else None
            self.found(step, f"{USAGE}{function}_0/factor", evidence, severity=severity)


def _are_alike(calls: list[Numbers], fact: str) -> bool:
    numbers = [call.get(fact, 0.0) for call in calls]
    return max(numbers) - min(numbers) <= _NOISE * max(map(abs, numbers))
