"""Names of the built-in collections, what those of some frameworks are made of, and which are treated specially."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping


class CollectionKeys:
    """Names of the built-in collections of all frameworks."""

    DEFAULT = "default"
    ALL = "all"
    INPUTS = "inputs"
    OUTPUTS = "outputs"
    WEIGHTS = "weights"
    GRADIENTS = "gradients"
    LOSSES = "losses"
    BIASES = "biases"
    LAYERS = "layers"
    SM_METRICS = "sm_metrics"
    OPTIMIZER_VARIABLES = "optimizer_variables"
    TENSORFLOW_SUMMARIES = "tensorflow_summaries"
    METRICS = "metrics"
    HYPERPARAMETERS = "hyperparameters"
    PREDICTIONS = "predictions"
    LABELS = "labels"
    FEATURE_IMPORTANCE = "feature_importance"
    AVERAGE_SHAP = "average_shap"
    FULL_SHAP = "full_shap"
    TREES = "trees"


BUILT_IN_NAMES = frozenset(value for key, value in vars(CollectionKeys).items() if key.isupper())

# Saved raw whatever the reductions asked for, and without histograms.
SCALAR_COLLECTIONS = frozenset(
    {
        CollectionKeys.LOSSES,
        CollectionKeys.METRICS,
        CollectionKeys.SM_METRICS,
        CollectionKeys.FEATURE_IMPORTANCE,
        CollectionKeys.AVERAGE_SHAP,
    }
)

# Summaries the program made itself: no histograms of histograms, no reductions.
SUMMARY_COLLECTIONS = frozenset({CollectionKeys.TENSORFLOW_SUMMARIES})

# Exist only while training: never saved in EVAL and PREDICT.
TRAINING_ONLY_COLLECTIONS = frozenset({CollectionKeys.GRADIENTS, CollectionKeys.OPTIMIZER_VARIABLES})

# Collections that PyTorch hooks start with, and the regexes by which tensors join them.
PYTORCH_COLLECTIONS: Mapping[str, tuple[str, ...]] = {
    CollectionKeys.ALL: (),
    CollectionKeys.DEFAULT: (),
    CollectionKeys.WEIGHTS: ("^(?!gradient).*weight",),
    CollectionKeys.BIASES: ("^(?!gradient).*bias",),
    CollectionKeys.GRADIENTS: ("^gradient",),
    CollectionKeys.LOSSES: ("[Ll]oss_(?!input).*output",),
}

# Saved by PyTorch hooks whatever else is asked for; only end_step 0 takes them out.
PYTORCH_DEFAULT_SAVED = (CollectionKeys.LOSSES,)

# Collections that hooks for Keras and TensorFlow start with: "weights/<variable>:0" of tapes,
# "<layer>/weights/<variable>:0" of fit. The gradients of a v1 graph lie in a scope that is called "gradients" too,
# together with everything that leads to them.
KERAS_COLLECTIONS: Mapping[str, tuple[str, ...]] = {
    CollectionKeys.ALL: (),
    CollectionKeys.DEFAULT: (),
    CollectionKeys.WEIGHTS: ("(^|/)weights/((?!bias).)*$",),
    CollectionKeys.BIASES: ("(^|/)weights/.*bias",),
    CollectionKeys.GRADIENTS: ("^gradients/.*Grad(_[0-9]+)?$",),
    CollectionKeys.LOSSES: ("^(val_|batch_)?loss(_[0-9]+)?$",),
    CollectionKeys.METRICS: (),
    CollectionKeys.INPUTS: ("^inputs(_[0-9]+)?$",),
    CollectionKeys.OUTPUTS: ("^(labels|predictions)(_[0-9]+)?$",),
    CollectionKeys.LAYERS: ("/(inputs|outputs)(_[0-9]+)?$",),
    CollectionKeys.SM_METRICS: (),
    CollectionKeys.OPTIMIZER_VARIABLES: (),
}

# Saved whatever else is asked for; only end_step 0 takes them out.
KERAS_DEFAULT_SAVED = (CollectionKeys.METRICS, CollectionKeys.LOSSES, CollectionKeys.SM_METRICS)
