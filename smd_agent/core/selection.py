"""The tensors that a run saves and when: its collections, and the plan that is made of them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from smd_agent import guard
from smd_agent.core.collection import Collection
from smd_agent.core.collection_keys import METRIC_COLLECTIONS, CollectionKeys
from smd_agent.core.collection_manager import CollectionManager
from smd_agent.core.display_collection import Display
from smd_agent.core.empty_collections import Unfilled
from smd_agent.core.extra_steps import WHOLE
from smd_agent.core.locking import locked
from smd_agent.core.reduction_config import ReductionConfig
from smd_agent.core.save_config import SaveConfig, SaveConfigMode
from smd_agent.core.save_plan import SavePlan
from smd_agent.errors import InvalidCollectionConfiguration


class SavedNames:
    """The names of the collections that are saved.

    Args:
        always: those that are saved whatever is asked for.
        asked_for: those that somebody asked for, beside these.

    Attributes:
        always, asked_for: the same.
        all: they all, in order, and those that are saved for another reason.
    """

    def __init__(self, always: Iterable[str], asked_for: Iterable[str]) -> None:
        self.always = tuple(always)
        self.asked_for = [*dict.fromkeys(asked_for)]
        self.all = dict.fromkeys((*self.always, *self.asked_for))

    def ask_for(self, name: str) -> None:
        """Save a collection that somebody asked for."""
        self.all[name] = None
        self.asked_for = [*dict.fromkeys((*self.asked_for, name))]


class Selection:
    """The collections of a run, of which some are saved.

    Args:
        manager: the framework's collections.
        default_collections: collections that are saved whatever is asked for.
        reduction_config: reductions for collections that have none of their own; None saves the tensors themselves.
        save_config: when collections without their own rule are saved.
        include_regex: tensors to save beside those of the collections.
        include_collections: names of the collections to save; nested lists are flattened.
        save_all: save every tensor.

    Attributes:
        manager: the same.
        reduction_config: the same.
        included: names of the collections that are saved.
        lock: held by the thread that changes the selection or saves what it asks for.
        unfilled: collections that stay without a tensor.
        on_change: called when other tensors may be due than before.
        other_names: gives further names under which a tensor that is placed in a collection belongs to it.
        display: of the tensors that are saved.
        metric_names: of the scalars that are SageMaker's metrics, beside what is in ``METRIC_COLLECTIONS``.
    """

    def __init__(
        self,
        manager: CollectionManager,
        default_collections: Iterable[str],
        *,
        reduction_config: ReductionConfig | None = None,
        save_config: SaveConfig | SaveConfigMode | Mapping[Any, Any] | None = None,
        include_regex: str | Sequence[str] | None = None,
        include_collections: Iterable[Any] | None = None,
        save_all: bool = False,
    ) -> None:
        self.lock = threading.RLock()
        self.manager = manager
        manager.default_save_config = SaveConfig.parse(save_config)
        self.reduction_config = reduction_config
        self.included = SavedNames(default_collections, _flattened(include_collections or ()))
        may_be_empty = {*self.included.always} - {*self.included.asked_for, CollectionKeys.LOSSES}
        self.unfilled = Unfilled(manager, may_be_empty)
        if include_regex:
            found = [include_regex] if isinstance(include_regex, str) else list(include_regex)
            self._include_tensors(CollectionKeys.DEFAULT, found)
        if save_all:
            self._include_tensors(CollectionKeys.ALL, [".*"])
        # Nobody has asked to be called: bool, called without arguments, does nothing.
        self.on_change: Callable[[], object] = bool
        self.other_names: Callable[[str], Iterable[str]] = lambda _: ()
        self.display = Display()
        self.metric_names: set[str] = set()
        self._plan: SavePlan | None = None
        self._last_plan: SavePlan | None = None
        self._names_added = 0

    @property
    def save_config(self) -> SaveConfig:
        """The steps at which collections without their own rule are saved."""
        config = self.manager.default_save_config
        assert config is not None
        return config

    @property
    def names(self) -> list[str]:
        """Names of the collections that are saved."""
        names = dict(self.included.all)
        if CollectionKeys.ALL in names:
            names.update(dict.fromkeys(self.manager.get_collections()))
        return list(names)

    @property
    def tensors_known(self) -> int:
        """Counts tensors that were saved or put into a collection: more of them, and a collection has got others.

        Reasons why a collection has none count, too.
        """
        added = self._names_added + len(self.manager.cannot_save) + len(self.manager.left_out)
        return added + (self._plan.names_seen if self._plan is not None else 0)

    def plan(self) -> SavePlan:
        """The plan, made now if something has changed since the last one."""
        return self._plan or self._make_plan()

    @locked
    def _make_plan(self) -> SavePlan:
        if self._plan is None:
            self._prepare_collections()
            collections = [self.manager.get(name) for name in self.names]
            extra = self.manager.extra
            further = [self._collection_of_extra(name) for name in sorted(extra.names.difference(self.names))]
            self._plan = SavePlan(collections, self._last_plan, self.display, self.manager.early, extra, further)
        return self._plan

    @locked
    def changed(self) -> None:
        """Look up anew which tensors belong to which collection."""
        if self._plan is not None:
            self._plan, self._last_plan = None, self._plan
        self.on_change()

    @locked
    def include(self, *names: str) -> None:
        """Save these collections too."""
        if any(name not in self.included.all for name in names):
            self.included.all.update(dict.fromkeys(names))
            self.changed()

    @locked
    def join(self, tensor_name: str, collections: Sequence[str]) -> None:
        """Put a tensor of the user's into these collections; those that are new are saved, others as they were.

        In none that is saved, it is in ``default`` too.
        """
        new = [name for name in collections if name not in self.manager.get_collections()]
        for name in collections:
            self._add_name(name, tensor_name)
        self.include(*new)
        if not any(name in self.names for name in collections):
            self._add_name(CollectionKeys.DEFAULT, tensor_name)
            self.include(CollectionKeys.DEFAULT)

    @locked
    def place(self, collection: str, tensor_name: str) -> None:
        """Make a tensor a member of a collection, whatever the collection's regexes say."""
        self._place(collection, tensor_name)
        for name in self.other_names(tensor_name):
            self._add_name(collection, name)

    @locked
    def leave_out(self, collection: str, tensor_name: str) -> bool:
        """Keep a tensor out that the regexes of a built-in collection match; True if it would be saved but for that.

        Names and regexes of the user's own still bring it in.
        """
        found = self.manager.get(collection)
        matched = found.matches(tensor_name)
        found.pass_over(tensor_name, self.manager.built_in_regexes(collection))
        self._forget(tensor_name)
        return matched and collection in self.names and not found.matches(tensor_name)

    @locked
    def take_back(self, collection: str, tensor_name: str) -> None:
        """Undo ``leave_out``."""
        self.manager.get(collection).pass_over(tensor_name, ())
        self._forget(tensor_name)

    @property
    def saves_everything(self) -> bool:
        """True if every tensor is saved."""
        return CollectionKeys.ALL in self.included.all and ".*" in self.manager.get(CollectionKeys.ALL).include_regex

    def is_metric(self, tensor_name: str) -> bool:
        """True if a tensor is one of SageMaker's metrics."""
        if tensor_name in self.metric_names:
            return True
        known = self.manager.get_collections()
        return any(known[name].matches(tensor_name) for name in METRIC_COLLECTIONS if name in known)

    def describe(self) -> str:
        """The description of what is saved, for a message."""
        collections = {name: self.manager.get(name) for name in self.names}
        form = ""
        if self.reduction_config is not None and not self.reduction_config.save_raw_tensor:
            form = f"{self.reduction_config.describe()} of "
        if self.saves_everything:
            return f"{form}all tensors"
        names = (name for name, found in collections.items() if found.include_regex or found.tensor_names)
        return form + ", ".join(names)

    @locked
    def cannot_have(self, collections: Iterable[str], reason: str) -> None:
        """Note in the run why collections stay without a tensor; the first reason of each stays."""
        self.unfilled.note(collections, reason)

    @locked
    def explain(self, collections: Iterable[str], reason: str) -> list[str]:
        """Note it, and that a line says so; the names of those of which none has said it."""
        return self.unfilled.explain(collections, reason)

    def is_named(self, collection: str) -> bool:
        """True if somebody asked for a collection by its name, or for tensors that may be in it."""
        names = {*self.included.asked_for} - {CollectionKeys.ALL}
        # Without regexes of the framework's they are somebody's own.
        own = any(not self.manager.built_in_regexes(name) for name in names)
        return collection in names or own or self.saves_everything

    @locked
    def left_out(self, collection: str, reason: str) -> None:
        """Note in the run why a collection was left out of a saved step; a line says so."""
        self.manager.set_left_out({collection: reason})
        self.unfilled.explained.add(collection)

    def never_found(self) -> dict[str, list[str]]:
        """Collections that were asked for and due, and of which no tensor has come up without a word.

        They come by the reason that is known; an empty one where none is.
        """
        return self.unfilled.unexplained(self.plan().never_found())

    def _collection_of_extra(self, name: str) -> Collection:
        if name == WHOLE:
            # It belongs to the steps that were asked for, and not to the run.
            return Collection(WHOLE, ".*", reduction_config=ReductionConfig(save_raw_tensor=True))
        return self.manager.get(name)

    def _include_tensors(self, collection: str, regexes: list[str]) -> None:
        self.manager.get(collection).include(regexes)
        self.included.ask_for(collection)

    def _place(self, collection: str, tensor_name: str) -> None:
        known = collection in self.manager.get_collections()
        found = self.manager.get(collection)
        if found.has_tensor_name(tensor_name):
            return
        self._add_name(collection, tensor_name)
        if not known:
            self.changed()
        else:
            self._forget(tensor_name)

    def _add_name(self, collection: str, tensor_name: str) -> None:
        found = self.manager.get(collection)
        if not found.has_tensor_name(tensor_name):
            found.add_tensor_name(tensor_name)
            self._names_added += 1

    def _forget(self, tensor_name: str) -> None:
        if self._plan is not None:
            self._plan.forget(tensor_name)

    def _prepare_collections(self) -> None:
        # One misspelt name must not cost the other collections.
        while (name := self._empty_collection()) is not None:
            if name not in self.unfilled.explained:
                guard.say(f"collection {name} is left out: it has neither include_regex nor tensor_names")
            self.manager.get_collections().pop(name)
            self.included.all.pop(name, None)

    def _empty_collection(self) -> str | None:
        """Prepare all collections; the name of one that cannot be."""
        try:
            self.manager.prepare(self.save_config, self.reduction_config)
        except InvalidCollectionConfiguration as error:
            return error.c_name
        return None


def _flattened(names: Iterable[Any]) -> Iterable[str]:
    """The strings in nested lists, in order."""
    for name in names:
        if isinstance(name, str):
            yield name
        else:
            yield from _flattened(name)
