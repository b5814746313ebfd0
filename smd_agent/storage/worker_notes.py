"""Reader of the small files that workers leave in a folder of a run, one for each."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from smd_agent.regular_file import read_text


def notes_in(folder: Path, largest: int) -> Iterator[tuple[str, str]]:
    """Yield worker and text of each file, in the order of their names; what cannot be read is left out.

    Args:
        folder: that has them; it need not be there.
        largest: in bytes, of a file that is read.
    """
    try:
        names = sorted(path.name for path in folder.iterdir() if path.suffix == ".json")
    except OSError:
        return
    for name in names:
        try:
            text = read_text(folder / name, largest=largest)
        except (OSError, ValueError):
            continue
        yield Path(name).stem, text
