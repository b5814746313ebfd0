"""What the agent is put through: damaged input, kills, failing disks and failures of its own, by random numbers.

`make robustness` runs all parts in full and writes docs/robustness.md; the tests run a sample of each.
A further part is a module with a `PART`, which `parts.py` names.
"""
