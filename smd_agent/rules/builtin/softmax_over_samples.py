"""SoftmaxOverSamples: a softmax over the samples of a batch in the place of the classes."""

from __future__ import annotations

from smd_agent.rules.usage import Expected, Fault, Numbers, UsageInARow, expected_by

# As for a softmax over the classes, in float16 too.
_NOISE = 1e-2
# By how much a row misses what it would be if the softmax were over its classes.
_MISSED = 0.1


class SoftmaxOverSamples(UsageInARow):
    """A softmax over the samples of a batch in the place of the classes.

    What the model says of a sample then depends on which others are in its batch.
    """

    meaning = "what a loss of classes is given sums to 1 over the samples of the batch, and not over the classes"
    kind = "loss"
    facts = ("sample_sum_error",)
    evidence = {
        "sample_sum_error": "by how much the sum over all samples differs from 1 at most",
        "row_sum_error": "by how much the sum over the classes does",
        "log_sum_error": "of a loss of logarithms: by how much the logarithm of that sum differs from 0 at most",
        "classes": "how many classes there are",
    }
    cause = "The softmax before the loss is taken over the samples of the batch, and not over the classes"
    advice = "Give softmax or log_softmax the axis of the classes: in PyTorch dim=1 or -1, in Keras and Gluon axis=-1"
    short = "softmax over the samples"

    def fault(self, of: str, numbers: Numbers) -> Fault | None:
        """Return what is wrong if the samples sum to 1, and the classes do not."""
        is_of_logarithms = expected_by(of, numbers) is Expected.LOGARITHMS
        missed = numbers.get("log_sum_error" if is_of_logarithms else "row_sum_error", 0.0)
        # Where logarithms are at hand, probabilities are told by DoubleActivation.
        is_possible = numbers["input_max"] <= _NOISE if is_of_logarithms else numbers["input_min"] >= 0
        # A single sample is 1 throughout, and so may be what no softmax has returned.
        is_one = numbers["input_min"] == numbers["input_max"]
        is_found = is_possible and not is_one and missed > _MISSED and numbers["sample_sum_error"] <= _NOISE
        return Fault() if is_found else None
