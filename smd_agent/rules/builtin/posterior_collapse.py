"""PosteriorCollapse: a variational autoencoder whose latent variables tell nothing of its inputs."""

from __future__ import annotations

from smd_agent.framework.training_facts import USAGE
from smd_agent.rules.built_in import TRAINING, Place, Severity, StepView
from smd_agent.rules.parameters import Parameter, number, whole
from smd_agent.rules.usage import Numbers, RuleOfUsage


class PosteriorCollapse(RuleOfUsage):
    """A variational autoencoder whose latent variables tell nothing of its inputs.

    Their Kullback-Leibler divergence from the prior, which the loss has as a term, bounds what they can tell of a
    sample, in nats. It is that of all latent variables of a step together. At the end of the training it has to be near
    0; that it is so at its beginning, or while the term is weighted by little, says nothing.
    """

    meaning = "at the end of the training the divergence of the latent variables from the prior is near 0"
    smallest = Parameter(number, 0.1, "smallest divergence for each sample, in nats")
    patience = Parameter(whole, 3, "saved steps in a row at the end")
    steps = Parameter(whole, 100, "steps that the training has at least")
    modes = TRAINING
    kind = "latent"
    facts = ("kl",)
    fewest_steps = 3
    severity = Severity.WARNING
    evidence = {
        "kl": "the divergence for each sample at the first such step, in nats",
        "size": "how many latent variables a sample has",
    }
    cause = (
        "The divergence outweighs the reconstruction: as where that is averaged over all elements, by reduction='mean',"
        " and the divergence is summed over the latent variables, or weighted by too much"
    )
    advice = (
        "Sum both over all that a sample has and average over the samples, as by reduction='sum' and a division by the"
        " batch size; or give the divergence a smaller weight, or let it grow from 0"
    )
    short = "latent variables tell nothing"

    def start(self) -> None:
        """Begin with nothing seen."""
        super().start()
        self._seen: list[tuple[Place, str, Numbers]] = []

    def look_at(self, step: StepView, of: str, numbers: Numbers) -> None:
        """Look at one of a step's terms."""
        if self._seen and self._seen[-1][0] == step.place:
            place, name, sums = self._seen[-1]
            self._seen[-1] = place, name, {one: value + numbers[one] for one, value in sums.items()}
        else:
            self._seen.append((step.place, f"{USAGE}{of}/kl", self.evidence_of(numbers)))

    def end(self) -> None:
        """Judge the whole course."""
        if not self._seen:
            return
        near = len(self._seen)
        while near and self._seen[near - 1][2]["kl"] < self.smallest:
            near -= 1
        found, last = self._seen[near:], self._seen[-1][0]
        self.withdraw(last, self._seen[0][1])
        if len(found) >= self.patience and last.step + 1 >= self.steps:
            place, name, numbers = found[0]
            self.found(place, name, numbers, until=last, steps=len(found))
