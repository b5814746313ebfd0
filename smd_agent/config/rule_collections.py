"""Collections that each rule looks at, as a table: rules are on a floor above, and too much to import in a training.

It has the names of their parameters and the collections that smdebug's rules bring along, with their intervals; of
rules that it has not, and of those that bring none along there, what they need. Tests compare it with the rules.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from smd_agent.core.collection_keys import CollectionKeys


@dataclass(frozen=True)
class Brought:
    """A collection that is saved for a rule.

    Attributes:
        name: of the collection.
        reductions: that are enough; with none, whole tensors are needed.
        include_regex: tensors that belong to it, beside those that do anyhow.
        steps: keys of a collection, such as ``save_interval``; without any, the hook's hold.
    """

    name: str
    reductions: tuple[str, ...] = ()
    include_regex: tuple[str, ...] = ()
    steps: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class OfRule:
    """One rule.

    Attributes:
        parameters: their names.
        brings: what is saved for it, unless its parameters name something else.
        always: what is saved for it in any case.
        collections_by: parameters that name collections to save instead.
        regex_by: parameters that are regular expressions of tensors to save instead.
        reductions: that are enough of what its parameters name; with none, whole tensors are needed.
        is_report: whether it is no rule but writes a report, which there is not.
    """

    parameters: tuple[str, ...] = ()
    brings: tuple[Brought, ...] = ()
    always: tuple[Brought, ...] = ()
    collections_by: tuple[str, ...] = ()
    regex_by: tuple[str, ...] = ()
    reductions: tuple[str, ...] = ()
    is_report: bool = False


_EVERY_500 = {"save_interval": 500}
_EVERY_5 = {"save_interval": 5}
_LOSSES = Brought(CollectionKeys.LOSSES)
_CLASSES = (Brought(CollectionKeys.LABELS), Brought(CollectionKeys.PREDICTIONS))
_USAGE = (Brought(CollectionKeys.USAGE),)
_DATA_FACTS = (Brought(CollectionKeys.DATA_FACTS),)
_FINITE = ("abs_mean", "nan_count", "inf_count")
_PARAMETERS = tuple(Brought(name, ("abs_mean",)) for name in (CollectionKeys.WEIGHTS, CollectionKeys.BIASES))


def _of_chosen(brings: tuple[str, ...], reductions: tuple[str, ...], *more: str) -> OfRule:
    """A rule about tensors that its user chooses; ``brings`` are looked at by ours where nobody does."""
    return OfRule(
        ("collection_names", "tensor_regex", *more),
        tuple(Brought(name, reductions) for name in brings),
        collections_by=("collection_names",),
        regex_by=("tensor_regex",),
        reductions=reductions,
    )


RULES: Mapping[str, OfRule] = {
    "ActivationMissing": OfRule(("patience",), _USAGE),
    "AllZero": _of_chosen((CollectionKeys.GRADIENTS,), ("zero_share",), "threshold", "patience"),
    "BatchNormNotUpdated": OfRule(
        ("patience",), (Brought(CollectionKeys.WEIGHTS, ("min", "max")), Brought(CollectionKeys.UPDATES))
    ),
    "CheckInputImages": OfRule(
        ("threshold_mean", "threshold_samples", "regex", "channel"),
        (Brought("input_image", (), (".*hybridsequential0_input_0",), _EVERY_500),),
        regex_by=("regex",),
    ),
    "ClassImbalance": OfRule(
        (
            *("threshold_imbalance", "threshold_misprediction", "samples", "argmax"),
            *("labels_regex", "predictions_regex", "patience", "both"),
        ),
        always=_CLASSES,
        regex_by=("labels_regex", "predictions_regex"),
    ),
    "Confusion": OfRule(
        (
            *("category_no", "labels", "predictions", "labels_collection", "predictions_collection"),
            *("min_diag", "max_off_diag"),
        ),
        always=_CLASSES,
        collections_by=("labels_collection", "predictions_collection"),
        regex_by=("labels", "predictions"),
    ),
    "ConstantLabels": OfRule(("patience", "batch", "evaluated"), (*_USAGE, *_DATA_FACTS)),
    "CreateXgboostReport": OfRule(
        brings=(
            Brought(CollectionKeys.HYPERPARAMETERS, steps={"save_steps": [0]}),
            Brought(CollectionKeys.METRICS, steps=_EVERY_5),
            Brought(CollectionKeys.FEATURE_IMPORTANCE, steps=_EVERY_5),
            Brought(CollectionKeys.PREDICTIONS, steps=_EVERY_5),
            Brought(CollectionKeys.LABELS, steps=_EVERY_5),
        ),
        is_report=True,
    ),
    "DeadRelu": OfRule(
        ("tensor_regex", "threshold_inactivity", "threshold_layer", "patience", "rise", "samples"),
        (Brought("relu_output", (), (".*relu_output",), _EVERY_500),),
        regex_by=("tensor_regex",),
    ),
    "DominantLabel": OfRule(("padding", "share", "labels", "patience"), _USAGE),
    "DoubleActivation": OfRule(("patience",), _USAGE),
    "DropoutTooLarge": OfRule(("threshold", "patience"), _USAGE),
    "EqualUnits": OfRule(
        ("patience",),
        tuple(
            Brought(name, ("min", "max"))
            for name in (CollectionKeys.WEIGHTS, CollectionKeys.BIASES, CollectionKeys.GRADIENTS)
        ),
    ),
    "EvaluationInTrainingMode": OfRule(("patience",), _USAGE),
    "ExplodingTensor": _of_chosen(
        (CollectionKeys.WEIGHTS, CollectionKeys.BIASES, CollectionKeys.GRADIENTS), _FINITE, "only_nan", "patience"
    ),
    "FeatureImportanceOverweight": OfRule(
        ("threshold", "nfeatures", "tensor_regex", "fewest_features", "patience"),
        (Brought(CollectionKeys.FEATURE_IMPORTANCE, steps=_EVERY_500),),
    ),
    "GradientDiscarded": OfRule(("patience",), _USAGE),
    "FutureVisible": OfRule(("patience", "tokens"), _USAGE),
    "GradientNotCleared": OfRule(("patience",), _USAGE),
    "LabelOutOfRange": OfRule((), _USAGE),
    "LeakingFeature": OfRule(
        ("share", "right", "rows", "features"), (Brought(CollectionKeys.FEATURE_IMPORTANCE), *_CLASSES)
    ),
    "LearningRateVanished": OfRule(("factor", "share", "warning"), (Brought(CollectionKeys.OPTIMIZER),)),
    "LearningRateZero": OfRule(("patience",), (Brought(CollectionKeys.OPTIMIZER),)),
    "LossExploding": OfRule(("factor",), (_LOSSES,)),
    "LossAtGuessing": OfRule(("steps", "saved", "learned"), (*_USAGE, Brought(CollectionKeys.OPTIMIZER))),
    "LossNotDecreasing": OfRule(
        (
            *("collection_names", "tensor_regex", "use_losses_collection"),
            *("num_steps", "diff_percent", "increase_threshold_percent", "mode"),
        ),
        always=(Brought(CollectionKeys.LOSSES, steps=_EVERY_500),),
        collections_by=("collection_names",),
        regex_by=("tensor_regex",),
    ),
    "LossOfOtherShape": OfRule(("patience",), _USAGE),
    "LossNotFinite": OfRule(
        always=(
            _LOSSES,
            *(Brought(name, _FINITE) for name in (CollectionKeys.WEIGHTS, CollectionKeys.BIASES)),
        )
    ),
    "NLPSequenceRatio": OfRule(
        ("tensor_regex", "token_values", "token_thresholds_percent"),
        (Brought("input_sequence", (), (".*embedding0_input_0",), _EVERY_500),),
        regex_by=("tensor_regex",),
    ),
    "NoGradient": OfRule(("patience",), (Brought(CollectionKeys.PARAMETERS),)),
    "NoSplit": OfRule(("patience",), (Brought(CollectionKeys.TREES),)),
    "NothingLoaded": OfRule((), (Brought(CollectionKeys.PARAMETERS),)),
    "NotMoving": OfRule(
        ("patience",),
        (
            Brought(CollectionKeys.UPDATES),
            Brought(CollectionKeys.GRADIENTS, ("abs_mean", "zero_share")),
            Brought(CollectionKeys.OPTIMIZER),
        ),
    ),
    "OptimizerNotOfModel": OfRule(("patience",), _USAGE),
    "Overfit": OfRule(
        ("tensor_regex", "start_step", "patience", "ratio_threshold", "rise", "rise_of_trees"),
        (_LOSSES,),
        regex_by=("tensor_regex",),
    ),
    "Overtraining": OfRule(("patience_train", "patience_validation", "delta", "share"), (_LOSSES,)),
    "ParameterNotOptimized": OfRule((), (Brought(CollectionKeys.PARAMETERS),)),
    "PoorWeightInitialization": OfRule(
        ("activation_inputs_regex", "threshold", "distribution_range", "patience", "steps"),
        (Brought("relu_input", ("std",), (".*relu_input",), _EVERY_500),),
        (Brought(CollectionKeys.GRADIENTS, ("p5", "p95")), _LOSSES),
        regex_by=("activation_inputs_regex",),
        reductions=("std",),
    ),
    "RecurrentOverBatch": OfRule(("patience",), _USAGE),
    "RepeatedBatch": OfRule(("patience",), (Brought(CollectionKeys.INPUT_DIGESTS),)),
    "ReplicasDiffer": OfRule(("patience", "tolerance"), _PARAMETERS),
    "SameBatchOnWorkers": OfRule(("patience",), (Brought(CollectionKeys.INPUT_DIGESTS), *_PARAMETERS)),
    "SameEvaluationData": OfRule(("values",), (Brought(CollectionKeys.METRICS),)),
    "SaturatedActivation": OfRule(
        (
            *("collection_names", "tensor_regex", "threshold_tanh_min", "threshold_tanh_max"),
            *("threshold_sigmoid_min", "threshold_sigmoid_max", "threshold_inactivity", "threshold_layer", "patience"),
        ),
        (Brought("activation_input", (), (".*tanh_input|.*sigmoid_input",)),),
        collections_by=("collection_names",),
        regex_by=("tensor_regex",),
    ),
    "SimilarAcrossRuns": _of_chosen((CollectionKeys.LOSSES,), (), "other_trials", "other_trial", "rtol", "atol"),
    "SoftmaxOverOne": OfRule(("patience",), _USAGE),
    "StalledTrainingRule": OfRule(("threshold", "stop_training_on_fire", "training_job_name_prefix")),
    "StoppingByTrainingData": OfRule((), _DATA_FACTS),
    "TargetOutOfReach": OfRule(("share", "patience"), _USAGE),
    "TensorVariance": _of_chosen((CollectionKeys.WEIGHTS,), ("std",), "max_threshold", "min_threshold"),
    "TrainingInEvaluationMode": OfRule(("patience",), _USAGE),
    "TreeDepth": OfRule(("depth",), (Brought(CollectionKeys.TREES),)),
    "UnchangedTensor": _of_chosen(
        (CollectionKeys.LOSSES,), (), "num_steps", "rtol", "atol", "equal_nan", "never_moved"
    ),
    "UnusualInputs": OfRule(
        ("largest", "smallest", "patience"),
        (
            *_USAGE,
            *(Brought(name, ("mean",)) for name in (CollectionKeys.WEIGHTS, CollectionKeys.BIASES)),
            Brought("model_input", ("mean", "std", "min", "max", "nan_count", "inf_count"), ("_input_[0-9]+$",)),
        ),
    ),
    "UpdatesSkipped": OfRule(("patience", "steps"), (Brought(CollectionKeys.OPTIMIZER),)),
    "VanishingGradient": OfRule(
        ("threshold", "ratio", "lost", "patience"),
        (Brought(CollectionKeys.GRADIENTS, ("abs_mean", "zero_share"), steps=_EVERY_500),),
    ),
    "WeightOfRareClass": OfRule(("imbalance", "factor"), _DATA_FACTS),
    "WeightUpdateRatio": OfRule(
        ("num_steps", "large_threshold", "small_threshold", "epsilon", "patience"),
        (Brought(CollectionKeys.WEIGHTS, steps=_EVERY_500),),
    ),
}
"""By the rule's name. Of two rules that bring the same collection, each adds what it needs."""


def brought_by(rule: str, parameters: Mapping[str, Any]) -> list[Brought]:
    """Return what is saved for a rule of the table that is told these parameters."""
    known = RULES[rule]
    first = known.brings[0] if known.brings else Brought("")
    name = first.name if first.include_regex else rule
    chosen = [
        Brought(collection, known.reductions, steps=first.steps)
        for parameter in known.collections_by
        for collection in texts(parameters.get(parameter))
    ]
    regexes = [regex for parameter in known.regex_by for regex in texts(parameters.get(parameter))]
    if regexes:
        chosen.append(Brought(name, known.reductions, tuple(regexes), first.steps))
    return [*(chosen or known.brings), *known.always]


def texts(given: Any) -> list[str]:
    """Return the texts of a list or of a text with commas, as rules take them."""
    parts = given.split(",") if isinstance(given, str) else given if isinstance(given, list) else []
    return [text for part in parts if (text := str(part).strip())]
