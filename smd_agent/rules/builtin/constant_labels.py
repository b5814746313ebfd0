"""ConstantLabels: batches in which all labels are the same, or are ignored."""

from __future__ import annotations

from smd_agent.framework.training_facts import DATA_FACTS, USAGE
from smd_agent.rules.built_in import CollectionKeys, ModeKeys, Place, Severity, StepView
from smd_agent.rules.parameters import Parameter, whole
from smd_agent.rules.usage import Numbers, RuleOfUsage, numbers_of

_SORTED = "The data is sorted by class and not shuffled, so that the model learns one class after the other"
_SAME = "All labels seen are the same, as of a column that was mixed up; losses of contrasts have that by design"
_ONE_CLASS = (
    "All labels of the evaluation are of one class, while training has others: the data is sorted by class, and was not"
    " shuffled before a part was held back, as validation_split of Keras takes the last rows"
)
_IGNORED = "All labels of the batch have the value that the loss ignores, as where padding or a mask covers everything"
_ALL_DATA = (
    "All labels of the training data are the same, as of a column that was mixed up or a condition that matches"
    " nothing: there is nothing to learn"
)
_SHUFFLE_BEFORE = "Shuffle the data before a part of it is held back, or take a part of each class"
_COUNT_LABELS = "Print the labels and how many there are of each, and look at what makes them"
_SEVERAL = 2


class _Evaluation:
    """The labels of steps of evaluation that follow each other.

    Args:
        before: the last saved step of training.

    Attributes:
        last: the last of the steps.
        count: how many labels there are.
        classes: how many classes the loss is given.
        labels: up to two of the labels.
    """

    last: Place

    def __init__(self, before: Place | None) -> None:
        self._next = None if before is None else before.global_step + 1
        self.count = self.classes = 0.0
        self.labels: set[float] = set()

    def add(self, place: Place, numbers: Numbers) -> None:
        """One more step."""
        if place.global_step != self._next:
            self._next = None
        elif self._next is not None:
            self._next += 1
        self.last = place
        self.count += numbers["labels"]
        self.classes = numbers.get("classes", 0.0)
        if len(self.labels) < _SEVERAL and numbers["labels"]:
            self.labels.update(numbers[name] for name in ("label_min", "label_max") if name in numbers)

    def was_saved_whole(self, follows: int) -> bool:
        """Tell whether no step is missing between training and training; of the step that follows, its number."""
        return self._next == follows


