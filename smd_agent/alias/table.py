"""Table of the old library's modules, and of where their names come from.

In it are the modules that scripts, the old documentation and the old library's tests import, with those of their names
that mean the same here. What only the old library's inside needed is left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping


class Served:
    """A module of the old library, and what it has here.

    Args:
        names: for each name ``module`` or, where it is called otherwise there, ``module:name``.
        needs: a module of ours that is imported with it.
        whole: it has all public names of that one.
        of_framework: it is a framework's, which may not be there.
    """

    __slots__ = ("names", "needs", "of_framework", "whole")

    def __init__(
        self, *names: Mapping[str, str], needs: str = "", whole: bool = False, of_framework: bool = False
    ) -> None:
        self.names = {name: home for part in names for name, home in part.items()}
        self.needs = needs
        self.whole = whole
        self.of_framework = of_framework


def _from(home: str, *names: str, **renamed: str) -> dict[str, str]:
    return {**dict.fromkeys(names, home), **{old: f"{home}:{own}" for old, own in renamed.items()}}


_HELPERS = "smd_agent.alias.helpers"
_MODES = _from("smd_agent.core.modes", "ModeKeys")
_KEYS = _from("smd_agent.core.collection_keys", "CollectionKeys")
_SAVE_CONFIG = _from("smd_agent.core.save_config", "SaveConfig", "SaveConfigMode")
_REDUCTION_CONFIG = _from("smd_agent.core.reduction_config", "ReductionConfig")
_SINGLETON = _from("smd_agent.framework.hook_for_scripts", "set_hook", "del_hook")
_CREATE_TRIAL = _from("smd_agent.analysis.trial", "create_trial")
_RULE = _from("smd_agent.rules.rule", "Rule")
_INVOKE = _from("smd_agent.rules.rule_invoker", "invoke_rule")
_REQUIRED = _from("smd_agent.rules.rule", "RequiredTensors", "RequiredTensorsForTrial")
_ACTIONS = _from("smd_agent.rules.rule", "Actions")
_FILES = _from(_HELPERS, "has_training_ended", "training_has_ended")
_OF_FILES = {
    **_from(
        "smd_agent.config.env",
        CONFIG_FILE_PATH_ENV_STR="CONFIG_PATH",
        DEFAULT_CONFIG_FILE_PATH="DEFAULT_CONFIG_PATH",
        TENSORBOARD_CONFIG_FILE_PATH_ENV_STR="TENSORBOARD_CONFIG_PATH",
        DEFAULT_SAGEMAKER_TENSORBOARD_PATH="DEFAULT_TENSORBOARD_CONFIG_PATH",
    ),
    **_from("smd_agent.config.keys", DEFAULT_SAGEMAKER_OUTDIR="DEFAULT_OUT_DIR"),
    **_from(_HELPERS, "DEFAULT_WORKER_NAME"),
}
_OF_READERS = _from(
    "smd_agent.config.env",
    INCOMPLETE_STEP_WAIT_WINDOW_KEY="STEP_WINDOW",
    MISSING_EVENT_FILE_RETRY_LIMIT_KEY="RETRY_LIMIT",
    TRAINING_END_DELAY_REFRESH_KEY="END_DELAY",
)
_OF_JOBS = _from(
    _HELPERS,
    "CHECKPOINT_CONFIG_FILE_PATH_ENV_VAR",
    "DEFAULT_COLLECTIONS_FILE_NAME",
    "DEFAULT_SAGEMAKER_METRICS_PATH",
)


def _framework(
    package: str, hooks: Mapping[str, tuple[str, Iterable[str]]], collection: Mapping[str, str], saved: str
) -> dict[str, Served]:
    """The modules of a framework.

    Args:
        package: its name, in both libraries.
        hooks: the old modules of hooks; for each the module of ours, and its names.
        collection: what the old module of collections has beside their names.
        saved: where the names of the collections are that are saved whatever is asked for.
    """
    ours = f"smd_agent.{package}"
    default = _from(f"smd_agent.framework.{saved}", DEFAULT_INCLUDE_COLLECTIONS="DEFAULT_SAVED")
    modules = {
        "collection": (collection, _KEYS),
        "singleton_utils": (_from(ours, "get_hook"), _SINGLETON),
        **{module: (_from(home, *names), default, _KEYS) for module, (home, names) in hooks.items()},
    }
    return {
        f"smdebug.{package}": Served(needs=ours, whole=True, of_framework=True),
        **{
            f"smdebug.{package}.{module}": Served(*names, needs=ours, of_framework=True)
            for module, names in modules.items()
        },
    }


MODULES: dict[str, Served] = {
    "smdebug": Served(
        _from("smd_agent.core.modes", modes="ModeKeys"),
        _KEYS,
        _SAVE_CONFIG,
        _REDUCTION_CONFIG,
        _from(_HELPERS, "__version__"),
    ),
    "smdebug.exceptions": Served(needs="smd_agent.exceptions", whole=True),
    "smdebug.trials": Served(needs="smd_agent.trials", whole=True),
    "smdebug.trials.trial": Served(_from("smd_agent.analysis.trial", "Trial")),
    "smdebug.trials.local_trial": Served(_from("smd_agent.analysis.trial", "LocalTrial")),
    "smdebug.trials.s3_trial": Served(_from("smd_agent.analysis.trial", "S3Trial")),
    "smdebug.trials.utils": Served(_CREATE_TRIAL),
    "smdebug.rules": Served(_RULE, _INVOKE, _REQUIRED),
    "smdebug.rules.rule": Served(_RULE),
    "smdebug.rules.rule_invoker": Served(_INVOKE),
    "smdebug.rules.req_tensors": Served(_REQUIRED),
    "smdebug.rules.action": Served(_ACTIONS),
    "smdebug.rules.action.action": Served(_ACTIONS),
    "smdebug.analysis": Served(),
    "smdebug.analysis.utils": Served(
        _from("smd_agent.rules.rule", "no_refresh", "refresh"), _from(_HELPERS, "parse_bool")
    ),
    "smdebug.core": Served(),
    "smdebug.core.access_layer": Served(_FILES),
    "smdebug.core.access_layer.utils": Served(_FILES),
    "smdebug.core.collection": Served(_from("smd_agent.core.collection", "Collection"), _KEYS),
    "smdebug.core.collection_manager": Served(_from("smd_agent.core.collection_manager", "CollectionManager")),
    "smdebug.core.config_constants": Served(_OF_FILES, _OF_READERS, _OF_JOBS),
    "smdebug.core.hook": Served(_from("smd_agent.core.hook", "BaseHook")),
    "smdebug.core.json_config": Served(_OF_FILES),
    "smdebug.core.logger": Served(_from(_HELPERS, "get_logger")),
    "smdebug.core.modes": Served(_MODES),
    "smdebug.core.reader": Served(_from("smd_agent.storage.event_file_reader", "FileReader")),
    "smdebug.core.reduction_config": Served(
        _REDUCTION_CONFIG, _from("smd_agent.core.reduction_config", "ALLOWED_NORMS", "ALLOWED_REDUCTIONS")
    ),
    "smdebug.core.sagemaker_utils": Served(_from("smd_agent.config.env", is_sagemaker_job="in_training_job")),
    "smdebug.core.save_config": Served(_SAVE_CONFIG),
    "smdebug.core.singleton_utils": Served(_SINGLETON),
    "smdebug.core.tensor": Served(
        _from("smd_agent.analysis.tensor", "Tensor"), _from("smd_agent.analysis.steps", "StepState")
    ),
    "smdebug.core.utils": Served(_from(_HELPERS, "is_s3")),
    "smdebug.profiler": Served(),
    "smdebug.profiler.utils": Served(_from(_HELPERS, "str2bool")),
    **_framework(
        "pytorch",
        {"hook": ("smd_agent.pytorch.hook", ("Hook",))},
        _from("smd_agent.pytorch.collection", "Collection"),
        saved="built_in_collections",
    ),
    **_framework(
        "tensorflow",
        {
            "base_hook": ("smd_agent.tensorflow.hook", ()),
            "keras": ("smd_agent.tensorflow.keras_fit.hook", ("KerasHook",)),
            "session": ("smd_agent.tensorflow.sessions.hook", ("SessionHook", "EstimatorHook")),
        },
        _from("smd_agent.tensorflow.collection", "Collection"),
        saved="keras.built_in_collections",
    ),
    **_framework(
        "mxnet",
        {"hook": ("smd_agent.mxnet.hook", ("Hook",))},
        _from("smd_agent.mxnet.collection", "Collection"),
        saved="built_in_collections",
    ),
    **_framework(
        "xgboost",
        {"hook": ("smd_agent.xgboost.hook", ("Hook",))},
        {},
        saved="boosting.built_in_collections",
    ),
}
"""The modules by their old names."""
