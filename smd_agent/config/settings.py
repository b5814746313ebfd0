"""Settings of a hook file once its layers are merged: plain frozen objects, complete and checked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from smd_agent.core.budget import SHARE
from smd_agent.core.reduction_config import ReductionConfig
from smd_agent.core.save_config import SaveConfig

DEFAULT_SERIES_MEGABYTES = 64
DEFAULT_BUNDLE_MEGABYTES = 256


@dataclass(frozen=True)
class CollectionSettings:
    """One collection of the file.

    include_regex: to be added to those the collection has already.
    save_config, reduction_config: None where the collection says nothing of its own and takes the hook's.
    save_histogram: None where the file does not say.
    """

    name: str
    include_regex: tuple[str, ...] = ()
    save_config: SaveConfig | None = None
    reduction_config: ReductionConfig | None = None
    save_histogram: bool | None = None


@dataclass(frozen=True)
class RuleSettings:
    """One rule of the file.

    parameters: what it is told, by name; JSON values, which are checked where the rule is made.
    on_find: None where it is that of all rules.
    actions: beside those of all.
    """

    name: str
    parameters: Mapping[str, Any] = field(default_factory=dict)
    on_find: str | None = None
    actions: tuple[Mapping[str, Any], ...] = ()


@dataclass(frozen=True)
class LiveRule:
    """One rule that is asked while training goes on.

    name: of the rule, "all" for those that `check` asks unnamed, or the absolute path of a Python file with rules.
    parameters: None where it is asked as `check` asks unconfigured rules.
    on_find: "warn", "dump" or "stop".
    actions: what follows beside that, each an object with one key.
    """

    name: str
    parameters: Mapping[str, Any] | None = None
    on_find: str = "warn"
    actions: tuple[Mapping[str, Any], ...] = ()


@dataclass(frozen=True)
class HookSettings:
    """Everything a hook is made from.

    out_dir: absolute path of the run's folder, or the address of a store.
    apart: each rank has a folder, and so a run, of its own.
    source: the file (or variable) these settings come from, for messages.
    reduction_config: None saves the raw tensors.
    include_regex: for the collection `default`.
    include_collections: names beside those a framework always saves. `all` stands for every collection there
        is, while `save_all` stands for every tensor.
    save_early: the first steps are saved beside those of ``save_config``.
    save_last: the weights are saved as the training has left them, though no step that is saved has them.
    within_budget: of boosting rounds, what nobody asked for by name is left out where it takes long.
    include_workers: "one" or "all".
    step: "update" or "forward", which is what training steps end with.
    tensorboard_dir: absolute path, None unless TensorBoard files are wanted.
    upload_to: address of a store that the run is copied into; None if it stays in its folder.
    series_megabytes: size of the series' table of steps; 0 if there is no series.
    budget: part of the run's time that the series may take, and half of what other evidence may that nobody asked for.
    blame: what makes a loss or gradients not finite is named.
    bundle_megabytes: size of a bundle of a step that went wrong; 0 if there is none.
    tap: whether the running training looks for requests.
    rules: that `check` is to apply; what they look at is among the collections.
    ignored_rules: names of those that the run is not judged by.
    live_rules: that are asked while training goes on.
    warnings: sentences for the user, each naming the file.
    unfilled: collections that no tensor joins unless the program says which; a warning names each.
    """

    out_dir: str
    source: str
    save_config: SaveConfig
    apart: bool = False
    reduction_config: ReductionConfig | None = None
    include_regex: tuple[str, ...] = ()
    include_collections: tuple[str, ...] = ()
    save_all: bool = False
    save_early: bool = False
    save_last: bool = False
    within_budget: bool = False
    include_workers: str = "one"
    dry_run: bool = False
    step: str = "update"
    export_tensorboard: bool = False
    tensorboard_dir: str | None = None
    collections: tuple[CollectionSettings, ...] = ()
    upload_to: str | None = None
    series_megabytes: int = DEFAULT_SERIES_MEGABYTES
    budget: float = SHARE
    blame: bool = False
    bundle_megabytes: int = DEFAULT_BUNDLE_MEGABYTES
    tap: bool = True
    rules: tuple[RuleSettings, ...] = ()
    ignored_rules: tuple[str, ...] = ()
    live_rules: tuple[LiveRule, ...] = ()
    warnings: tuple[str, ...] = ()
    unfilled: tuple[str, ...] = ()
