"""The collections of one run: those a framework starts with, those the user added, and their file."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from smd_agent.core.collection import Collection
from smd_agent.core.collection_keys import SCALAR_COLLECTIONS, SUMMARY_COLLECTIONS
from smd_agent.core.early_steps import EarlySteps
from smd_agent.core.extra_steps import ExtraSteps
from smd_agent.core.json_fields import as_count, as_object
from smd_agent.core.reduction_config import ReductionConfig
from smd_agent.core.save_config import SaveConfig
from smd_agent.errors import InvalidCollectionConfiguration, SMDebugError, SMDebugValueError

# In the `_meta` object, of which smdebug takes num_workers alone.
_RULES = "rules"
_IGNORED = "ignored_rules"
_ASKED = "asked_for"
_ALWAYS = "always_saved"
_CANNOT = "cannot_save"
_LEFT_OUT = "left_out"
_TOP_LEVEL_KEYS = ("collections", "_meta")


class CollectionManager:
    """The collections of a run by name.

    collections: the ones to start with.
    built_in: what a framework provides (name -> regexes), created when `create_default` is true. These may
    stay without members; any other collection needs a regex or a name.
    collection_class: what `get` and `add` make of a name.

    A collection takes the hook's configs over in two ways. Once `default_save_config` is set (hooks do so
    when they are made), `get` hands out every collection with a save_config of its own, a copy of that one
    where it had none, so that `hook.get_collection("losses").save_config.end_step = 0` works and changes
    nothing else. `prepare` does the rest when the first step begins.
    """

    def __init__(
        self,
        collections: Mapping[str, Collection] | None = None,
        create_default: bool = False,
        *,
        built_in: Mapping[str, Iterable[str]] | None = None,
        collection_class: type[Collection] = Collection,
    ) -> None:
        self.collections: dict[str, Collection] = dict(collections or {})
        self.default_save_config: SaveConfig | None = None
        self.early: EarlySteps | None = None
        self.extra = ExtraSteps()
        self._meta: dict[str, Any] = {"num_workers": 1}
        self._built_in = dict(built_in or {})
        self._collection_class = collection_class
        self._prepared_with: tuple[SaveConfig, ReductionConfig | None, frozenset[str]] | None = None
        if create_default:
            for name, regexes in self._built_in.items():
                self.collections.setdefault(name, collection_class(name, list(regexes)))

    def get(self, name: str, create: bool = True) -> Collection:
        """Return the collection of this name, made now if it is missing and `create` is true.

        Raises SMDebugError if it is missing and `create` is false.
        """
        if name not in self.collections:
            if not create:
                raise SMDebugError(f"Collection {name} has not been created")
            self.create_collection(name)
        collection = self.collections[name]
        if collection.save_config is None and self.default_save_config is not None:
            collection.save_config = self.default_save_config.copy()
        return collection

    def add(self, arg: str | Collection) -> None:
        """Add a collection, replacing one of the same name, or make an empty one of the given name."""
        collection = arg if isinstance(arg, Collection) else self._collection_class(arg)
        self.collections[collection.name] = collection
        if self._prepared_with is not None:
            _prepare(collection, *self._prepared_with)

    def create_collection(self, name: str) -> None:
        """Make an empty collection of this name unless there is one."""
        if name not in self.collections:
            self.add(name)

    def built_in_regexes(self, name: str) -> tuple[str, ...]:
        """The regexes by which the framework has tensors join a collection."""
        return tuple(self._built_in.get(name, ()))

    def keeps_built_in(self, name: str) -> bool:
        """True if a collection has all the regexes that it had at first: the user has put no other in its place."""
        return set(self.built_in_regexes(name)) <= set(self.get(name).include_regex)

    def get_collections(self) -> dict[str, Collection]:
        """Return the collections by name; the dict is the manager's own."""
        return self.collections

    def get_num_workers(self) -> int:
        """Return how many processes write to the run."""
        return int(self._meta["num_workers"])

    def set_num_workers(self, num_workers: int) -> None:
        """State how many processes write to the run; a reader waits for that many collections files."""
        self._meta["num_workers"] = num_workers

    def update_meta(self, meta: Mapping[str, Any]) -> None:
        """Add facts to the `_meta` object of the file."""
        self._meta.update(meta)

    @property
    def rules(self) -> list[tuple[str, dict[str, Any]]]:
        """The rules that the run's configuration has, by name and parameters; a file may have written anything."""
        entries = self._meta.get(_RULES, ())
        found = [_rule(entry) for entry in entries] if isinstance(entries, list) else []
        return [rule for rule in found if rule is not None]

    def set_rules(self, rules: Iterable[tuple[str, Mapping[str, Any]]], ignored: Iterable[str] = ()) -> None:
        """State which rules, by name and parameters, the run's configuration has, and which the run is not judged by.

        What there is none of stays as it was.
        """
        own = [{"name": name, "parameters": dict(parameters)} for name, parameters in rules]
        self._meta |= {key: value for key, value in ((_RULES, own), (_IGNORED, list(ignored))) if value}

    @property
    def ignored_rules(self) -> list[str]:
        """Names of the rules that the run is not judged by; a file may have written anything."""
        names = self._meta.get(_IGNORED)
        return [name for name in names if isinstance(name, str)] if isinstance(names, list) else []

    @property
    def asked_for(self) -> list[str] | None:
        """Names of the collections that somebody asked for; None in a file that does not tell."""
        names = self._meta.get(_ASKED)
        return [name for name in names if isinstance(name, str)] if isinstance(names, list) else None

    def set_asked_for(self, names: Iterable[str], always: Iterable[str] = ()) -> None:
        """State which collections somebody asked for, and which are saved always."""
        self._meta[_ASKED], self._meta[_ALWAYS] = list(names), list(always)

    @property
    def always_saved(self) -> list[str]:
        """Names of the collections that are saved whatever is asked for, as far as the file tells."""
        names = self._meta.get(_ALWAYS)
        return [name for name in names if isinstance(name, str)] if isinstance(names, list) else []

    @property
    def cannot_save(self) -> dict[str, str]:
        """The reasons why collections cannot have a tensor in this training, by name; a file may hold anything."""
        return self._reasons(_CANNOT)

    def set_cannot_save(self, reasons: Mapping[str, str]) -> None:
        """State why collections cannot have a tensor in this training, beside those of which that is known."""
        self._meta[_CANNOT] = {**self.cannot_save, **reasons}

    @property
    def left_out(self) -> dict[str, str]:
        """The reasons why collections that could be had were left out of saved steps, by name."""
        return self._reasons(_LEFT_OUT)

    def set_left_out(self, reasons: Mapping[str, str]) -> None:
        """State why collections were left out, beside those of which that is known."""
        self._meta[_LEFT_OUT] = {**self.left_out, **reasons}

    def _reasons(self, key: str) -> dict[str, str]:
        reasons = self._meta.get(key)
        return {**reasons} if isinstance(reasons, dict) and all(isinstance(x, str) for x in reasons.values()) else {}

    def prepare(
        self,
        save_config: SaveConfig,
        reduction_config: ReductionConfig | None,
        scalar_collections: Iterable[str] = SCALAR_COLLECTIONS,
    ) -> None:
        """Complete every collection with the hook's configs, once, when the first step begins.

        A collection without its own save_config gets a copy of the hook's, one with some modes takes the hook's rules
        for the others. A collection without its own reduction_config takes the hook's; None means the raw tensor.
        Scalar collections are always saved raw, but for large tensors where ``save_raw_up_to`` says what is large.
        Neither they nor summaries get histograms. Collections added later are completed when they are added.

        Raises InvalidCollectionConfiguration for one that is not built in and has neither regex nor name.
        """
        if self._prepared_with is not None:
            return
        for collection in self.collections.values():
            empty = not (collection.include_regex or collection.tensor_names)
            if empty and collection.name not in self._built_in:
                raise InvalidCollectionConfiguration(collection.name)
        self._prepared_with = (save_config, reduction_config, frozenset(scalar_collections))
        for collection in self.collections.values():
            _prepare(collection, *self._prepared_with)

    def to_json_dict(self) -> dict[str, Any]:
        """Return the content of a collections file."""
        collections = {name: collection.to_json_dict() for name, collection in self.collections.items()}
        return {"collections": collections, "_meta": dict(self._meta)}

    def to_json(self) -> str:
        """Return the text of a collections file."""
        import json

        return json.dumps(self.to_json_dict())

    @classmethod
    def load_from_string(cls, s: str, collection_class: type[Collection] = Collection) -> CollectionManager:
        """Make a manager from a collections file's text; SMDebugValueError if it is none."""
        import json

        try:
            content = json.loads(s)
        except RecursionError:
            raise SMDebugValueError("a collections file must be JSON: it is nested too deeply") from None
        except ValueError as error:
            raise SMDebugValueError(f"a collections file must be JSON: {error}") from error
        if not isinstance(content, dict) or not set(content) <= set(_TOP_LEVEL_KEYS):
            keys = ",".join(_TOP_LEVEL_KEYS)
            raise SMDebugValueError(f"allowed params for collection manager can only be one of {keys}")
        found, meta = (as_object({} if content.get(key) is None else content[key], key) for key in _TOP_LEVEL_KEYS)
        as_count(meta.get("num_workers", 1), "num_workers of _meta")
        manager = cls({name: collection_class.from_dict(fields) for name, fields in found.items()})
        manager.update_meta(meta)
        return manager

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, CollectionManager):
            return NotImplemented
        return self.collections == other.collections

    __hash__ = None  # type: ignore[assignment]  # collections can be added

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(self.collections)})"


def _rule(entry: Any) -> tuple[str, dict[str, Any]] | None:
    """Return name and parameters of a rule; None where this is none."""
    name, parameters = (entry.get("name"), entry.get("parameters")) if isinstance(entry, dict) else (None, None)
    return (name, parameters) if isinstance(name, str) and isinstance(parameters, dict) else None


def _prepare(
    collection: Collection,
    save_config: SaveConfig,
    reduction_config: ReductionConfig | None,
    scalar_collections: frozenset[str],
) -> None:
    if collection.save_config is None:
        # A copy, as the user may still change it for this collection.
        collection.save_config = save_config.copy()
    else:
        collection.save_config.merge_default_save_config(save_config)
    wanted = collection.reduction_config or reduction_config or ReductionConfig(save_raw_tensor=True)
    if collection.name in scalar_collections and not wanted.save_raw_up_to:
        wanted = ReductionConfig(save_raw_tensor=True, save_shape=wanted.save_shape)
    collection.reduction_config = wanted
    if collection.name in scalar_collections or collection.name in SUMMARY_COLLECTIONS:
        collection.save_histogram = False
