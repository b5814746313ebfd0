"""Small functions that scripts for the old library import from it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from smd_agent.alias.helpers import has_training_ended, training_has_ended


class Folder(os.PathLike):
    """A path that is neither text nor a ``Path``, as ``tmpdir`` of pytest is."""

    def __init__(self, path):
        self._path = str(path)

    def __fspath__(self):
        return self._path


@pytest.mark.parametrize("kind", [str, Path, Folder])
def test_the_end_of_a_run_is_set_and_seen_whatever_names_its_folder(tmp_path, kind):
    assert has_training_ended(kind(tmp_path)) is False
    training_has_ended(kind(tmp_path))
    assert has_training_ended(kind(tmp_path)) is True
    missing = kind(tmp_path / "to/come")
    training_has_ended(missing)
    assert has_training_ended(missing) is True
