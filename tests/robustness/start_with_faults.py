"""Runs in the place of the site hook."""

from robustness.injected_faults import start

start()
