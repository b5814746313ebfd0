"""ValueBakedIn: a plain number of Python that a traced function keeps, although it has another value by now."""

from __future__ import annotations

from smd_agent.framework.training_facts import USAGE
from smd_agent.rules.built_in import TRAINING, Severity, StepView
from smd_agent.rules.usage import Numbers, RuleOfUsage

# Values that a name has had since the function was traced: one may be another use of the name.
_SCHEDULED = 2


class ValueBakedIn(RuleOfUsage):
    """A plain number of Python that a traced function keeps, although it has another value by now.

    A ``tf.function`` runs its Python when it is traced, and not again in each step. A number that it reads from a
    global, from a function around it or from ``self`` becomes a constant then, and what is assigned later is never
    read: a weight that is to grow, or a learning rate that is to fall, stays as it was.

    It is found where the function goes on to run as it was traced and the name has another value. Where it has had only
    one other value, it is a note.
    """

    meaning = "a tf.function still computes with a number as it was traced with, which has been assigned anew since"
    kind = "python_number"
    facts = ("now",)
    modes = TRAINING
    fewest_steps = 2
    severity = Severity.NOTE
    evidence = {
        "traced": "the value that the function was traced with, and computes with in each step",
        "now": "the value that the name has in this step",
    }
    cause = (
        "The tf.function was traced with the number's value and keeps it as a constant: what is assigned to the name"
        " later has no effect on the function"
    )
    advice = "Make it a tf.Variable(..., trainable=False) and assign() to it, or give it to the function as a tensor"
    short = "baked in when traced: {}"

    def start(self) -> None:
        """Begin with nothing seen."""
        super().start()
        self._others: dict[str, set[float]] = {}

    def look_at(self, step: StepView, of: str, numbers: Numbers) -> None:
        """Look at one number."""
        traced, now = numbers.get("traced"), numbers["now"]
        # Not a number is not equal to itself.
        if traced is None or traced == now or now != now:
            return
        others = self._others.setdefault(of, set())
        others.add(now)
        found = self.found(step, f"{USAGE}{of}/now", self.evidence_of(numbers))
        if len(others) >= _SCHEDULED:
            found.severity = Severity.WARNING
