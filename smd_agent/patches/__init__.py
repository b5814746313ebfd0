"""Table of the frameworks of this package, each with the module that patches it once the script has imported it.

A patch module has one function, `apply(module)`. Boot reads this table in every armed interpreter, so nothing
is imported here. `smd_agent.patches.other_packages` adds those of other packages.
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
