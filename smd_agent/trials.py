"""Trials, under the name of the module that programs for smdebug import them from."""

from __future__ import annotations

from smd_agent.analysis.trial import LocalTrial, S3Trial, Trial, create_trial

__all__ = ["LocalTrial", "S3Trial", "Trial", "create_trial"]
