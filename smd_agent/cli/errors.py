"""The error that ends a command with one line, and the exit codes that commands share."""

from __future__ import annotations

USAGE_ERROR = 2


class CommandError(Exception):
    """Ends a command with one line on stderr and an exit code."""

    def __init__(self, message: str, code: int = 1) -> None:
        super().__init__(message, code)
        self.message = message
        self.code = code
