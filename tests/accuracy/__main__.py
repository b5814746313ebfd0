"""Runs all cases, or some, by each launch, tells on stderr what `check` says, and writes the documentation's page."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from accuracy import page
from accuracy.case import FRAMEWORKS
from accuracy.cases import CASES
from accuracy.running import LAUNCHES, CaseFailed, run_all


def main() -> int:
    """Return 1 if a case could not be run."""
    parser = argparse.ArgumentParser(prog="python -m accuracy", description=__doc__)
    parser.add_argument("--cases", metavar="NAMES", help="only these, separated by commas: names, kinds or frameworks")
    parser.add_argument(
        "--every", metavar="N", help="only this launch: save every N-th step; 0 leaves it to the launcher"
    )
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, metavar="N", help="processes at a time")
    parser.add_argument(
        "--page", type=Path, metavar="FILE", help="write the page; what is not measured now stays as it has it"
    )
    parser.add_argument(
        "--runs", type=Path, metavar="DIR", help="keep runs here, by launch; those that are there are judged again"
    )
    args = parser.parse_args()
    words = [word for word in (args.cases or "").split(",") if word]
    known = {word for case in CASES.values() for word in (case.name, case.kind, case.framework)}
    if unknown := [word for word in words if word not in known]:
        parser.error(f"there is no case {unknown[0]}: name a case, a kind, or one of {', '.join(FRAMEWORKS)}")
    chosen = [case for case in CASES.values() if not words or {case.name, case.kind, case.framework} & {*words}]
    launches = LAUNCHES
    if args.every is not None:
        asked = ("--every", args.every) * (args.every != "0")
        launches = {name: options for name, options in LAUNCHES.items() if options == asked}
        if args.page and not launches:
            parser.error("the page is of --every 0 and of --every 1")
        launches = launches or {f"`--every {args.every}`": asked}
    measured = page.read(args.page.read_text()) if args.page and args.page.exists() else {}
    failed = 0
    for launch, options in launches.items():
        results = measured.setdefault(launch, {})
        kept = args.runs and args.runs / ("-".join(options).strip("-") or "default")
        for number, (case, result) in enumerate(run_all(chosen, options, args.jobs, kept), 1):
            failed += isinstance(result, CaseFailed)
            print(f"{launch} {number}/{len(chosen)} {page.told(case, result)}", file=sys.stderr, flush=True)
            if not isinstance(result, CaseFailed):
                results[case.name] = result
        print(f"{launch}\n{page.summary({case.name: results[case.name] for case in chosen if case.name in results})}")
        if args.page:
            args.page.write_text(page.text(measured))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
