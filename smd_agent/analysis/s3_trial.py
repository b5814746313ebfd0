"""A run in S3, opened by bucket and key; `create_trial` takes its address."""

from __future__ import annotations

import posixpath

from smd_agent.analysis.trial import DEFAULT_TIMEOUT, Trial


class S3Trial(Trial):
    """A run below a key of a bucket of S3, which is read as `Trial` reads any other.

    Args:
        name: the trial's name.
        bucket_name, prefix_name: the bucket, and the run's key in it; a slash at its end makes no difference.
        range_steps, check, index_mode, cache, timeout: as of `Trial`.

    Raises:
        MissingCollectionFiles, SMDebugRuntimeError: as `Trial`.

    Attributes:
        bucket_name: the same.
        prefix_name: the key, with a slash at its end.
    """

    def __init__(
        self,
        name: str,
        bucket_name: str,
        prefix_name: str,
        range_steps: tuple[int | None, int | None] | None = None,
        check: bool = False,
        index_mode: bool = True,
        cache: bool = False,
        timeout: float = DEFAULT_TIMEOUT,
    ) -> None:
        self.bucket_name = bucket_name
        self.prefix_name = posixpath.join(prefix_name, "")
        super().__init__(
            name, f"s3://{bucket_name}/{prefix_name}", range_steps, index_mode=index_mode, cache=cache, timeout=timeout
        )
