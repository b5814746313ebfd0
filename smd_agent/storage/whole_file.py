"""Small files that are put in place whole, such as an index or the end marker."""

from __future__ import annotations

import os
from pathlib import Path

from smd_agent.formats.paths import TEMPORARY_SUFFIX


def replace_file(path: Path, content: bytes) -> None:
    """Put a whole file in place at once: readers see the old one or the new one, never a part."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f"{path.name}.{os.getpid()}{TEMPORARY_SUFFIX}")
    try:
        temporary.write_bytes(content)
        os.replace(temporary, path)
    except OSError:
        temporary.unlink(missing_ok=True)
        raise
