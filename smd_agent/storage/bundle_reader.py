"""Bundles of a run's folder: those that are whole."""

from __future__ import annotations

from pathlib import Path

from smd_agent.formats.bundles import LARGEST_BUNDLE, Bundle, bundle_of
from smd_agent.formats.paths import BUNDLE_FILE, BUNDLE_TENSORS, BUNDLES_FOLDER, parse_bundle_folder
from smd_agent.formats.safetensors import Placed, placed_in
from smd_agent.regular_file import open_to_read, read_bytes, read_text
from smd_agent.storage.atomic_file import names_in


def bundles_in(root: Path) -> dict[Path, Bundle]:
    """Return the bundles of a run by their folders, the first step first."""
    found = {}
    names = [name for name in names_in(root, BUNDLES_FOLDER) if parse_bundle_folder(name) is not None]
    for name in sorted(names, key=lambda name: parse_bundle_folder(name) or (0, "")):
        folder = root / BUNDLES_FOLDER / name
        bundle = read_bundle(folder)
        if bundle is not None:
            found[folder] = bundle
    return found


def read_bundle(folder: Path) -> Bundle | None:
    """Return what the file of a bundle says; None where it is not there or cannot be read."""
    try:
        return bundle_of(read_text(folder / BUNDLE_FILE, largest=LARGEST_BUNDLE))
    except (OSError, ValueError):
        return None


def read_tensors(folder: Path) -> tuple[bytes, dict[str, Placed]]:
    """Return the bytes of a bundle's tensors, and where each of them is.

    Raises:
        OSError: they cannot be read.
        ValueError: they are not whole.
    """
    path = folder / BUNDLE_TENSORS
    with open_to_read(path) as file:
        content = read_bytes(file, path.stat().st_size)
    return content, dict(placed_in(content))
