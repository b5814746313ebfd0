"""The keys of a hook configuration: name, kind of value, default and meaning of each.

The loader takes them out of a file by this table, and the reference in the documentation is made from it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from smd_agent.config import values

T = TypeVar("T")

DEFAULT_OUT_DIR = "/opt/ml/output/tensors"


@dataclass(frozen=True)
class Key(Generic[T]):
    """One key.

    name: as it stands in the file.
    kind: turns the JSON value into ours; see `smd_agent.config.values`.
    default: what leaving the key out means, written as a value of the file; None if that cannot be written.
    meaning: for the reader of the reference.
    """

    name: str
    kind: Callable[[Any], T]
    default: str | None
    meaning: str


# At the top of the file.
LOCAL_PATH = Key("LocalPath", values.folder, DEFAULT_OUT_DIR, "the run's folder; it must not hold a finished run")
HOOK_PARAMETERS = Key("HookParameters", values.json_object, None, "keys for all collections")
COLLECTIONS = Key("CollectionConfigurations", values.objects, None, "the collections to save, an object for each")
S3_OUTPUT_PATH = Key("S3OutputPath", values.anything, None, "accepted, not used: the training service copies the run")
S3_PATH = Key("S3Path", values.anything, None, "accepted, not used")
TOP = (LOCAL_PATH, HOOK_PARAMETERS, COLLECTIONS, S3_OUTPUT_PATH, S3_PATH)
IGNORED = (S3_OUTPUT_PATH, S3_PATH)

# In an object of CollectionConfigurations.
COLLECTION_NAME = Key("CollectionName", values.text, None, "the collection: a built-in one or a name of your own")
COLLECTION_PARAMETERS = Key("CollectionParameters", values.json_object, None, "keys for this collection alone")
COLLECTION = (COLLECTION_NAME, COLLECTION_PARAMETERS)

# In HookParameters and in CollectionParameters; each may have a mode before it, such as "train.save_interval".
SAVE_INTERVAL = Key(
    "save_interval",
    values.count,
    "500",
    "a step is saved when it is a multiple of this; XGBoost's default is 10",
)
START_STEP = Key("start_step", values.step, "0", "the interval applies from this step on")
END_STEP = Key("end_step", values.step, None, "the interval applies to the steps before this one")
SAVE_STEPS = Key("save_steps", values.steps, "", "further steps, whatever the other three say")
STEPS = (SAVE_INTERVAL, START_STEP, END_STEP, SAVE_STEPS)

# In HookParameters and in CollectionParameters.
REDUCTIONS = Key("reductions", values.reductions, "", "summaries to save instead of whole tensors")
SAVE_RAW_TENSOR = Key(
    "save_raw_tensor",
    values.boolean,
    None,
    "save the whole tensor beside its reductions; without any it is saved anyhow",
)
SAVE_SHAPE = Key("save_shape", values.boolean, "false", "save the shape as well")
INCLUDE_REGEX = Key(
    "include_regex", values.regexes, None, "tensors to save; for a collection, the tensors that belong to it"
)
FORM = (REDUCTIONS, SAVE_RAW_TENSOR, SAVE_SHAPE, INCLUDE_REGEX)

# In CollectionParameters only.
SAVE_HISTOGRAM = Key("save_histogram", values.boolean, "true", "accepted for TensorBoard")

# In HookParameters only.
INCLUDE_COLLECTIONS = Key(
    "include_collections", values.names, "", "collections to save that need no object of their own"
)
SAVE_ALL = Key("save_all", values.boolean, "false", "save every tensor")
INCLUDE_WORKERS = Key(
    "include_workers", values.workers, "one", "all: every worker of a distributed job writes, one: only the first"
)
DRY_RUN = Key("dry_run", values.boolean, "false", "decide everything and write no step")
EXPORT_TENSORBOARD = Key(
    "export_tensorboard", values.boolean, "false", "accepted; no TensorBoard files are written yet"
)
TENSORBOARD_DIR = Key("tensorboard_dir", values.folder, None, "accepted; no TensorBoard files are written yet")
OF_HOOK = (INCLUDE_COLLECTIONS, SAVE_ALL, INCLUDE_WORKERS, DRY_RUN, EXPORT_TENSORBOARD, TENSORBOARD_DIR)
