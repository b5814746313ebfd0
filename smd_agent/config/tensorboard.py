"""The folder for TensorBoard's files: named by the hook's parameters, or by the file of a training job."""

from __future__ import annotations

import os

from smd_agent.config import env, keys
from smd_agent.config.hook_file import Source, read_object


def folder_wanted(export: bool | None, folder: str | None, out_dir: str) -> str | None:
    """Return the folder of TensorBoard's files; None where none are wanted.

    In a SageMaker training job only the file counts that ``TENSORBOARD_CONFIG_FILE_PATH`` names. Elsewhere that file
    counts if the variable is set and the parameters say nothing.

    Args:
        export: ``export_tensorboard``; None where it is not given.
        folder: ``tensorboard_dir``, which alone switches them on.
        out_dir: the run's folder, which has them where no other one is named.

    Raises:
        ConfigError: the file is no such file.
    """
    if env.in_training_job():
        return _named_by_file(env.tensorboard_config_path())
    if export is False:
        return None
    if folder is None and export:
        return os.path.join(out_dir, "tensorboard")
    if folder is None and env.get(env.TENSORBOARD_CONFIG_PATH):
        return _named_by_file(env.tensorboard_config_path())
    return folder


def _named_by_file(path: str) -> str | None:
    if not os.path.isfile(path):
        return None
    content, _ = read_object(Source(path))
    return keys.Section(path, "", content, []).take(keys.LOCAL_PATH)
