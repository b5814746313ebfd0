"""A check that compiled code does nothing but run a graph of tensor operations.

The compiler turns a function into bytecode of its own: it calls the compiled graph, and then repeats whatever else the
function does (a print, a counter, an attribute that is set, the part after a graph break). Bytecode that calls nothing
but the graph and stores nothing but local variables belongs to a function that may be run again and nobody can tell.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from types import CodeType
from typing import Any

import torch

from smd_agent.framework.plain_access import in_class
from smd_agent.interpreter.pure_code import calls_only
from smd_agent.pytorch.tracing import probe

_GRAPH = "__compiled_fn_"
# What else it calls: the compiler's own profiling of the way to the graph, and functions of its that give sizes.
_PROFILING = ("record_pregraph_bytecode_enter", "record_pregraph_bytecode_exit")
_HARMLESS = (*_PROFILING, "call_size", "call_stride", "call_storage_offset")
# Calls of these leave no trace in compiled code once the user has named them here.
_IGNORED = ("ignore_logger_methods", "ignore_logging_functions", "reorderable_logging_functions")

_entries_of = probe(torch, "_C._dynamo.eval_frame._debug_get_cache_entry_list", None)


def runs_only_a_graph(module: torch.nn.Module) -> bool:
    """True if this can be said of the forward of a module that has been compiled and called."""
    config = getattr(sys.modules.get("torch._dynamo"), "config", None)
    if config is None or any(getattr(config, name, None) for name in _IGNORED):
        return False
    codes = [_compiled(code) for code in _codes(module)]
    return any(codes) and all(calls_only(code, _GRAPH, _HARMLESS) for found in codes for code in found)


def _codes(module: torch.nn.Module) -> Iterator[CodeType]:
    forward = getattr(in_class(type(module), "forward"), "__code__", None)
    if forward is not None:
        yield forward
    # A module of torch itself is compiled in a function that calls it.
    utilities = sys.modules.get("torch._dynamo.external_utils")
    outer = getattr(getattr(utilities, "wrap_inline", None), "__code__", None)
    if type(module).__module__.startswith("torch.") and outer is not None:
        yield from (constant for constant in outer.co_consts if isinstance(constant, CodeType))


def _compiled(code: CodeType) -> list[CodeType]:
    entries: list[Any] | None = _entries_of(code)
    return [entry.code for entry in entries or ()]
