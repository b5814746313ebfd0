"""The start of the agent, which is tried once more where a part of it fails."""

from __future__ import annotations

import pytest

from smd_agent import boot


def test_frameworks_that_are_there_are_caught_up_with_by_the_second_try(monkeypatch: pytest.MonkeyPatch) -> None:
    finder, tried = boot._FrameworkFinder(), []

    def catch_up_all() -> None:
        tried.append(finder)
        if len(tried) == 1:
            raise MemoryError

    monkeypatch.setattr(finder, "catch_up_all", catch_up_all)
    with pytest.raises(MemoryError):
        finder.complete()
    finder.complete()
    finder.complete()
    assert len(tried) == 2
