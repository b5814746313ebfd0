"""Collections of Keras and TensorFlow."""

from __future__ import annotations

from collections.abc import Mapping

from smd_agent.core.collection_keys import CollectionKeys
from smd_agent.framework import training_facts

# The collections that there are from the start: "weights/<variable>:0" of tapes,
# "<layer>/weights/<variable>:0" of fit. The gradients of a v1 graph lie in a scope that is called "gradients" too,
# together with everything that leads to them.
BUILT_IN: Mapping[str, tuple[str, ...]] = {
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
    **training_facts.COLLECTIONS,
}

# Saved whatever else is asked for; only end_step 0 takes them out.
DEFAULT_SAVED = (CollectionKeys.METRICS, CollectionKeys.LOSSES, CollectionKeys.SM_METRICS)
