"""The Keras packages of a program that compute with TensorFlow: each of them is watched once."""

from __future__ import annotations

import sys

import tensorflow as tf

from smd_agent import guard
from smd_agent.framework.hook_source import HookSource
from smd_agent.framework.keras.fit_watch import KerasWatch, is_watched
from smd_agent.framework.keras.types import KerasModule
from smd_agent.tensorflow.hook import TensorflowHook
from smd_agent.tensorflow.keras_fit.backend import TensorflowBackend
from smd_agent.tensorflow.keras_fit.callback_bases import add_base
from smd_agent.tensorflow.keras_fit.versions import flavour_of

PACKAGES = ("keras", "tf_keras")
"""Import names under which a Keras may be found."""


def watch_keras(keras: KerasModule, source: HookSource[TensorflowHook]) -> None:
    """Watch an imported Keras, whose backend is TensorFlow, unless it is watched already; one line if it cannot be."""
    try:
        flavour = flavour_of(keras)
    except (LookupError, AttributeError) as error:
        name, version = keras.__name__, getattr(keras, "__version__", "")
        guard.say_once(name, f"{name} {version}: fit, evaluate and predict are not captured ({guard.describe(error)})")
        return
    add_base(keras.callbacks.Callback)
    if not is_watched(flavour.trainer):
        KerasWatch(TensorflowBackend(flavour), source).install()


def watch_imported(source: HookSource[TensorflowHook]) -> bool:
    """Watch every Keras that is imported, TensorFlow being its backend; returns whether there is one."""
    found = False
    for name in PACKAGES:
        module = sys.modules.get(name)
        if module is not None and is_imported(name) and backend_of(module) == "tensorflow":
            found = True
            watch_keras(module, source)
    return found


def watch_for_script() -> None:
    """Watch every Keras of a script that makes its hook itself; where it has imported none, TensorFlow's own."""
    source = HookSource(TensorflowHook)
    # TensorFlow imports it with the first use of its attribute.
    if not watch_imported(source) and guard.attempt(lambda: tf.keras.Model) is None:
        watch_imported(source)


def is_imported(name: str) -> bool:
    """True if a module's import is over."""
    module = sys.modules.get(name)
    return module is not None and not getattr(getattr(module, "__spec__", None), "_initializing", False)


def backend_of(keras: KerasModule) -> str:
    """The library that an imported Keras computes with."""
    if str(getattr(keras, "__version__", "2")).startswith("2"):
        return "tensorflow"
    return str(keras.backend.backend())
