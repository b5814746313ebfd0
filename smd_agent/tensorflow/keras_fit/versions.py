"""Classes of one Keras among those a program may have imported, and how functions in them are replaced.

Found through public classes, so that no module path of Keras's is named: ``keras`` (3 or 2) and ``tf_keras``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from smd_agent.framework.keras.names import definer
from smd_agent.framework.keras.types import Call, KerasModule
from smd_agent.framework.replaced_functions import Make, replace


@dataclass(frozen=True)
class Flavour:
    """Classes of one Keras.

    version: 2 or 3.
    trainer: the class whose ``make_*_function`` make what ``fit`` and its like call.
    layer, metric, history: the base classes of layers and metrics, and the callback that every ``fit`` has.
    callbacks: the class that calls all of them.
    loss: the base class of losses.
    appliers: classes and names of the methods that get the gradients which are applied, after they are reduced over
        replicas, unscaled, accumulated and clipped.
    callers: classes and names of the methods by which optimizers are called, with all gradients and variables.
    """

    version: int
    trainer: type
    layer: type
    metric: type[Any]
    history: type
    callbacks: type
    loss: type
    appliers: tuple[tuple[type, str], ...]
    callers: tuple[tuple[type, str], ...]


def flavour_of(keras: KerasModule) -> Flavour:
    """Look at an imported Keras whose backend is TensorFlow.

    Raises:
        LookupError: it is not built as the ones known here.
    """
    # tf.keras of 2.15 does not tell its version.
    version = int(str(getattr(keras, "__version__", "2")).split(".", 1)[0])
    trainer = definer(keras.Model, "make_train_function")
    optimizer = keras.optimizers.Optimizer
    if version >= 3:
        appliers = [(definer(optimizer, "_distributed_tf_update_step"), "_distributed_tf_update_step")]
        scaling = getattr(keras.optimizers, "LossScaleOptimizer", optimizer)
        callers = [(cls, "apply") for cls in dict.fromkeys(definer(cls, "apply") for cls in (optimizer, scaling))]
    else:
        # 2.11 to 2.15 and tf_keras; the older optimizers stand beside them as "legacy".
        appliers = [(definer(optimizer, "_distributed_apply_gradients_fn"), "_distributed_apply_gradients_fn")]
        # One that scales losses leaves out what has no gradient before it calls the one inside.
        scaling = keras.mixed_precision.LossScaleOptimizer.__subclasses__()
        callers = [(cls, "apply_gradients") for cls in (definer(optimizer, "apply_gradients"), *scaling)]
        legacy = getattr(getattr(keras.optimizers, "legacy", None), "Optimizer", None)
        if legacy is not None and hasattr(legacy, "_distributed_apply"):
            appliers.append((definer(legacy, "_distributed_apply"), "_distributed_apply"))
            callers.append((definer(legacy, "apply_gradients"), "apply_gradients"))
    layer, metric, history = keras.layers.Layer, keras.metrics.Metric, keras.callbacks.History
    callbacks = keras.callbacks.CallbackList
    loss = definer(keras.losses.Loss, "__call__")
    return Flavour(version, trainer, layer, metric, history, callbacks, loss, tuple(appliers), tuple(callers))


def replace_untraced(owner: type, name: str, make: Make, *, why: str) -> None:
    """Replace a method by one of ours that AutoGraph does not compile; see ``patching.replace``."""
    leave_untraced(replace(owner, name, make, why=why))


def leave_untraced(function: Call) -> None:
    """Have AutoGraph run a function of ours as it is; else it would compile it, and with it what it calls."""
    function.autograph_info__ = None  # type: ignore[attr-defined]
