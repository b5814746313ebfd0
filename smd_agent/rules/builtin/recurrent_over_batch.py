"""RecurrentOverBatch: a recurrent layer, or attention, that takes samples of a batch for steps of a sequence."""

from __future__ import annotations

from smd_agent.rules.built_in import Severity, StepView
from smd_agent.rules.usage import Fault, Numbers, UsageInARow, numbers_of

_TARGET = "target"


class RecurrentOverBatch(UsageInARow):
    """A recurrent layer, or attention, that takes the samples of a batch for the steps of a sequence.

    It is told by the targets, of which there is one for each element of the layer's first axis, as for each element of
    the model's input, and none for each element of the second one. Where both axes have the same size nothing is said,
    nor where the second one has size 1, as in sequences that come alone.
    Layers are ``RNN``, ``LSTM``, ``GRU`` and ``MultiheadAttention`` of ``torch.nn`` with ``batch_first=False``, and
    those of ``gluon.rnn`` with the layout ``TNC``.
    """

    meaning = "a layer without batch_first=True gets (batch, time, feature), so that samples are mixed with each other"
    kind = "layer"
    facts = ("axis_0",)
    severity = Severity.WARNING
    evidence = {
        "axis_0": "size of the first axis of what the layer is given, over which it runs",
        "axis_1": "size of the second axis, which it takes for the batch",
        "batch": "how many samples the model is given",
        "targets": "how many targets the loss is given",
    }
    cause = "The layer takes its input for (time, batch, feature), and the first axis is that of the batch"
    advice = (
        "Give the layer batch_first=True (layout='NTC' in Gluon), or what it is given the shape (time, batch, feature)"
        " by transpose(0, 1)"
    )

    def take(self, step: StepView) -> None:
        """Look at each layer of a step, and at the targets of all its losses."""
        targets = numbers_of(step, _TARGET)
        self._targets = [numbers for numbers in targets.values() if "elements" in numbers]
        super().take(step)

    def fault(self, of: str, numbers: Numbers) -> Fault | None:
        """Return what is wrong with one layer."""
        samples, others = numbers["axis_0"], numbers.get("axis_1", 0.0)
        is_batch = samples == numbers.get("batch") and samples > 1 and others > 1 and samples != others
        for_each = bool(self._targets) and all(_has_one_for_each(one, samples, others) for one in self._targets)
        return Fault(evidence={"targets": self._targets[0]["axis_0"]}) if is_batch and for_each else None


def _has_one_for_each(target: Numbers, samples: float, others: float) -> bool:
    """Tell whether there is a target, or a row of them, for each sample and none for each of the others."""
    is_row = target["elements"] == target["axis_0"] * target["axis_1"]
    return target["axis_0"] == samples and target["axis_1"] != others and is_row