class ConstantLabels(RuleOfUsage):
    """Batches in which all labels are the same, or are ignored.

    Where the label is one in one batch and another in the next, the data is not shuffled. Where it is always the same
    one, that may be meant, as in contrastive losses and in the critic of a GAN, and is a note.

    Of a boosted training the labels of all of its data are known; where these are the same, there is nothing to learn.

    Data for an evaluation need not be shuffled: of that all steps together are looked at, where all were saved.
    """

    meaning = (
        "all labels that a loss of classes is given are the same, in the batches of several saved steps in a row or in"
        " a whole evaluation; or all labels of a boosted training"
    )
    patience = Parameter(whole, 5, "saved steps in a row")
    batch = Parameter(whole, 8, "labels that a batch must have more of")
    evaluated = Parameter(whole, 16, "labels that an evaluation must have more of")
    brings = {"usage,data_facts": {}}
    modes = (ModeKeys.TRAIN, ModeKeys.EVAL, ModeKeys.GLOBAL)
    fewest_steps = 5
    kind = "loss"
    facts = ("labels",)
    severity = Severity.WARNING
    evidence = {
        "labels": "how many labels the batch has, or the evaluation",
        "classes": "how many classes the loss is given",
        "different_labels": "how many different labels the batches of these steps had, one each",
    }
    cause = _SORTED
    advice = "Shuffle the data where batches are made of it, before each epoch, and print the labels of a few batches"

    def start(self) -> None:
        """Begin with nothing seen."""
        super().start()
        self._knows_all_data = False
        self._labels: dict[str, set[float]] = {}
        # The labels of training, up to two of them.
        self._trained: dict[str, set[float]] = {}
        self._evaluations: dict[str, _Evaluation] = {}
        self._last_training: Place | None = None

    def take(self, step: StepView) -> None:
        """Look at each loss of a step; an evaluation is over when training goes on."""
        super().take(step)
        for of, numbers in numbers_of(step, "labels", CollectionKeys.DATA_FACTS, DATA_FACTS).items():
            if "label_min" in numbers:
                self._has_any = self._knows_all_data = True
                self._look_at_all_data(step, of, numbers)
        if step.mode is not ModeKeys.EVAL:
            for of, evaluation in self._evaluations.items():
                self._end_evaluation(of, evaluation, step.place.global_step)
            self._evaluations = {}
            self._last_training = step.place

    def look_at(self, step: StepView, of: str, numbers: Numbers) -> None:
        """Look at the labels of one loss."""
        if step.mode is ModeKeys.EVAL:
            known = self._evaluations.get(of)
            if known is None:
                known = self._evaluations[of] = _Evaluation(self._last_training)
            known.add(step.place, numbers)
            return
        self._look_at_training(step, of, numbers)
        trained = self._trained.setdefault(of, set())
        if len(trained) < _SEVERAL and numbers["labels"]:
            trained.update(numbers[name] for name in ("label_min", "label_max") if name in numbers)

    @property
    def has_judged(self) -> bool:
        """True if it has seen enough: labels of all data are told once."""
        return self._knows_all_data or super().has_judged

    def _look_at_all_data(self, step: StepView, of: str, numbers: Numbers) -> None:
        count = numbers.get("rows", 0.0)
        if numbers["label_min"] == numbers["label_max"] and count > self.batch:
            evidence = {"labels": count, "different_labels": 1}
            name, severity = f"{DATA_FACTS}{of}/label_min", Severity.PROBLEM
            short = "all labels are the same"
            self.found(step, name, evidence, severity=severity, cause=_ALL_DATA, advice=_COUNT_LABELS, short=short)

    def _end_evaluation(self, of: str, evaluation: _Evaluation, follows: int) -> None:
        if not evaluation.was_saved_whole(follows) or evaluation.count <= self.evaluated:
            return
        if len(evaluation.labels) == 1 and evaluation.classes > 1 and len(self._trained.get(of, ())) >= _SEVERAL:
            evidence = {"labels": evaluation.count, "classes": evaluation.classes, "different_labels": 1}
            self.found(evaluation.last, f"{USAGE}{of}/labels", evidence, cause=_ONE_CLASS, advice=_SHUFFLE_BEFORE)

    def _look_at_training(self, step: StepView, of: str, numbers: Numbers) -> None:
        count, classes = numbers["labels"], numbers.get("classes", 0.0)
        name = f"{USAGE}{of}/labels"
        if self.row(f"{of} ignored", count == 0) >= self.patience:
            advice = "Check ignore_index, the mask and the length to which texts are cut"
            evidence = {"labels": count, "classes": classes}
            self.found(step, name, evidence, severity=Severity.PROBLEM, cause=_IGNORED, advice=advice)
        is_one = numbers.get("label_min") == numbers.get("label_max") and count > self.batch and classes > 1
        if not is_one:
            self._labels.pop(of, None)
        else:
            self._labels.setdefault(of, set()).add(numbers["label_min"])
        if self.row(of, is_one) >= self.patience:
            different = len(self._labels[of])
            severity, cause = (Severity.WARNING, _SORTED) if different > 1 else (Severity.NOTE, _SAME)
            known = self.finding_of(step, name)
            if known is not None and known.severity is Severity.NOTE and severity is Severity.WARNING:
                self.withdraw(step, name)
            evidence = {"labels": count, "classes": classes, "different_labels": different}
            self.found(step, name, evidence, severity=severity, cause=cause)
