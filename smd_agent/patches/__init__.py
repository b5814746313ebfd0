"""Which frameworks are captured, and the module that patches each of them once the script has imported it.

A patch module has one function, `apply(module)`. Boot reads this table in every armed interpreter, so nothing
is imported here.
"""

from __future__ import annotations

FRAMEWORKS: dict[str, str] = {
    "torch": "smd_agent.patches.pytorch",
    "xgboost": "smd_agent.patches.xgboost",
    "tensorflow": "smd_agent.patches.tensorflow",
    "keras": "smd_agent.patches.keras",
    "tf_keras": "smd_agent.patches.keras",
    "mxnet": "smd_agent.patches.mxnet",
}
"""Framework's import name -> dotted name of its patch module; looked up at each import."""
