"""MonitoredWrongWay: a callback that takes the smallest value of a metric for the best one where large is good."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import median

from smd_agent.framework.training_facts import DATA_FACTS, USAGE
from smd_agent.rules.built_in import TRAINING, CollectionKeys, Severity, StepView
from smd_agent.rules.step_view import Column, Place
from smd_agent.rules.usage import Numbers, RuleOfUsage, numbers_of

_LARGE = {
    *("acc", "accuracy", "auc", "auroc", "auprc", "roc", "ap", "map", "f1", "fbeta", "precision", "recall"),
    *("sensitivity", "specificity", "iou", "miou", "dice", "jaccard", "r2", "bleu", "rouge", "rougel"),
    *("rouge1", "rouge2", "meteor", "ndcg", "mrr", "kappa", "mcc", "psnr", "ssim", "reward", "profit", "revenue"),
    *("qwk", "gini", "spearman", "pearson", "rsquared", "f1score", "bacc", "aucpr", "prauc", "rocauc", "sharpe"),
}
_SMALL = {
    *("loss", "error", "err", "mse", "mae", "rmse", "mape", "msle", "perplexity", "ppl", "nll", "logloss"),
    *("crossentropy", "wer", "cer", "fid", "rmsle", "mphe", "mlogloss", "merror", "nloglik", "deviance"),
}
_TURNED = {"neg", "negative", "minus", "inverse", "inverted", "inv"}
_WANTS_LARGE = (
    "Checkpoints, early stopping or the learning rate go by the smallest value of the metric, which is better the"
    " larger it is"
)
_WANTS_SMALL = (
    "Checkpoints, early stopping or the learning rate go by the largest value of the metric, which is better the"
    " smaller it is"
)
_FIRST_WINS = (
    "Early stopping takes the first round for the best one: it goes by the smallest value of the metric, which is"
    " at no later round smaller, and grows for the rows that are trained as well. If it is better the larger it is,"
    " that is the wrong way"
)
# Rounds of which a course is judged, at least.
_FEWEST = 10
_STOP = "Give callbacks=[xgboost.callback.EarlyStopping(rounds, maximize={})] in place of early_stopping_rounds"
_MODE_MIN = 'Give the callback mode="min", or TrainingArguments greater_is_better=False'


class MonitoredWrongWay(RuleOfUsage):
    """A callback that takes the smallest value of a metric for the best one where large is good, or the reverse.

    Which way is better is told by the metric's name: by words such as ``acc``, ``auc``, ``f1``, ``loss`` and ``rmse``
    in it. Of a name with words of both kinds, or without any, nothing is said.

    Early stopping of XGBoost goes by the smallest value of any metric that is not its own, unless it is told otherwise.
    Where the name of such a metric tells nothing, its course does: if it is smallest in the first round, for the rows
    that are trained and for others, and grows, it is noted.
    """

    meaning = (
        "a callback of the trainer, or early stopping, goes by a metric the wrong way: by its smallest value where"
        " large is good"
    )
    brings = {"usage,data_facts": {}}
    modes = TRAINING
    kind = "monitor"
    facts = ("largest_wins", "smallest_wins")
    severity = Severity.WARNING
    evidence = {
        "largest_wins": "how many callbacks take the metric's largest value for the best one",
        "smallest_wins": "how many take its smallest value for the best one",
    }
    cause = _WANTS_LARGE
    advice = 'Give the callback mode="max", or TrainingArguments greater_is_better=True'
    short = "best by the worst value: {}"

    def start(self) -> None:
        """Begin with nothing seen."""
        super().start()
        self._courses: list[_Course] = []
        # Those of the training that goes on.
        self._followed: list[_Course] = []

    def take(self, step: StepView) -> None:
        """Look at each metric, those of boosted trainings too."""
        super().take(step)
        if step.names(CollectionKeys.DATA_FACTS):
            # They are saved in the first round of a training.
            self._followed = []
        for of, numbers in numbers_of(step, self.kind, CollectionKeys.DATA_FACTS, DATA_FACTS).items():
            self._has_any = True
            self._look_at(step, DATA_FACTS, of, numbers)
        self.pass_over(step)

    def pass_over(self, step: StepView) -> None:
        """Follow metrics of a boosted training whose names tell nothing."""
        if self._followed:
            values = step.numbers(step.names(CollectionKeys.METRICS))
            for course in self._followed:
                course.add(values)

    def end(self) -> None:
        """Judge these metrics by their courses."""
        for course in self._courses:
            tensor = f"{DATA_FACTS}{course.of}/smallest_wins"
            self.withdraw(course.first, tensor)
        for course in self._courses:
            if course.grows_from_the_first_on():
                self.found(
                    course.first,
                    f"{DATA_FACTS}{course.of}/smallest_wins",
                    course.evidence,
                    severity=Severity.NOTE,
                    cause=_FIRST_WINS,
                    advice=_STOP.format(True),
                )

    def look_at(self, step: StepView, of: str, numbers: Numbers) -> None:
        """Look at one metric of a trainer."""
        self._look_at(step, USAGE, of, numbers)

    def _look_at(self, step: StepView, prefix: str, of: str, numbers: Numbers) -> None:
        words = {*re.split(r"[^a-z0-9]+", of.partition("/")[2].lower().replace("cross_entropy", "crossentropy"))}
        is_large, is_small = bool(words & _LARGE), bool(words & _SMALL)
        if is_large == is_small or words & _TURNED:
            if prefix == DATA_FACTS and not is_large and not words & _TURNED and numbers.get("smallest_wins"):
                self._follow(step, of, numbers)
            return
        wrong = "smallest_wins" if is_large else "largest_wins"
        if numbers.get(wrong):
            cause, advice = ("", "") if is_large else (_WANTS_SMALL, _MODE_MIN)
            if prefix == DATA_FACTS:
                advice = _STOP.format(is_large)
            self.found(step, f"{prefix}{of}/{wrong}", self.evidence_of(numbers), cause=cause, advice=advice)

    def _follow(self, step: StepView, of: str, numbers: Numbers) -> None:
        sets = numbers_of(step, "evaluation", CollectionKeys.DATA_FACTS, DATA_FACTS)
        trained = {name.partition("/")[2] for name, facts in sets.items() if facts.get("training_rows")}
        # A cross-validation has no sets of its own.
        course = _Course(of, step.place, self.evidence_of(numbers), trained if sets else {"train"})
        self._courses.append(course)
        self._followed.append(course)


@dataclass
class _Course:
    """A metric of a boosted training, by which early stopping goes, over the saved rounds.

    of: the metric, as the facts have it.
    first: the place of the first round.
    evidence: numbers of the finding.
    trained: names of the sets that are the training data.
    values: by set.
    """

    of: str
    first: Place
    evidence: Numbers
    trained: set[str]
    values: dict[str, list[float]] = field(default_factory=dict)

    def add(self, values: Column) -> None:
        """Take in those of a round."""
        ends = tuple(f"-{self.of.partition('/')[2]}{end}" for end in ("", "-mean"))
        for name, value in values.items():
            for end in ends:
                if name.endswith(end):
                    self.values.setdefault(name.removesuffix(end), []).append(value)

    def grows_from_the_first_on(self) -> bool:
        """True if it does for the rows that are trained and for others."""
        has_both = bool(self.trained & self.values.keys()) and bool(self.values.keys() - self.trained)
        return has_both and all(map(_grows, self.values.values()))


def _grows(values: Sequence[float]) -> bool:
    first, half = values[0], len(values) // 2
    return len(values) >= _FEWEST and min(values) >= first and median(values[half:]) > median(values[:half])
