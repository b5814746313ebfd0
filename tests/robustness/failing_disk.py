"""Lets the disk fail that the run's folder is on: what the agent asks the system for there is answered in one way.

``ROBUSTNESS_DISK`` is JSON: ``way``; ``root``, the run's folder; ``begin`` and ``end``, in calls that reach the disk,
between which it fails; ``moved``, where the folder goes if it does; ``listed``, a file for the names of the index files
that were there when it began; ``site_hook``, what starts the agent.
"""

import errno
import functools
import json
import os
import resource
import shutil
import threading
import time

JOB = json.loads(os.environ.get("ROBUSTNESS_DISK", "{}"))
WAY, ROOT = JOB.get("way", ""), JOB.get("root", "")
# Half a second is as good as half a minute.
PATIENCE_SECONDS = 0.5
PAGE = 4096

_FULL = dict.fromkeys(("create", "mkdir", "write"), errno.ENOSPC)
_NO_CHANGE = ("create", "mkdir", "rename")
# What is refused, by kinds of calls, and how.
REFUSED = {
    "full": _FULL,
    "quota": dict.fromkeys(_FULL, errno.EDQUOT),
    "read-only": dict.fromkeys(_NO_CHANGE, errno.EROFS),
    "without permission": dict.fromkeys(_NO_CHANGE, errno.EACCES),
    "errors on write": {"write": errno.EIO},
    "errors on rename": {"rename": errno.EIO},
    "fsync failing": {"fsync": errno.EIO},
    "no inodes left": dict.fromkeys(("create", "mkdir"), errno.ENOSPC),
    "files too large": {"write": errno.EFBIG},
    "stale": dict.fromkeys((*_FULL, "rename"), errno.ESTALE),
}
# Or by what is in the path of the file that is made.
FULL_AT = {f"full at {word}": word for word in ("claim.smd", "collections", "index", "events")}
OTHERS = ("one page left", "slow", "stalled", "stalled for ever", "removed", "moved", "unmounted", "file limit")
WAYS = (*REFUSED, *FULL_AT, *OTHERS)

_real = {name: getattr(os, name) for name in ("open", "write", "pwrite", "replace", "mkdir", "fsync")}
# What changes nothing on a disk is no moment to fail from, and waits for one that stands still.
_looking = {name: getattr(os, name) for name in ("stat", "lstat", "unlink")}
_calls = 0
_written = 0


def start():
    """Start the agent, in a fork that a script is run in."""
    os.open, os.write, os.pwrite, os.replace, os.mkdir, os.fsync = _open, _write, _pwrite, _replace, _mkdir, _fsync
    if WAY == "stalled for ever":
        for name, real in _looking.items():
            setattr(os, name, functools.partial(_look, real))
    if WAY.startswith("stalled"):
        from smd_agent import stalled_disk
        from smd_agent.storage.writer_thread import Writer

        stalled_disk.STALL_SECONDS = PATIENCE_SECONDS
        Writer.__init__.__defaults__ = (*Writer.__init__.__defaults__[:-1], PATIENCE_SECONDS)
    with open(JOB["site_hook"], encoding="utf-8") as file:
        exec(file.read())


def _reached(what, path, size=0):
    global _calls, _written
    if not path.startswith(ROOT):
        return
    _calls += 1
    _written += size
    if _calls == JOB["begin"]:
        _note_what_is_listed()
        _begin()
    elif _calls == JOB["end"] and WAY == "file limit":
        hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    if WAY == "slow" and what == "write":
        time.sleep(0.01)
    _stand_still()
    number = _refusal(what, path) if JOB["begin"] <= _calls < JOB["end"] else None
    if number is not None:
        raise OSError(number, os.strerror(number))


def _stand_still():
    if WAY == "stalled for ever" and _calls >= JOB["begin"]:
        threading.Event().wait()


def _look(real, path, *, dir_fd=None, **options):
    if not isinstance(path, int) and _place(path, dir_fd).startswith(ROOT):
        _stand_still()
    return real(path, dir_fd=dir_fd, **options)


def _refusal(what, path):
    if WAY in FULL_AT:
        return errno.ENOSPC if what in ("create", "mkdir") and FULL_AT[WAY] in path else None
    if WAY == "one page left":
        return errno.ENOSPC if what == "write" and _written > PAGE else None
    return REFUSED.get(WAY, {}).get(what)


def _note_what_is_listed():
    found = [name for _, _, names in os.walk(os.path.join(ROOT, "index")) for name in names]
    with open(JOB["listed"], "w") as file:
        json.dump(sorted(name for name in found if name.endswith(".json")), file)


def _begin():
    if WAY == "file limit":
        hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        resource.setrlimit(resource.RLIMIT_NOFILE, (len(os.listdir("/proc/self/fd")), hard))
    elif WAY == "stalled":
        time.sleep(0.6 * PATIENCE_SECONDS)
    elif WAY == "removed":
        shutil.rmtree(ROOT, ignore_errors=True)
    elif WAY in ("moved", "unmounted") and os.path.exists(ROOT):
        os.rename(ROOT, JOB["moved"])
        if WAY == "unmounted":
            _real["mkdir"](ROOT)


def _place(path, dir_fd):
    folder = "" if dir_fd is None else _name(dir_fd)
    return os.path.join(folder, os.fspath(path))


def _name(descriptor):
    return os.readlink(f"/proc/self/fd/{descriptor}")


def _open(path, flags, mode=0o777, *, dir_fd=None):
    if flags & os.O_CREAT:
        _reached("create", _place(path, dir_fd))
    return _real["open"](path, flags, mode, dir_fd=dir_fd)


def _write(descriptor, data):
    _reached("write", _name(descriptor), len(data))
    return _real["write"](descriptor, data)


def _pwrite(descriptor, data, offset):
    _reached("write", _name(descriptor), len(data))
    return _real["pwrite"](descriptor, data, offset)


def _replace(source, target, *, src_dir_fd=None, dst_dir_fd=None):
    _reached("rename", _place(target, dst_dir_fd))
    return _real["replace"](source, target, src_dir_fd=src_dir_fd, dst_dir_fd=dst_dir_fd)


def _mkdir(path, mode=0o777, *, dir_fd=None):
    _reached("mkdir", _place(path, dir_fd))
    return _real["mkdir"](path, mode, dir_fd=dir_fd)


def _fsync(descriptor):
    _reached("fsync", _name(descriptor))
    return _real["fsync"](descriptor)
