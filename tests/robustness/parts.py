"""The parts that there are, by name, in the order of the page."""

from __future__ import annotations

from robustness import configurations, disks, faults, kills, run_files

PARTS = {
    part.key: part
    for part in (
        configurations.PART,
        run_files.PART,
        disks.PART,
        *(kills.WITH_PYTORCH, kills.WITH_KERAS, kills.WITH_GLUON, kills.WITH_XGBOOST),
        *(faults.WITH_PYTORCH, faults.WITH_KERAS, faults.WITH_GLUON, faults.WITH_XGBOOST),
        *(faults.WITH_RESTART, faults.WITH_STORE),
    )
}
