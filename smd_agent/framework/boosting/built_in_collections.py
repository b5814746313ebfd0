"""Collections of boosted trainings, and the names of the tensors in them."""

from __future__ import annotations

from collections.abc import Iterable

from smd_agent.core.collection_keys import CollectionKeys
from smd_agent.framework.training_facts import DATA_FACTS

# Saved whatever else is asked for; only end_step 0 takes them out.
DEFAULT_SAVED = (CollectionKeys.METRICS,)

PREDICTIONS = "predictions"
LABELS = "labels"
FULL_SHAP = "full_shap/matrix"

# A metric is named "<evaluation set>-<metric>". All other names begin with a word and a slash. With cross-validation
# comes "-mean" or "-std", with some metrics a cut-off ("ndcg@5-").
_SET = "^(?!(?:average_shap|feature_importance|full_shap|hyperparameters|scalar|trees|data_facts)/)[^-]+-"


def built_in_collections(less_is_better: Iterable[str], without: Iterable[str] = ()) -> dict[str, tuple[str, ...]]:
    """The collections by name, and the regexes by which tensors join them.

    Args:
        less_is_better: metrics that are losses, by the library's names; of others, such as a program's own, that is
            known of a training at most.
        without: collections that the library cannot give.
    """
    better = f"(?:{'|'.join(less_is_better)})"
    found = {
        CollectionKeys.ALL: (),
        CollectionKeys.DEFAULT: (),
        CollectionKeys.METRICS: (f"{_SET}.+$",),
        CollectionKeys.LOSSES: (f"{_SET}{better}(?:@.*)?(?:-mean)?(?<!-std)$",),
        CollectionKeys.HYPERPARAMETERS: ("^hyperparameters/.*$",),
        CollectionKeys.DATA_FACTS: (f"^{DATA_FACTS}",),
        CollectionKeys.PREDICTIONS: (f"^{PREDICTIONS}$",),
        CollectionKeys.LABELS: (f"^{LABELS}$",),
        CollectionKeys.FEATURE_IMPORTANCE: ("^feature_importance/.*",),
        CollectionKeys.AVERAGE_SHAP: ("^average_shap/.*",),
        CollectionKeys.FULL_SHAP: ("^full_shap/.*",),
        CollectionKeys.TREES: ("^trees/.*",),
    }
    return {name: regexes for name, regexes in found.items() if name not in without}
