"""The files of a Python's site folders that are run when an interpreter starts: ours, and those of others."""

from __future__ import annotations

import os
import site
import sys
from pathlib import Path

PTH = "smd_agent.pth"
START = "smd_agent.start"
START_TEXT = "smd_agent.boot:start\n"
# Looked at before anything is imported: without one of these, nothing of ours is loaded.
_GATE = (
    'os.environ.get("SMD_AGENT_HOOK") or os.environ.get("SMDEBUG_CONFIG_FILE_PATH")'
    ' or sys.version_info >= (3, 10) and os.environ.get("USE_SMDEBUG")'
    ' or os.path.isfile("/opt/ml/input/config/debughookconfig.json")'
)
_LINES = (
    "try:",
    "    if sys.version_info < (3, 10):",
    "        raise RuntimeError('Python %d.%d is too old, 3.10 is needed' % sys.version_info[:2])",
    "    from smd_agent.boot import start",
    "    start()",
    "except BaseException as error:",
    "    if sys.stderr is not None:",
    "        sys.stderr.write('smd_agent: start failed (%s: %s); nothing will be captured\\\\n'"
    " % (type(error).__name__, error))",
)
_JOINED = "\\n".join(_LINES)
PTH_TEXT = f'import os, sys; ({_GATE}) and exec("{_JOINED}")\n'
"""The text of the wheel's ``smd_agent.pth``."""


def site_folders() -> list[str]:
    """The folders whose start-up files this Python runs; the user's own comes last, where there is one."""
    folders = site.getsitepackages()
    if site.ENABLE_USER_SITE and os.path.isabs(user := site.getusersitepackages()):
        # Without a home it would be a folder called "~" below the current one.
        folders.append(user)
    return folders


def text_of(folder: str) -> str:
    """The content that ``smd_agent.pth`` of a folder must have for the package there to be found and started."""
    if os.path.realpath(folder) in map(os.path.realpath, site_folders()):
        return PTH_TEXT
    # A line that is a folder puts it at the end of sys.path: the program's versions of libraries win.
    return f"{folder}\n{PTH_TEXT}"


def ours() -> list[Path]:
    """Our ``.pth`` files in this Python's site folders, readable or not."""
    return [path for folder in site_folders() if os.path.lexists(path := Path(folder, PTH))]


def others() -> list[Path]:
    """Start-up files of others in the site folders that run code, in the order in which Python runs them."""
    endings = (".pth", ".start") if sys.version_info >= (3, 15) else (".pth",)
    found = []
    for folder in site_folders():
        try:
            names = sorted(os.listdir(folder))
        except OSError:
            continue
        paths = [Path(folder, name) for name in names if name.endswith(endings) and name not in (PTH, START)]
        found += [path for path in paths if path.suffix == ".start" or _has_code(path)]
    return found


def _has_code(path: Path) -> bool:
    try:
        lines = path.read_bytes().splitlines()
    except OSError:
        return False
    return any(line.startswith((b"import ", b"import\t")) for line in lines)


def customizers() -> list[Path]:
    """All files ``sitecustomize.py`` on the path that interpreters begin with; Python runs the first one only."""
    return [path for folder in sys.path if folder and (path := Path(folder, "sitecustomize.py")).is_file()]
