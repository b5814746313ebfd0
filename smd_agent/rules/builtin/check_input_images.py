"""CheckInputImages: images with a mean far from 0."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from smd_agent.rules.built_in import BuiltInRule, ModeKeys, Need, NotJudged, Severity, StepView
from smd_agent.rules.parameters import Parameter, names, number, whole

_IMAGES = 4
_MOST_COLOURS = 4


class CheckInputImages(BuiltInRule):
    """Images with a mean far from 0.

    Of inputs that are saved whole each colour has a mean, and the one farthest from 0 counts; of others the `mean` of
    all counts, with which a colour may still be far from 0 where it is not. Inputs of four dimensions are images if
    there are up to four colours. Models that scale images themselves, or begin with a normalisation, learn well.
    """

    meaning = "the mean of the images, or that of a colour, is farther from 0 than threshold_mean"
    threshold_mean = Parameter(number, 0.2, "largest distance of the mean from 0")
    threshold_samples = Parameter(whole, 500, "images to see first")
    regex: Parameter[tuple[str, ...] | None] = Parameter(
        names,
        ("_input_0$", "/inputs$"),
        "regular expressions: inputs in whose names one is found",
        documented=(".*hybridsequential0_input_0",),
    )
    channel = Parameter(whole, 1, "axis of the colours")
    brings = {"input_image": {"include_regex": ".*hybridsequential0_input_0", "save_interval": 500}}
    chosen_by = ("regex",)
    only_by_name = True
    severity = Severity.NOTE
    evidence = {
        "mean": "the mean that is farthest from 0",
        "images": "how many images were seen by then",
    }
    cause = "The images are not scaled to a mean of 0, which many models expect, pretrained ones above all"
    advice = "Subtract the mean of the data set and divide by its standard deviation, for each colour"

    def start(self) -> None:
        """Begin with nothing seen."""
        saved_by = "inputs to --save, with --reductions statistics or --raw"
        self.needs = (Need((), ("", "mean"), self.regex or (), saved_by),)
        # Images seen of each input, and the sums of the means of their colours.
        self._sums: dict[tuple[str, ModeKeys], tuple[int, npt.NDArray[np.float64]]] = {}
        self._images_seen = 0

    @property
    def has_judged(self) -> bool:
        """True if it has seen enough images."""
        return self._images_seen >= self.threshold_samples or bool(self.findings)

    def not_judged(self) -> NotJudged:
        """Say that there are too few images, if that is it."""
        if not self._images_seen:
            return super().not_judged()
        reason = f"it takes {self.threshold_samples} images to judge, and there are {self._images_seen}"
        return self.too_few(reason)

    def take(self, step: StepView) -> None:
        """Add the images of a step."""
        for name in self.needs[0].names(step):
            shape = step.shape(name)
            if shape is None or len(shape) != _IMAGES or not -_IMAGES <= self.channel < _IMAGES or not min(shape):
                continue
            if shape[self.channel] > _MOST_COLOURS:
                continue
            means = self._means(step, name)
            if means is None:
                continue
            count, sums = self._sums.get((name, step.mode), (0, np.zeros(1)))
            if len(means) != len(sums):
                # Some were saved whole, and others not.
                means, sums = (
                    (np.array([part.mean()]) for part in (means, sums)) if count else (means, np.zeros(len(means)))
                )
            count, sums = count + shape[0], sums + shape[0] * means
            self._sums[name, step.mode] = count, sums
            self._images_seen = max(self._images_seen, count)
            farthest = max((sums / count).tolist(), key=abs)
            if count >= self.threshold_samples and abs(farthest) > self.threshold_mean:
                self.found(step, name, {"mean": farthest, "images": count})

    def _means(self, step: StepView, name: str) -> npt.NDArray[np.float64] | None:
        value = step.value(name)
        if value is not None and value.dtype.kind in "fiu":
            colours = np.moveaxis(value, self.channel, 0)
            means: npt.NDArray[np.float64] = colours.reshape(len(colours), -1).mean(1, dtype=np.float64)
            return means
        mean = step.column("mean", (name,)).get(name)
        return None if mean is None else np.array([mean])
