"""Runs all parts, or some, and prints how they ended; with `--page FILE` it writes the page of the documentation."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from robustness import page
from robustness.limits import Result, run
from robustness.parts import PARTS


def main() -> int:
    """Return 1 if a case was not survived."""
    parser = argparse.ArgumentParser(prog="python -m robustness", description=__doc__)
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"of {', '.join(PARTS)}; all by default")
    parser.add_argument("--cases", type=int, metavar="N", help="so many of each part, instead of all")
    parser.add_argument("--first", type=int, default=0, metavar="N", help="begin with this case")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, metavar="N", help="processes at a time")
    parser.add_argument("--page", type=Path, metavar="FILE", help="write the page, with other parts as it has them")
    args = parser.parse_args()
    unknown = [name for name in args.parts if name not in PARTS]
    if unknown:
        parser.error(f"there is no part {unknown[0]}, only {', '.join(PARTS)}")
    results: dict[str, Result] = {}
    for name in args.parts or PARTS:
        part = PARTS[name]
        cases = range(args.first, args.first + (args.cases or part.cases))
        results[name] = run(part, cases, args.jobs)
        print(page.summary(part, results[name]), flush=True)
        if args.page:
            # After each part, so that a run that is ended loses one.
            before = args.page.read_text() if args.page.exists() else ""
            args.page.write_text(page.text(results, before))
    return 1 if any(result.failures for result in results.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
