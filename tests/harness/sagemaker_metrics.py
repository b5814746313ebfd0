"""Lines that SageMaker's metrics get of a run."""

from __future__ import annotations

import json
from pathlib import Path


def metric_values(folder: Path) -> dict[str, dict[int, float]]:
    """Return the values by name and step that the one process has written which has written any."""
    (file,) = folder.iterdir()
    found: dict[str, dict[int, float]] = {}
    for line in map(json.loads, file.read_text().splitlines()):
        assert list(line) == ["MetricName", "Value", "Timestamp", "IterationNumber"]
        found.setdefault(line["MetricName"], {})[line["IterationNumber"]] = line["Value"]
    return found
