"""FlippedApart: images and their targets that an augmentation flips independently of each other."""

from __future__ import annotations

from collections import Counter

from smd_agent.framework.training_facts import USAGE
from smd_agent.rules.built_in import TRAINING, Severity, StepView
from smd_agent.rules.parameters import Parameter, number, whole
from smd_agent.rules.usage import Numbers, RuleOfUsage

_COUNTED = ("images", "fitting", "flipped", "by_chance")


class FlippedApart(RuleOfUsage):
    """Images and their targets that an augmentation flips independently of each other.

    A target with a number for each pixel is compared with its image as it is and flipped: see
    ``framework.flipped_targets``. Where many fit as they are, and many others flipped alone, far more than would by
    chance, the image was flipped and its target was not, or both were with draws of their own.
    """

    meaning = "of many images the target, such as a mask, fits only when it is flipped"
    images = Parameter(whole, 8, "images whose target fits only when it is flipped")
    share = Parameter(number, 0.15, "smallest share of them among those that fit in one way alone")
    times = Parameter(number, 2.5, "how many times as many as flipped targets of other images would")
    kind = "target"
    facts = ("flipped",)
    modes = TRAINING
    fewest_steps = 3
    severity = Severity.PROBLEM
    evidence = {
        "images": "how many images were looked at by then",
        "flipped": "of how many the target fits only flipped",
        "fitting": "of how many it fits only as it is",
        "by_chance": "of how many the flipped target of another image fits",
    }
    cause = (
        "Images and their targets are flipped or turned independently of each other: an augmentation changes the image"
        " alone, or draws for each anew"
    )
    advice = "Flip the image and its target in one place with one draw, as transforms that take both do"
    short = "images and targets are flipped apart: {}"

    def start(self) -> None:
        """Begin with nothing seen."""
        super().start()
        self._counts: dict[str, Counter[str]] = {}

    def look_at(self, step: StepView, of: str, numbers: Numbers) -> None:
        """Add up the images of one loss."""
        counts = self._counts.setdefault(of, Counter())
        for name in _COUNTED:
            counts[name] += int(numbers.get(name, 0))
        flipped, fitting, by_chance = counts["flipped"], counts["fitting"], counts["by_chance"]
        is_so = flipped >= self.images and flipped >= self.images + self.times * by_chance
        if is_so and fitting >= self.images // 2 and flipped >= self.share * (flipped + fitting):
            self.found(step, f"{USAGE}{of}/flipped", {name: counts[name] for name in _COUNTED})
