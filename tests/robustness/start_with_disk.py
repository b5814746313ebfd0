"""Runs in the place of the site hook."""

from robustness.failing_disk import start

start()
