"""What capturing costs, as ratios from interleaved runs: `python -m benchmarks [names]` prints a markdown table."""

import sys
from pathlib import Path

_ROOT = str(Path(__file__).resolve().parent.parent)

if sys.path[0] == _ROOT:
    # `python -m` puts the source tree first; an installed agent goes before it, because it may have compiled parts.
    sys.path.append(sys.path.pop(0))
