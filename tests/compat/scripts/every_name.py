"""Prints, as JSON, which of the names in a file, by module, there are not: python every_name.py NAMES.json."""

import json
import sys
from importlib import import_module

with open(sys.argv[1], encoding="utf-8") as file:
    wanted = json.load(file)
missing = [
    f"{module}.{name}" for module, names in wanted.items() for name in names if not hasattr(import_module(module), name)
]
print(json.dumps(missing))
