"""Prints, as JSON, everything a program can notice about how it is run."""

import sys

loaded = sorted(sys.modules)  # before this file imports anything

import json
import os
import signal
import threading

main = sys.modules["__main__"]
spec = getattr(main, "__spec__", None)
loader = getattr(main, "__loader__", None)
facts = {
    "argv": sys.argv,
    "orig_argv": sys.orig_argv,
    "path": sys.path,
    "executable": [sys.executable, sys.prefix, sys.base_prefix],
    "flags": repr(sys.flags),
    "options": [sys.warnoptions, sys._xoptions],
    "name": main.__name__,
    "file": getattr(main, "__file__", "none"),
    "cached": getattr(main, "__cached__", "none"),
    "package": repr(getattr(main, "__package__", "none")),
    "doc": repr(getattr(main, "__doc__", "none")),
    "spec": [spec.name, spec.origin, type(spec.loader).__name__] if spec else None,
    "loader": loader.__name__ if isinstance(loader, type) else type(loader).__name__,
    "builtins": type(main.__dict__["__builtins__"]).__name__,
    "globals": sorted(name for name in vars(main) if name.startswith("__")),
    "cwd": os.getcwd(),
    "environment": {name: os.environ[name] for name in sorted(os.environ)},
    "modules": loaded,
    "finders": [getattr(finder, "__name__", type(finder).__name__) for finder in sys.meta_path],
    "path_hooks": len(sys.path_hooks),
    "hooks": [
        sys.excepthook is sys.__excepthook__,
        sys.displayhook is sys.__displayhook__,
        sys.gettrace() is None,
        sys.getprofile() is None,
        threading.excepthook is threading.__excepthook__,
    ],
    "signals": {str(number): str(signal.getsignal(number)) for number in (1, 2, 3, 10, 12, 13, 14, 15, 17, 25)},
    "blocked": sorted(signal.pthread_sigmask(signal.SIG_BLOCK, [])),
    "threads": threading.active_count(),
    "files": sorted(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else [],
    "umask": os.umask(0o22),
    "recursion": sys.getrecursionlimit(),
    "switch": sys.getswitchinterval(),
    "stdin": sys.stdin.read(),
    "encodings": [sys.stdin.encoding, sys.stdout.encoding, sys.stderr.encoding, sys.getfilesystemencoding()],
}
print(json.dumps(facts))
