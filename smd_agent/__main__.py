"""python -m smd_agent."""

from __future__ import annotations

import sys

from smd_agent.cli import main

if __name__ == "__main__":
    sys.exit(main())
