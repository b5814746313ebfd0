"""XGBoost's collections."""

from __future__ import annotations

from smd_agent.framework.boosting.collection import built_in_collections

# Metrics of which more is better; XGBoost's early stopping has the same list. It refuses a "-" in the name of an
# evaluation set.
BUILT_IN = built_in_collections(("auc", "aucpr", "pre", "map", "ndcg"))
