"""XGBoost's collections."""

from __future__ import annotations

from smd_agent.framework.boosting.built_in_collections import built_in_collections
from smd_agent.xgboost.directions import LESS_IS_BETTER

# XGBoost refuses a "-" in the name of an evaluation set.
BUILT_IN = built_in_collections(LESS_IS_BETTER)
