"""Base of all rules of ours: steps come one by one, findings are kept by tensor.

A rule is a class in a file of its own in ``smd_agent/rules/builtin/``, which is all that it takes to add one. It says
what it is, what it needs and what its numbers mean, and has a method `BuiltInRule.take` that looks at one step. What
a rule is written with is imported from here, but for `smd_agent.rules.parameters`.

The same object looks at the steps of a finished run and at those of a running one, as they come. It sees those of one
worker only, unless ``split`` says otherwise, and keeps no more than a few numbers for each tensor.
"""

from __future__ import annotations

import enum
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from smd_agent.core.collection_keys import CollectionKeys
from smd_agent.core.modes import ModeKeys
from smd_agent.rules.finding import Finding, Lack, NotJudged, Severity, without_doubles
from smd_agent.rules.parameters import Parameter
from smd_agent.rules.rule import Rule
from smd_agent.rules.step_view import Names, Place, RunView, StepView

if TYPE_CHECKING:
    from typing_extensions import Self

    from smd_agent.analysis.trial import Trial
    from smd_agent.rules.series_view import SeriesView

__all__ = ["TRAINING", "BuiltInRule", "CollectionKeys", "ModeKeys", "Names", "Need", "NotJudged", "Place", "Seen"]
__all__ += ["Severity", "Split", "StepView"]

TRAINING = (ModeKeys.TRAIN, ModeKeys.GLOBAL)
"""Modes in which models are trained."""


class Split(enum.Enum):
    """The unit that a rule must see together: one tensor, all tensors of a worker, or all workers.

    Of TENSOR nothing that is found on a tensor depends on others, its evidence included.
    """

    TENSOR = "tensor"
    WORKER = "worker"
    RUN = "run"


class Seen(NamedTuple):
    """The state of a rule: what was found, the worst first, which needs were met, and at how many steps."""

    findings: list[Finding]
    met: set[Need]
    steps: int


@dataclass(frozen=True)
class Need:
    """A need of a rule, without which it looks at no step: a tensor of one of these collections, or of such a name.

    Attributes:
        collections: their names.
        statistics: of which any must be known of it; with none, the whole tensor.
        patterns: regular expressions that are found in its name; with neither collections nor patterns, any tensor.
        saved_by: what saves it, if it is not the collection.
    """

    collections: tuple[str, ...] = ()
    statistics: tuple[str, ...] = ("",)
    patterns: tuple[str, ...] = ()
    saved_by: str = ""

    @classmethod
    def of_brought(cls, names: str, saved: Mapping[str, Any]) -> Need:
        """Return the need of what a rule brings: collections with commas, and how they are saved."""
        return cls(tuple(names.split(",")), (saved.get("reductions", "").partition(",")[0],))

    def names(self, step: StepView) -> Names:
        """Return the sorted names of the tensors of a step that are meant, whatever is known of them."""
        return step.names(*self.collections, patterns=self.patterns)

    def is_met_by(self, step: StepView) -> bool:
        """Tell whether a step has it."""
        names = self.names(step)
        return bool(names) and any(step.can_know(statistic, names) for statistic in self.statistics)

    @property
    def words(self) -> str:
        """The name of what is lacking, as the rest of a sentence."""
        named = [f" of {' or '.join(self.collections)}"] * bool(self.collections)
        named += [f" named {' or '.join(self.patterns)}"] * bool(self.patterns)
        of = "" if "" in self.statistics else f" with {' or '.join(self.statistics)}"
        return f"no tensor{' or'.join(named)}{of} was saved"

    @property
    def option(self) -> str:
        """The option that saves it."""
        return self._option(self.collections[0] if self.collections else CollectionKeys.ALL)

    @property
    def lack(self) -> Lack:
        """The lack of a run that has it at no step."""
        names = self.collections or tuple(
            name for name in [self.saved_by.partition(" ")[0]] if name != CollectionKeys.ALL
        )
        in_any_form = bool(self.collections) and not self.patterns and not self.saved_by and "" in self.statistics
        return Lack(self.words, {name: self._option(name) for name in names or [""]}, in_any_form)

    def _option(self, collection: str) -> str:
        if self.saved_by:
            return f"add {self.saved_by}"
        if "" in self.statistics or not self.collections:
            return f"add {collection or CollectionKeys.ALL} to --save"
        return f"add {collection} to --save, with --reductions statistics or --raw"


