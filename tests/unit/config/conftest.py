"""No variable of the machine the tests run on reaches them."""

from __future__ import annotations

import pytest

from smd_agent.config import env


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in env.VARIABLES:
        monkeypatch.delenv(variable.name, raising=False)
