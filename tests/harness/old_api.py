"""What smdebug has for saving a run, as its code says and as its five documents do, held against a package of ours.

``old_writing_api.json`` is what ``writing_api.py`` prints for each framework. ``documented_api.json`` has the names,
arguments and defaults that were published; where the documents contradict each other, those that the code has, and
``published_otherwise`` tells which these are.
"""

from __future__ import annotations

import inspect
import json
from pathlib import Path
from types import ModuleType
from typing import Any

COMPAT = Path(__file__).parent.parent / "compat"
DOCUMENTED: dict[str, Any] = json.loads((COMPAT / "documented_api.json").read_text())
OLD: dict[str, Any] = json.loads((COMPAT / "old_writing_api.json").read_text())

# What the framework calls, or the library itself while it saves; no program does.
INSIDE = {
    *("backward_hook", "bhook", "fhook", "forward_hook", "forward_pre_hook", "count_parameters", "hook_from_config"),
    *("after_run", "before_run", "begin", "end", "distribution_strategy", "export_collections"),
    *("has_default_configuration", "has_default_hook_configuration", "modules"),
    *("add_aggregating_variable", "add_distributed_variable", "add_for_mode", "add_operation", "add_tensor"),
    *("add_variable", "get_export_names_of_tensors", "get_tensor", "get_tensors", "get_tensors_dict", "has_tensor"),
    *("set_tensor_ref", "merge_default_save_config"),
}
# Keras's and XGBoost's callbacks, and the products that a round saves by itself.
INSIDE_BEGINS = ("on_", "after_iteration", "write_")
# The profiler, which is not part of this.
PROFILER = ("profil", "log_", "record_trace_events", "reset_", "should_save_dataloader_metrics")


def check(function: Any, asked: str) -> None:
    """Fail unless a function takes the old arguments, with the old defaults; it may take more after them."""
    found = [one for one in inspect.signature(function).parameters.values() if one.name != "self"]
    by_name = {one.name: one for one in found}
    places = [one.name for one in found if one.kind is one.POSITIONAL_OR_KEYWORD]
    for place, argument in enumerate(asked.split()):
        if argument.startswith("**"):
            assert any(one.kind is one.VAR_KEYWORD for one in found)
            continue
        name, has_default, default = argument.lstrip("*").partition("=")
        own = by_name[name]
        if argument.startswith("*"):
            assert own.kind is own.KEYWORD_ONLY
        else:
            assert places[place] == name
        # What need not be given may have been needed before.
        assert own.default is not own.empty or not has_default, name
        if has_default:
            assert str(own.default) == default
    names = {argument.lstrip("*").partition("=")[0] for argument in asked.split()}
    further = [own for name, own in by_name.items() if name not in names]
    open_ended = (inspect.Parameter.VAR_KEYWORD, inspect.Parameter.VAR_POSITIONAL)
    assert all(own.default is not own.empty or own.kind in open_ended for own in further)


def is_for_programs(method: str) -> bool:
    """Whether a method of smdebug's is one that programs call."""
    return method not in INSIDE and not method.startswith((*INSIDE_BEGINS, *PROFILER))


def check_code(framework: str, package: ModuleType) -> int:
    """Fail unless a package has all that smdebug's has for programs; how much was looked at."""
    looked_at = 0
    for name, asked in OLD[framework]["functions"].items():
        check(getattr(package, name), asked)
        looked_at += 1
    for name, methods in OLD[framework]["classes"].items():
        own = getattr(package, name)
        for method, asked in methods.items():
            if not is_for_programs(method):
                continue
            looked_at += 1
            if asked == "(property)":
                assert isinstance(getattr(own, method), property), method
            else:
                check(getattr(own, method), asked)
    return looked_at


def check_documents(framework: str, package: ModuleType) -> int:
    """Fail unless a package has all that was published for a framework; the number of methods that were looked at."""
    looked_at = 0
    for name in DOCUMENTED["names"]:
        assert hasattr(package, name), name
    assert [mode for mode in DOCUMENTED["modes"] if mode not in package.modes.__members__] == []
    for name in DOCUMENTED["hooks"][framework]:
        hook = getattr(package, name)
        check(hook, DOCUMENTED["hook"])
        methods = DOCUMENTED["hook_methods"]
        for method, asked in {**methods["all"], **methods.get(framework, {}), **methods.get(name, {})}.items():
            check(getattr(hook, method), asked)
            looked_at += 1
        assert {*hook.default_saved} == {*DOCUMENTED["collections_saved_by_default"][framework]}
        collections = DOCUMENTED["collections"]
        assert {*collections["all"], *collections[framework]} <= {*hook.built_in}
        keys = {value for key, value in vars(package.CollectionKeys).items() if key.isupper() and key == value.upper()}
        assert {*collections["all"], *collections[framework]} <= keys
    collection = package.Collection
    check(collection, DOCUMENTED["collection"])
    for method, asked in {
        **DOCUMENTED["collection_methods"]["all"],
        **DOCUMENTED["collection_methods"][framework],
    }.items():
        check(getattr(collection, method), asked)
        looked_at += 1
    made = collection("c")
    for name in DOCUMENTED["collection_properties"]:
        setattr(made, name, getattr(made, name))
    return looked_at
