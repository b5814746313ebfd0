"""LoadedThenInitialized: a model that is loaded from a file and initialized again before it is used."""

from __future__ import annotations

from smd_agent.framework.training_facts import USAGE
from smd_agent.rules.built_in import TRAINING, Severity, StepView
from smd_agent.rules.parameters import Parameter, whole
from smd_agent.rules.usage import Numbers, RuleOfUsage


class LoadedThenInitialized(RuleOfUsage):
    """A model that is loaded from a file and initialized again before it is used.

    All of its parameters that were loaded have been initialized with `force_reinit=True` afterwards, no block was
    called in between, and the program has set no others since. A head that is initialized again while the rest keeps
    what was loaded is none.
    """

    meaning = "all that was loaded into a model that is trained was initialized again, before any block was called"
    fewest = Parameter(whole, 2, "parameters that were loaded, at least")
    modes = TRAINING
    kind = "model"
    facts = ("lost",)
    severity = Severity.WARNING
    evidence = {
        "loaded": "how many parameters of the model were loaded",
        "lost": "how many of them were initialized again",
    }
    cause = (
        "initialize(force_reinit=True) after load_parameters gives all of these parameters new random values: the"
        " training begins with nothing of what was loaded"
    )
    advice = (
        "Call initialize before load_parameters, or on the new layers alone, such as net.output.initialize(); without"
        " force_reinit, parameters that have values keep them"
    )
    short = "loaded, then initialized: {}"

    def look_at(self, step: StepView, of: str, numbers: Numbers) -> None:
        """Look at one model."""
        if numbers["lost"] >= max(self.fewest, numbers.get("loaded", 0.0)):
            self.found(step, f"{USAGE}{of}/lost", self.evidence_of(numbers))
