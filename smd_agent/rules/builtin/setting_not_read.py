"""SettingNotRead: a parameter by a name that XGBoost does not know, so that its default holds."""

from __future__ import annotations

from smd_agent.framework.training_facts import DATA_FACTS
from smd_agent.rules.built_in import Severity, StepView
from smd_agent.rules.usage import Numbers, RuleOfData, numbers_of

_ROUNDS = "num_boost_round"
_STOPPING = "early_stopping_rounds"


class SettingNotRead(RuleOfData):
    """A parameter by a name that XGBoost does not know, so that its default holds.

    It is an argument of ``train`` or ``cv`` among the parameters, or a name that differs from a known one in a letter
    or in its signs. One that is told in the right way too is none, nor is a name that is like no other: it may be the
    program's own.
    """

    meaning = "XGBoost knows no parameter of a name, and the one that was meant is not given, so that its default holds"
    kind = "unread"
    facts = ("default_holds",)
    severity = Severity.WARNING
    evidence = {"asked": "how many rounds there are to be"}
    short = "nothing reads the parameter: {}"

    def look_at(self, step: StepView, of: str, numbers: Numbers) -> None:
        """Look at one parameter that nothing reads."""
        _, name, meant = of.split("/")
        is_argument = meant in (_ROUNDS, _STOPPING)
        rounds = numbers_of(step, "rounds", self.collection, self.prefix).get("rounds/train", {})
        self.found(
            step,
            f"{DATA_FACTS}{of}/default_holds",
            self.evidence_of(rounds) if meant == _ROUNDS else {},
            # A last training may do without, after another one has told how many rounds there are to be.
            severity=Severity.NOTE if meant == _STOPPING else None,
            cause=f"XGBoost reads no parameter {name}. {_argument(meant) if is_argument else _parameter(meant)}",
            advice=_give(meant) if is_argument else f"Write it {meant}",
        )

    def take(self, step: StepView) -> None:
        """Look at the parameters of a training, of which there may be none that nothing reads."""
        super().take(step)
        self._has_any = self._has_any or bool(step.names(self.collection))


def _argument(name: str) -> str:
    return f"It is an argument of train and cv, {name}, which is not given: its default holds"


def _parameter(name: str) -> str:
    return f"The name that it knows, {name}, is not given: its default holds"


def _give(name: str) -> str:
    return f"Give {name}=... to xgboost.train or xgboost.cv itself, beside the parameters"
