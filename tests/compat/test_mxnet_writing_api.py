"""All that smdebug 1.0.34 has for saving a run with MXNet is here; see ``test_writing_api.py``."""

from __future__ import annotations

import pytest
from harness.old_api import check_code, check_documents

pytest.importorskip("mxnet")

import smd_agent.mxnet as smd


def test_what_the_code_has():
    assert check_code("mxnet", smd) > 30


def test_what_the_documents_have():
    assert check_documents("mxnet", smd) > 8
