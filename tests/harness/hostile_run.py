"""Runs with names and values that would do harm in a page that takes them for HTML, and what a page must not do."""

from __future__ import annotations

import numpy as np

from harness.written_runs import started
from smd_agent.core.collection_manager import CollectionManager
from smd_agent.core.modes import ModeKeys

NAMES = (
    "</script><script>document.title='taken'</script>",
    "<!--<script>",
    "<img src=x onerror=document.title='taken'>",
    "\"><svg onload=document.title='taken'>",
    "'; document.title='taken'; '",
    "line\u2028and\u2029paragraph",
    "${document.title='taken'}",
    "right\u202eto left",
    "a & b &lt; c",
    "%%SCRIPT%%",
    "x" * 3000,
)


def hostile_run(folder):
    """Write a run whose tensors, losses, metrics and hyperparameters have these names and values."""
    run, manager = started(folder), CollectionManager()
    for name, pattern in {
        "losses": "^loss", "metrics": "^metric", "gradients": "^gradient/", "hyperparameters": "^hyperparameters/",
        "weights": "^weight", "optimizer": "^optimizer/",
    }.items():  # fmt: skip
        manager.get(name).include(pattern)
    manager.get("</script><b>").include("</script>")
    run.write_collections(manager.to_json())
    for step in range(4):
        file = run.begin_step(step, ModeKeys.TRAIN, step)
        for name in NAMES:
            file.add(f"loss{name}", np.array(np.nan if step > 2 else 1.0))
            file.add(f"metric{name}", np.array(float(step)))
            file.add(f"gradient/{name}", np.full(3, np.nan if step > 1 else 1.0))
            file.add(f"weight{name}", np.full(3, 1.0))
            file.add(f"optimizer/{name}/lr", np.array(0.1 * step))
            file.add_text(f"hyperparameters/{name}", [name])
        run.commit(file)
        assert run.flush()
    run.close(True)
    return folder
