"""python -m smd_agent. Any Python 3 may meet this file, so its syntax is old."""

import sys

if sys.version_info < (3, 10):  # noqa: UP036
    # Before anything is imported that such a Python cannot read.
    sys.exit("smd_agent: Python %d.%d is too old, 3.10 is needed" % sys.version_info[:2])  # noqa: UP031

from smd_agent.cli import main

if __name__ == "__main__":
    sys.exit(main())
