"""How long each file of the tests takes, for the order in which they are run: see ``conftest.py``.

usage: python tests/durations.py RESULTS.xml...      those of "make test-all", a file for each environment
"""

from __future__ import annotations

import json
import sys
import xml.etree.ElementTree as ET
from collections import Counter
from pathlib import Path

HERE = Path(__file__).parent


def main(results: list[str]) -> None:
    longest: Counter[str] = Counter()
    for path in results:
        seconds: Counter[str] = Counter()
        for case in ET.parse(path).iter("testcase"):
            seconds[case.attrib["file"].removeprefix("tests/")] += float(case.attrib["time"])
        longest |= seconds
    found = {file: round(took) for file, took in sorted(longest.items())}
    (HERE / "durations.json").write_text(json.dumps(found, indent=1) + "\n")


main(sys.argv[1:])