class BuiltInRule(Rule):
    """A rule of ours. Made for a trial, it is one as old programs have them; without, it is what commands judge by.

    Class attributes:
        meaning: when it finds something, one sentence.
        parameters: those that stand in the class, and in the classes that it is made on.
        brings: what is saved for it where a hook file names it, unless its parameters name something else: collections
            by name, several with commas, with their keys of a hook file. Only ``reductions`` that stand there are saved
            of them; with none, whole tensors. It and the next two are read from the rule's file, so they are literals.
        brings_always: what is saved for it whatever its parameters name.
        chosen_by: parameters that name collections, or else patterns of tensors, to save in the place of ``brings``.
        needs: what a step must hold to be looked at; other steps are passed over. Where the class does not say it, it
            is all that ``brings`` has there, with the first of the reductions.
        only_with: a collection that the runs have which it is for; empty where any may be.
        modes: of the steps that are looked at; with none, all.
        fewest_steps: how many such steps it takes to judge.
        split: what it must see together.
        one_step_tells: whether one step alone can tell, so that the last is looked at where there is no time for all.
        only_by_name: whether `check` applies it only where it is asked for by its name.
        severity, cause, advice: of its findings, unless `found` is told otherwise.
        evidence: the numbers of its findings, with what each means.
        short: its findings in a few words, unless `found` is told otherwise, see `Finding.short`; ``{step}`` stands for
            the first step. Without, they are called as the rule is.

    Args:
        base_trial: the trial, where it is invoked step by step; the documented defaults then hold.
        action_str: see `Rule`.
        other_trials: see `Rule`.
        given: parameters by name.

    Raises:
        SMDebugValueError: a parameter has a wrong value.
        TypeError: there is no such parameter.
    """

    meaning: ClassVar[str]
    parameters: ClassVar[tuple[Parameter[Any], ...]] = ()
    brings: ClassVar[Mapping[str, Mapping[str, Any]]] = {}
    brings_always: ClassVar[Mapping[str, Mapping[str, Any]]] = {}
    chosen_by: ClassVar[tuple[str, ...]] = ()
    needs: tuple[Need, ...] = ()
    only_with: ClassVar[str] = ""
    modes: ClassVar[tuple[ModeKeys, ...]] = ()
    fewest_steps: int = 1
    split: Split = Split.WORKER
    one_step_tells: ClassVar[bool] = False
    only_by_name: ClassVar[bool] = False
    severity: ClassVar[Severity] = Severity.PROBLEM
    evidence: ClassVar[dict[str, str]] = {}
    cause: ClassVar[str] = ""
    advice: ClassVar[str] = ""
    short: ClassVar[str] = ""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        found: dict[str, Parameter[Any]] = {}
        for base in reversed(cls.__mro__):
            for name, value in vars(base).items():
                if isinstance(value, Parameter):
                    # One that stands there again has its place there.
                    found.pop(name, None)
                    found[name] = value
        cls.parameters = tuple(found.values())
        if "brings" in vars(cls) and "needs" not in vars(cls):
            cls.needs = tuple(Need.of_brought(names, saved) for names, saved in cls.brings.items())

    def __init__(
        self,
        base_trial: Trial | None = None,
        action_str: str | None = "",
        other_trials: Iterable[Trial] | None = None,
        **given: Any,
    ) -> None:
        super().__init__(base_trial, action_str, other_trials)  # type: ignore[arg-type]
        self._values: dict[str, Any] = {}
        for parameter in self.parameters:
            default = parameter.default
            if base_trial is not None and parameter.documented is not None:
                default = parameter.documented
            value = parameter.value_of(given.pop(parameter.name, default))
            self._values[parameter.name] = value
            setattr(self, parameter.name, value)
        if given:
            raise TypeError(_has_no_parameter(self.rule_name, given, [one.name for one in self.parameters]))
        self.times_found = 0
        self.steps_of_series = self._steps_seen = 0
        self._met: set[Need] = set()
        self._in_a_row: dict[Any, int] = {}
        self._findings: dict[tuple[str | None, ModeKeys, str], Finding] = {}
        self._parts: dict[str, BuiltInRule] = {}
        self._run = None if base_trial is None else RunView(base_trial)
        self.start()

    @classmethod
    def as_documented(cls, given: Mapping[str, Any], other_trials: Iterable[Trial] | None = None) -> Self:
        """Return one made without a trial, with the documented defaults where nothing is given.

        Raises:
            SMDebugValueError: a parameter has a wrong value.
            TypeError: there is no such parameter.
        """
        known = [one.name for one in cls.parameters]
        unknown = [name for name in given if name not in known]
        if unknown:
            raise TypeError(_has_no_parameter(cls.__name__, unknown, known))
        documented = {one.name: one.documented for one in cls.parameters if one.documented is not None}
        return cls(**{"other_trials": other_trials, **documented, **given})

    def start(self) -> None:
        """Make what the rule remembers from step to step; its parameters are set by now."""

    def take_series(self, series: SeriesView) -> None:
        """Look at numbers of all training steps, before any step; once more where more of them have come since.

        A rule that judges by them sets ``steps_of_series``. What it has said of them before still stands.
        """

    def take(self, step: StepView) -> None:
        """Look at a step that has what the rule needs; steps come in order."""
        raise NotImplementedError

    def pass_over(self, step: StepView) -> None:
        """A step lacks something that the rule needs: what is saved only when it changes holds at it, too."""

    def end(self) -> None:
        """The run has ended, or no step will come for now: add what can be said only then."""

    def offer(self, step: StepView) -> bool:
        """Take a step, if it is one of those that the rule looks at; tell whether it is."""
        if self.modes and step.mode not in self.modes:
            return False
        met = [need for need in self.needs if need.is_met_by(step)]
        self._met.update(met)
        if len(met) == len(self.needs):
            self._steps_seen += 1
            self.take(step)
            return True
        self.pass_over(step)
        return False

    def found(
        self,
        where: StepView | Place,
        tensor: str | None = None,
        evidence: Mapping[str, float] | None = None,
        *,
        severity: Severity | None = None,
        cause: str = "",
        advice: str = "",
        short: str = "",
        until: StepView | Place | None = None,
        steps: int = 1,
    ) -> Finding:
        """Note that there is something about a tensor; what was found on it already reaches up to this step.

        Args:
            where: the step; with ``until`` the first one.
            tensor: its name; None for the training as a whole.
            evidence: numbers by name, each of which ``evidence`` of the class explains; those of the first step stay.
            severity, cause, advice, short: in the place of the rule's own.
            until, steps: the last step at which it holds, and at how many it does, of what holds over a range.
        """
        numbers = dict(evidence or {})
        assert numbers.keys() <= self.evidence.keys(), f"{self.rule_name} explains no {numbers.keys()}"
        self.times_found += 1
        known = self.finding_of(where, tensor)
        if known is not None:
            known.last_step = (until or where).step
            known.steps = known.steps + 1 if until is None else steps
            return known
        place = where.place if isinstance(where, StepView) else where
        found = Finding(
            self.rule_name,
            severity or self.severity,
            tensor,
            place.mode,
            "" if self.split is Split.RUN else place.worker,
            place.step,
            (until or place).step,
            numbers,
            cause or self.cause,
            advice or self.advice,
            steps,
            place.global_step,
            short=(short or self.short).replace("{step}", _spoken_step(place)),
        )
        return self._findings.setdefault(self._key(where, tensor), found)

    def finding_of(self, where: StepView | Place, tensor: str | None = None) -> Finding | None:
        """Return what was found on a tensor in the mode of a step, if anything was."""
        return self._findings.get(self._key(where, tensor))

    def withdraw(self, where: StepView | Place, tensor: str | None = None) -> None:
        """Forget what was found on a tensor: it has turned out to be nothing."""
        self._findings.pop(self._key(where, tensor), None)

    def _key(self, where: StepView | Place, tensor: str | None) -> tuple[str | None, ModeKeys, str]:
        return tensor, where.mode, "" if self.split is Split.RUN else where.worker

    def row(self, of: object, goes_on: bool) -> int:
        """Count a step at which something holds; of how many in a row, 0 where it does not hold."""
        self._in_a_row[of] = self._in_a_row.get(of, 0) + 1 if goes_on else 0
        return self._in_a_row[of]

    @property
    def told(self) -> dict[str, Any]:
        """The parameters by name."""
        return dict(self._values)

    @property
    def seen_so_far(self) -> Seen:
        """The state of the rule; may be set on a fresh rule, to that of others like it."""
        return Seen(self.findings, set(self._met), self._steps_seen)

    @seen_so_far.setter
    def seen_so_far(self, seen: Seen) -> None:
        findings, self._met, self._steps_seen = seen
        self._findings = {(one.tensor, one.mode, one.worker): one for one in findings}

    @property
    def findings(self) -> list[Finding]:
        """The findings so far, the worst first."""
        return sorted(without_doubles(self._findings.values()), key=lambda one: one.order)

    @property
    def is_concerned(self) -> bool:
        """True if the steps so far have what the rule is about, beside what it needs; any step has by default."""
        return True

    @property
    def steps_that_count(self) -> int:
        """Number of steps that it could judge by; by default those that have what it needs."""
        return max(self._steps_seen, self.steps_of_series)

    @property
    def has_judged(self) -> bool:
        """True if it has seen enough."""
        return self.is_concerned and (self.steps_that_count >= self.fewest_steps or bool(self._findings))

    @property
    def progress(self) -> tuple[int, int]:
        """The way that it has come towards judging: how many needs were met, and how many steps count."""
        return len(self._met), self.steps_that_count

    def fits(self, collections: Collection[str]) -> bool:
        """Tell whether the rule is one for runs with these collections, and for this one as far as it has seen it."""
        could_have_all = all(
            not need.collections or bool(need.patterns) or any(name in collections for name in need.collections)
            for need in self.needs
        )
        is_of_the_kind = not self.only_with or self.only_with in collections
        return is_of_the_kind and could_have_all and (self.is_concerned or not self._steps_seen)

    def not_judged(self) -> NotJudged:
        """Say what the rule lacks, of a run that it could not judge."""
        lacking = [need for need in self.needs if need not in self._met]
        modes = f" in {' or '.join(mode.name for mode in self.modes)}" if self.modes else ""
        if lacking:
            reason = "; ".join(need.words for need in lacking) + modes
            option = "; ".join(need.option for need in lacking)
            return NotJudged(
                self.rule_name, reason, option, lacking=tuple(need.lack for need in lacking), modes=self.modes
            )
        return self.too_few(f"it takes {self.fewest_steps} steps{modes} to judge, and there are {self._steps_seen}")

    def too_few(self, reason: str) -> NotJudged:
        """Say that what the rule needs was saved, only not often enough."""
        return NotJudged(self.rule_name, reason, "save more steps, such as by --every 1", self._steps_seen > 0)

    def fresh(self) -> Self:
        """Return a rule with the same parameters that has seen nothing."""
        return type(self)(**self._values)

    def invoke_at_step(self, step: int) -> bool:
        """Tell whether something is found at a step of the trial, counted over all modes."""
        assert self._run is not None, "a rule that is invoked is made for a trial"
        found = 0
        for worker, file in sorted(self._run.trial.step_table.files(step).items()):
            part = self._parts.setdefault("" if self.split is Split.RUN else worker, self.fresh())
            before = part.times_found
            part.offer(StepView(self._run, file))
            found += part.times_found - before
        return found > 0


def _has_no_parameter(rule: str, unknown: Iterable[str], known: Iterable[str]) -> str:
    return f"{rule} has no parameter {', '.join(unknown)}: it has {', '.join(known) or 'none'}"


def _spoken_step(place: Place) -> str:
    usual = place.mode in TRAINING
    return f"{place.step}" if usual else f"{place.step} of {place.mode.name}"
