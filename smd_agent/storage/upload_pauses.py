"""When a store that has failed is tried again, and since when it has taken nothing."""

from __future__ import annotations

import time

from smd_agent.storage.stores import reason_of

# In seconds. After a failure there is a pause, which doubles.
FIRST_PAUSE, LONGEST_PAUSE, LONGEST_AT_EXIT = 0.25, 30.0, 2.0
# A store that has taken nothing for so long is told of, and is not waited for any longer at exit.
STANDS_STILL = 30.0


class UploadPauses:
    """The pauses of one process's uploads.

    Attributes:
        why: what the last failure was; empty if there was none.
        over_at: when the next files may be uploaded, by ``time.monotonic``.
        at_exit: whether the program waits for the uploads.
    """

    def __init__(self) -> None:
        self.why = ""
        self.over_at = 0.0
        self.at_exit = False
        self._pause = 0.0
        self._failing_since: float | None = None

    @property
    def stands_still(self) -> bool:
        """Whether the store has taken nothing for long."""
        return self._failing_since is not None and time.monotonic() - self._failing_since > STANDS_STILL

    def note(self, failure: BaseException) -> None:
        """The store has failed, not with files."""
        self.why = reason_of(failure)
        self._failing_since = self._failing_since or time.monotonic()

    def after(self, failure: BaseException | None, has_moved: bool) -> None:
        """Files were uploaded.

        Args:
            failure: of one of them; None if all are in the store.
            has_moved: whether any is.
        """
        if has_moved:
            self._failing_since = None
        if failure is None:
            self._pause = self.over_at = 0.0
            return
        self.note(failure)
        longest = LONGEST_AT_EXIT if self.at_exit else LONGEST_PAUSE
        self._pause = FIRST_PAUSE if has_moved else min(max(2 * self._pause, FIRST_PAUSE), longest)
        self.over_at = time.monotonic() + self._pause
