"""XGBoost's collections, and the names of the tensors in them."""

from __future__ import annotations

from collections.abc import Mapping

from smd_agent.core.collection_keys import CollectionKeys

PREDICTIONS = "predictions"
LABELS = "labels"
FULL_SHAP = "full_shap/matrix"

# A metric is named "<evaluation set>-<metric>"; XGBoost refuses a "-" in the first part. All other names begin with a
# word and a slash. With cross-validation comes "-mean" or "-std", with some metrics a cut-off ("ndcg@5-").
_SET = "^(?!(?:average_shap|feature_importance|full_shap|hyperparameters|scalar|trees)/)[^-]+-"

# Metrics of which more is better; XGBoost's early stopping has the same list.
_MORE_IS_BETTER = "(?:auc|aucpr|pre|map|ndcg)"

BUILT_IN: Mapping[str, tuple[str, ...]] = {
    CollectionKeys.ALL: (),
    CollectionKeys.DEFAULT: (),
    CollectionKeys.METRICS: (f"{_SET}.+$",),
    CollectionKeys.LOSSES: (f"{_SET}(?!{_MORE_IS_BETTER}(?:[@-].*)?$).+(?<!-std)$",),
    CollectionKeys.HYPERPARAMETERS: ("^hyperparameters/.*$",),
    CollectionKeys.PREDICTIONS: (f"^{PREDICTIONS}$",),
    CollectionKeys.LABELS: (f"^{LABELS}$",),
    CollectionKeys.FEATURE_IMPORTANCE: ("^feature_importance/.*",),
    CollectionKeys.AVERAGE_SHAP: ("^average_shap/.*",),
    CollectionKeys.FULL_SHAP: ("^full_shap/.*",),
    CollectionKeys.TREES: ("^trees/.*",),
}

# Saved whatever else is asked for; only end_step 0 takes them out.
DEFAULT_SAVED = (CollectionKeys.METRICS,)
