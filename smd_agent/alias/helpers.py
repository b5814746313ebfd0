"""Small functions and constants that old scripts import from the old library, and that nothing of ours needs."""

from __future__ import annotations

import logging
import os

from smd_agent.config import env, values
from smd_agent.formats.addresses import is_address, plain
from smd_agent.formats.paths import END_MARKER, collections_path
from smd_agent.storage.atomic_file import replace_file
from smd_agent.storage.folder_choice import absolute, holds_finished_run
from smd_agent.storage.stores import Store

# Numbers and no more: scripts take it apart at its dots.
__version__ = "1.0.34"

CHECKPOINT_CONFIG_FILE_PATH_ENV_VAR = "CHECKPOINT_CONFIG_FILE_PATH"
DEFAULT_SAGEMAKER_METRICS_PATH = "SAGEMAKER_METRICS_DIRECTORY"
DEFAULT_WORKER_NAME = "worker_0"
DEFAULT_COLLECTIONS_FILE_NAME = os.path.basename(collections_path(DEFAULT_WORKER_NAME))


def get_logger(name: str = "smdebug") -> logging.Logger:
    """The logger of this name, to which nothing is added: the old library's wrote to stdout."""
    return logging.getLogger(name)


def str2bool(v: bool | str) -> bool:
    """The truth of an option that is yes or no, such as ``"True"``, ``"0"`` or ``"off"``.

    Raises:
        ValueError: it is another word.
    """
    try:
        return values.boolean(v)
    except values.InvalidValue as unfit:
        raise ValueError(f"{v!r} is none of {', '.join(env.BOOLEAN_WORDS)}") from unfit


def parse_bool(arg: object, default: bool) -> bool:
    """The truth of a configuration's value; ``default`` for None.

    Raises:
        ValueError: it is neither.
    """
    if arg is None:
        return default
    if arg in (False, "False", "false"):
        return False
    if arg in (True, "True", "true"):
        return True
    raise ValueError(f"boolean argument expected, but found {arg}")


def is_s3(path: str) -> tuple[bool, str | None, str | None]:
    """True if a path is one of S3, and if so its bucket and its key."""
    scheme, found, rest = path.partition("s3://")
    if scheme or not found:
        return False, None, None
    bucket, _, key = rest.partition("/")
    return True, bucket, key


def has_training_ended(trial_prefix: str | os.PathLike[str]) -> bool:
    """True if the run in this folder, or at this address of a store, says that it has ended.

    Raises:
        OSError: the store cannot be read.
    """
    place = plain(os.fspath(trial_prefix))
    if is_address(place):
        return END_MARKER in Store(place).infos(END_MARKER)
    return holds_finished_run(absolute(place))


def training_has_ended(trial_prefix: str | os.PathLike[str]) -> None:
    """Mark the run in this folder, or at this address, as ended; not in a SageMaker job, where the service does it.

    A folder that is missing is made.

    Raises:
        OSError: the mark cannot be set.
    """
    if env.in_training_job():
        return
    place = plain(os.fspath(trial_prefix))
    if is_address(place):
        Store(place).write(END_MARKER, b"")
    else:
        folder = absolute(place)
        folder.mkdir(parents=True, exist_ok=True)
        replace_file(folder, END_MARKER, b"")
