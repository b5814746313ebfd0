"""A disk that takes longer for a step than the training does: put in front of a script."""

from __future__ import annotations

SLOW_DISK = """
import time
from smd_agent.storage.step_output import StepOutput
def write(self, *args, usual=StepOutput.write):
    time.sleep(0.1)
    usual(self, *args)
StepOutput.write = write
"""
