"""The keys of a hook configuration: name, kind of value, default and meaning of each; an unknown key gets a warning.

The loader takes them out of a file by this table, and the reference in the documentation is made from it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from smd_agent.config import values
from smd_agent.config.hook_file import shown
from smd_agent.config.suggestions import nearest
from smd_agent.errors import ConfigError
from smd_agent.printable import printable, shortened

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)

LONGEST_NAME = 60
"""Of a name from the file in a sentence, in characters."""

_UNKNOWN_KEYS_TOLD = 5

DEFAULT_OUT_DIR = "/opt/ml/output/tensors"


@dataclass(frozen=True)
class Key(Generic[T_co]):
    """One key.

    name: as it stands in the file.
    kind: turns the JSON value into ours; see `smd_agent.config.values`.
    default: what leaving the key out means, written as a value of the file; None if that cannot be written.
    meaning: for the reader of the reference.
    """

    name: str
    kind: Callable[[Any], T_co]
    default: str | None
    meaning: str


# At the top of the file.
LOCAL_PATH = Key(
    "LocalPath",
    values.place,
    DEFAULT_OUT_DIR,
    "the run's folder, or an address such as s3://bucket/run, in which {host}, {pid}, {rank} and {date} may stand;"
    " where it holds a run, a new one beside it",
)
HOOK_PARAMETERS = Key("HookParameters", values.json_object, None, "keys for all collections")
COLLECTIONS = Key("CollectionConfigurations", values.objects, None, "the collections to save, an object for each")
S3_OUTPUT_PATH = Key(
    "S3OutputPath",
    values.anything,
    None,
    "an address that the run is copied to; in a training job the service copies it",
)
S3_PATH = Key("S3Path", values.anything, None, "as S3OutputPath")
RULES = Key(
    "RuleConfigurations",
    values.objects,
    None,
    "rules of `check`, an object for each; what they look at is saved, too, and they are asked while training goes on",
)
IGNORED_RULES = Key(
    "IgnoredRules",
    values.names,
    None,
    "names of rules that this run is not judged by, unless `check --rules` names them: what they find is meant",
)
TOP = (LOCAL_PATH, HOOK_PARAMETERS, COLLECTIONS, RULES, IGNORED_RULES, S3_OUTPUT_PATH, S3_PATH)
UPLOADS = (S3_OUTPUT_PATH, S3_PATH)

# In an object of CollectionConfigurations.
COLLECTION_NAME = Key("CollectionName", values.text, None, "the collection: a built-in one or a name of your own")
COLLECTION_PARAMETERS = Key("CollectionParameters", values.json_object, None, "keys for this collection alone")
COLLECTION = (COLLECTION_NAME, COLLECTION_PARAMETERS)

# In an object of RuleConfigurations.
RULE_CONFIGURATION_NAME = Key(
    "RuleConfigurationName", values.text, None, "a name of your own; the rule's where the parameters name none"
)
RULE_PARAMETERS = Key(
    "RuleParameters", values.json_object, None, "the rule, as `rule_to_invoke`, and what it is told beside that"
)
RULE_ON_FIND = Key("OnFind", values.on_find, None, "on_find of this rule")
RULE_ACTIONS = Key("Actions", values.actions, None, "actions of this rule, beside those of all")
OF_RULE = (RULE_CONFIGURATION_NAME, RULE_PARAMETERS, RULE_ON_FIND, RULE_ACTIONS)
OF_SERVICE = tuple(
    Key(name, values.anything, None, "used by the training service alone")
    for name in ("RuleEvaluatorImage", "InstanceType", "VolumeSizeInGB", "LocalPath", "S3OutputPath")
)
RULE = (*OF_RULE, *OF_SERVICE)
RULE_TO_INVOKE = Key("rule_to_invoke", values.text, None, "the rule's name")

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
SAVE_RAW_UP_TO = Key(
    "save_raw_up_to", values.step, "0", "a tensor of at most so many elements is saved whole instead of its reductions"
)
INCLUDE_REGEX = Key(
    "include_regex", values.regexes, None, "tensors to save; for a collection, the tensors that belong to it"
)
FORM = (REDUCTIONS, SAVE_RAW_TENSOR, SAVE_SHAPE, SAVE_RAW_UP_TO, INCLUDE_REGEX)

# In CollectionParameters only.
SAVE_HISTOGRAM = Key("save_histogram", values.boolean, "true", "TensorBoard's files have histograms of these")

# In HookParameters only.
INCLUDE_COLLECTIONS = Key(
    "include_collections", values.names, "", "collections to save that need no object of their own"
)
SAVE_ALL = Key("save_all", values.boolean, "false", "save every tensor")
SAVE_EARLY = Key(
    "save_early",
    values.boolean,
    "false",
    "beside the steps above: the first 30 of training, then every 5th up to 100 and every 25th up to 500, as long as "
    "saving takes less than half a second or 2 % of the time; see budget",
)
SAVE_LAST = Key(
    "save_last",
    values.boolean,
    "false",
    "beside the steps above: weights and biases as the training has left them, when the program ends; of boosting, the"
    " last round",
)
WITHIN_BUDGET = Key(
    "within_budget",
    values.boolean,
    "false",
    "of boosting rounds, collections that are not asked for by name are left out where saving would take more than a "
    "second and 2 % of the time; see budget",
)
INCLUDE_WORKERS = Key(
    "include_workers", values.workers, "one", "all: every worker of a distributed job writes, one: only the first"
)
DRY_RUN = Key("dry_run", values.boolean, "false", "decide everything and write no step")
EXPORT_TENSORBOARD = Key(
    "export_tensorboard", values.boolean, "false", "write files for TensorBoard, too; false beside a folder: none"
)
TENSORBOARD_DIR = Key(
    "tensorboard_dir", values.folder, None, "folder of these, which alone asks for them; else tensorboard in the run's"
)
STEP = Key(
    "step",
    values.step_end,
    "update",
    "update: a training step of PyTorch or Gluon ends with the update of the parameters; "
    "forward: each call of a model is a step, as smdebug counts",
)
SERIES = Key(
    "series", values.boolean, "true", "a few numbers of every step, saved or not, go into small files of the run"
)
SERIES_MEGABYTES = Key(
    "series_megabytes",
    values.count,
    "64",
    "size of these numbers for each worker, half as much again for those of parameters;"
    " from half of it on every second step is kept, and so on",
)
BUDGET = Key(
    "budget",
    values.per_cent,
    "1",
    "per cent of the run's time that the numbers of every step may take; twice that is for what is saved though nobody"
    " asked for it by name, see save_early and within_budget",
)
BLAME = Key(
    "blame",
    values.boolean,
    "false",
    "PyTorch: name what makes a loss or gradients not finite at once, for which parts of the program are run again",
)
BUNDLES = Key(
    "bundles",
    values.boolean,
    "true",
    "PyTorch: what the first step was given whose loss is not finite, or that an error has ended, goes into a folder of"
    " the run, by which `replay` runs it again; TensorFlow, Gluon: the words of the program, by which it trains again",
)
BUNDLE_MEGABYTES = Key(
    "bundle_megabytes", values.count, "256", "size up to which that is written, weights and the batch together"
)
TAP = Key("tap", values.boolean, "true", "the running training obeys `tap`: a look at the run's folder once a second")
LIVE_RULES = Key(
    "live_rules",
    values.names,
    None,
    "rules that are asked while training goes on, in the place of those in RuleConfigurations: names, all, and Python"
    " files with rules of your own; an empty text: none",
)
ON_FIND = Key(
    "on_find",
    values.on_find,
    "warn",
    "what such a rule does when it finds something. warn: a line; dump: the next step is saved whole, too; stop: the"
    " training is ended",
)
ACTIONS = Key("actions", values.actions, None, "what follows beside that, an object for each")
OF_HOOK = (
    STEP,
    INCLUDE_COLLECTIONS,
    SAVE_ALL,
    SAVE_EARLY,
    SAVE_LAST,
    WITHIN_BUDGET,
    INCLUDE_WORKERS,
    DRY_RUN,
    EXPORT_TENSORBOARD,
    TENSORBOARD_DIR,
    SERIES,
    SERIES_MEGABYTES,
    BUDGET,
    BLAME,
    BUNDLES,
    BUNDLE_MEGABYTES,
    TAP,
    LIVE_RULES,
    ON_FIND,
    ACTIONS,
)


class Section:
    """An object of the file whose keys are taken out one by one, so that what is left over is unknown.

    path: how messages call it, with the dot or bracket a key is appended to.
    """

    def __init__(self, file: str, path: str, content: object, warnings: list[str]) -> None:
        if not isinstance(content, dict):
            where = path.rstrip(".")
            raise ConfigError(f"{printable(file)}: {where} is {shown(content)}, allowed is a JSON object ({{...}})")
        self.file = printable(file)
        self.path = path
        self._left: dict[str, Any] = dict(content)
        self._taken: list[str] = []
        self._warnings = warnings

    def take(self, key: Key[T], prefix: str = "") -> T | None:
        """Return the key's value as its kind makes it; None when it is missing or null.

        Args:
            key: the key.
            prefix: stands before its name, such as ``train.``.

        Raises:
            ConfigError: the value is not of the key's kind.
        """
        name = prefix + key.name
        self._taken.append(name)
        value = self._left.pop(name, None)
        if value is None:
            return None
        try:
            return key.kind(value)
        except values.InvalidValue as unfit:
            found = f"{self.path}{name} is {shown(value)}"
            raise ConfigError(f"{self.file}: {found}, allowed is {unfit}") from None

    def section(self, key: Key[dict[str, Any]]) -> Section:
        """Return the object under a key; missing and null are an empty one."""
        return Section(self.file, f"{self.path}{key.name}.", self.take(key) or {}, self._warnings)

    def item(self, key: Key[list[Any]], number: int, content: object) -> Section:
        """Return an object out of the list that stands under a key."""
        return Section(self.file, f"{self.path}{key.name}[{number}].", content, self._warnings)

    def lower_prefixes(self, prefixes: tuple[str, ...]) -> None:
        """Write the part before a key's first dot in lower case if that makes it one of the prefixes."""
        for key in list(self._left):
            prefix, dot, rest = key.partition(".")
            if dot and prefix != prefix.lower() and prefix.lower() in prefixes:
                self._left.setdefault(f"{prefix.lower()}.{rest}", self._left.pop(key))

    def warn(self, sentence: str) -> None:
        """Add a sentence for the user, which the file's name is put before."""
        self._warnings.append(f"{self.file}: {sentence}")

    def warn_unknown(self) -> None:
        """Warn of every key that was not taken, with the nearest one that could have been."""
        unknown = list(self._left)
        for key in unknown[:_UNKNOWN_KEYS_TOLD]:
            name = shortened(key, LONGEST_NAME)
            self.warn(f"the key {self.path}{name} is unknown and ignored{nearest(name, self._taken)}")
        if len(unknown) > _UNKNOWN_KEYS_TOLD:
            further = len(unknown) - _UNKNOWN_KEYS_TOLD
            self.warn(f"{further} further keys of {self.path.rstrip('.') or 'the file'} are unknown and ignored")
