"""Names of the built-in collections, and which of them are treated specially."""

from __future__ import annotations


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
    OPTIMIZER = "optimizer"
    UPDATES = "updates"
    INPUT_DIGESTS = "input_digests"
    PARAMETERS = "parameters"
    USAGE = "usage"
    DATA_FACTS = "data_facts"
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

# Facts of training that are no tensors of the program. Where all is saved, some of them may well not come up.
FACT_COLLECTIONS = frozenset(
    {
        CollectionKeys.OPTIMIZER,
        CollectionKeys.UPDATES,
        CollectionKeys.INPUT_DIGESTS,
        CollectionKeys.PARAMETERS,
        CollectionKeys.USAGE,
        CollectionKeys.DATA_FACTS,
    }
)

# Saved raw whatever the reductions asked for, and without histograms.
SCALAR_COLLECTIONS = frozenset(
    {
        CollectionKeys.LOSSES,
        CollectionKeys.METRICS,
        CollectionKeys.SM_METRICS,
        CollectionKeys.FEATURE_IMPORTANCE,
        CollectionKeys.AVERAGE_SHAP,
        *FACT_COLLECTIONS,
    }
)

# Shown by SageMaker as metrics of a training job.
METRIC_COLLECTIONS = (CollectionKeys.LOSSES, CollectionKeys.METRICS, CollectionKeys.SM_METRICS)

# Summaries the program made itself: no histograms of histograms, no reductions.
SUMMARY_COLLECTIONS = frozenset({CollectionKeys.TENSORFLOW_SUMMARIES})

# Exist only while training: never saved in EVAL and PREDICT.
TRAINING_ONLY_COLLECTIONS = frozenset(
    {
        CollectionKeys.GRADIENTS,
        CollectionKeys.OPTIMIZER_VARIABLES,
        CollectionKeys.OPTIMIZER,
        CollectionKeys.UPDATES,
        CollectionKeys.PARAMETERS,
    }
)
