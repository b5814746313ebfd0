"""The losses of ``torch.nn.functional``, seen in the compiled functions that it calls.

Neither a program nor a compiler holds on to those.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch

from smd_agent.framework.captured_step import Installed
from smd_agent.pytorch.capture.trained_losses import FunctionCall, function_call
from smd_agent.pytorch.torch_compile import is_compiling

# What the losses of torch.nn.functional return as it is, and the name of the loss.
_FUNCTIONAL = {
    (torch._C._nn, "cross_entropy_loss"): "cross_entropy_loss",
    (torch._C._nn, "nll_loss_nd"): "nll_loss",
    (torch._C._nn, "mse_loss"): "mse_loss",
    (torch._C._nn, "l1_loss"): "l1_loss",
    (torch._C._nn, "smooth_l1_loss"): "smooth_l1_loss",
    (torch._C._nn, "huber_loss"): "huber_loss",
    (torch._C._nn, "binary_cross_entropy"): "binary_cross_entropy_loss",
    (torch._C._nn, "multi_margin_loss"): "multi_margin_loss",
    (torch._C._nn, "multilabel_margin_loss"): "multilabel_margin_loss",
    (torch._C._nn, "soft_margin_loss"): "soft_margin_loss",
    (torch, "binary_cross_entropy_with_logits"): "binary_cross_entropy_with_logits_loss",
    (torch, "poisson_nll_loss"): "poisson_nll_loss",
    (torch, "ctc_loss"): "ctc_loss",
    (torch, "kl_div"): "kl_div_loss",
    (torch, "margin_ranking_loss"): "margin_ranking_loss",
    (torch, "hinge_embedding_loss"): "hinge_embedding_loss",
    (torch, "cosine_embedding_loss"): "cosine_embedding_loss",
    (torch, "triplet_margin_loss"): "triplet_margin_loss",
}

# What they return otherwise where there are weights, or where it is the mean over a batch.
_ONLY_INPUTS = {"huber_loss", "kl_div_loss"}

# Nodes of the graph that only some of them make, for where calls are not watched.
_NODES = {
    "NllLossBackward0": ("cross_entropy_loss", "nll_loss"),
    "NllLoss2DBackward0": ("cross_entropy_loss", "nll_loss"),
    "MseLossBackward0": ("mse_loss",),
    "SmoothL1LossBackward0": ("smooth_l1_loss",),
    "BinaryCrossEntropyBackward0": ("binary_cross_entropy_loss",),
    "BinaryCrossEntropyWithLogitsBackward0": ("binary_cross_entropy_with_logits_loss",),
}

Look = Callable[[FunctionCall, Any], object]
LookAtInput = Callable[[str, tuple[Any, ...], dict[str, Any], Any], object]
"""Is called with the name of a functional loss, its arguments, and what it returned."""


def watch(installed: Installed, look: Look, look_at_input: LookAtInput) -> None:
    """Have ``look`` called with each call of a functional loss and what it returned, until all is undone.

    ``look_at_input`` is called before that, with what the loss was given.
    """
    for (owner, function), name in _FUNCTIONAL.items():
        if hasattr(owner, function):
            original = getattr(owner, function)
            make = functools.partial(_wrap, name, look, look_at_input)
            installed.patch(owner, function, make, why="losses computed by functions are saved")
            let_scripts_compile(installed, getattr(owner, function), original)


def calls_that_make(node_name: str) -> list[FunctionCall]:
    """The calls that make a node of this name."""
    return [FunctionCall(function, None) for function in _NODES.get(node_name, ())]


def _wrap(name: str, look: Look, look_at_input: LookAtInput, original: Callable[..., Any]) -> Callable[..., Any]:
    def loss_function(*args: Any, **kwargs: Any) -> Any:
        result = original(*args, **kwargs)
        if not is_compiling():
            look_at_input(name, args, kwargs, result)
            if name not in _ONLY_INPUTS:
                look(function_call(name, args, kwargs), result)
        return result

    return loss_function


def let_scripts_compile(installed: Installed, ours: Any, original: Any) -> None:
    """Have ``torch.jit.script`` take ours for the original: it knows functions of PyTorch by their ids."""
    table = _operators()
    operator = table.get(id(original))
    if operator is not None:
        key = id(ours)
        table[key] = operator
        installed.on_close(lambda: table.pop(key, None))


def _operators() -> dict[int, str]:
    find = getattr(getattr(torch.jit, "_builtins", None), "_get_builtin_table", None)
    table: dict[int, str] = find() if callable(find) else {}
    return table
