"""MonitoredWrongWay: a callback that takes the smallest value of a metric for the best one where large is good."""

from __future__ import annotations

import re

from smd_agent.framework.training_facts import DATA_FACTS, USAGE
from smd_agent.rules.built_in import TRAINING, CollectionKeys, Severity, StepView
from smd_agent.rules.usage import Numbers, RuleOfUsage, numbers_of

_LARGE = {
    *("acc", "accuracy", "auc", "auroc", "auprc", "roc", "ap", "map", "f1", "fbeta", "precision", "recall"),
    *("sensitivity", "specificity", "iou", "miou", "dice", "jaccard", "r2", "bleu", "rouge", "rougel"),
    *("rouge1", "rouge2", "meteor", "ndcg", "mrr", "kappa", "mcc", "psnr", "ssim", "reward", "profit", "revenue"),
    *("qwk", "gini", "spearman", "pearson", "rsquared", "f1score", "bacc", "aucpr", "prauc", "rocauc", "sharpe"),
}
_SMALL = {
    *("loss", "error", "err", "mse", "mae", "rmse", "mape", "msle", "perplexity", "ppl", "nll", "logloss"),
    *("crossentropy", "wer", "cer", "fid"),
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
_STOP = "Give callbacks=[xgboost.callback.EarlyStopping(rounds, maximize={})] in place of early_stopping_rounds"
_MODE_MIN = 'Give the callback mode="min", or TrainingArguments greater_is_better=False'


class MonitoredWrongWay(RuleOfUsage):
    """A callback that takes the smallest value of a metric for the best one where large is good, or the reverse.

    Which way is better is told by the metric's name: by words such as ``acc``, ``auc``, ``f1``, ``loss`` and ``rmse``
    in it. Of a name with words of both kinds, or without any, nothing is said.

    Early stopping of XGBoost goes by the smallest value of any metric that is not its own, unless it is told otherwise.
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

    def take(self, step: StepView) -> None:
        """Look at each metric, those of boosted trainings too."""
        super().take(step)
        for of, numbers in numbers_of(step, self.kind, CollectionKeys.DATA_FACTS, DATA_FACTS).items():
            self._has_any = True
            self._look_at(step, DATA_FACTS, of, numbers)

    def look_at(self, step: StepView, of: str, numbers: Numbers) -> None:
        """Look at one metric of a trainer."""
        self._look_at(step, USAGE, of, numbers)

    def _look_at(self, step: StepView, prefix: str, of: str, numbers: Numbers) -> None:
        words = {*re.split(r"[^a-z0-9]+", of.partition("/")[2].lower().replace("cross_entropy", "crossentropy"))}
        is_large, is_small = bool(words & _LARGE), bool(words & _SMALL)
        if is_large == is_small or words & _TURNED:
            return
        wrong = "smallest_wins" if is_large else "largest_wins"
        if numbers.get(wrong):
            cause, advice = ("", "") if is_large else (_WANTS_SMALL, _MODE_MIN)
            if prefix == DATA_FACTS:
                advice = _STOP.format(is_large)
            self.found(step, f"{prefix}{of}/{wrong}", self.evidence_of(numbers), cause=cause, advice=advice)
