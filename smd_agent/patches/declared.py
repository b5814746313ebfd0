"""Declaration of each framework: its name, its releases, what is replaced of it and why, for who asks without using it.

The register (``smd_agent.framework.replaced_functions``) knows what is replaced in a process that trains. A test
compares the two.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from smd_agent import guard
from smd_agent.framework.replaced_functions import Until
from smd_agent.patches.other_packages import known


class Declared(NamedTuple):
    """Functions that are replaced together.

    functions: their dotted names, as the framework's documentation has them where it has any. Of a function that is
        known under several names, or comes from one class of several, one name stands for all.
    why: what the agent needs them for, in the words of the register.
    until: when they are put back.
    """

    functions: tuple[str, ...]
    why: str
    until: Until


class Range(NamedTuple):
    """Releases that are supported.

    oldest: the first of them; empty for any.
    newest: the last of them; empty where there is none yet.
    """

    oldest: str = ""
    newest: str = ""

    def holds(self, version: str) -> bool:
        """True if a release is one of them; ``newest`` stands for all that begin as it does."""
        own = numbers(version)
        last = numbers(self.newest)
        return own >= numbers(self.oldest) and (not last or own[: len(last)] <= last)

    def __str__(self) -> str:
        if not self.oldest:
            return "all"
        return f"{self.oldest} to {self.newest}" if self.newest else f"from {self.oldest}"


@dataclass(frozen=True)
class Framework:
    """A framework that is captured.

    Attributes:
        title: as people call it.
        observed: the module that knows where it trains, for ``verify``; it imports nothing of the package.
        supported: its releases.
        replaced: what is replaced of it; by what it computes with, if ``backends`` has that.
        backends: the same for what it computes with, where there is a choice; nothing else is captured.
        distributions: names of what may have brought it, if not its own; the first that is installed counts.
        brings: a framework that it imports, and that is captured for itself.
        brought_by: libraries that import it for the program.
    """

    title: str
    observed: str = ""
    supported: Range = field(default_factory=Range)
    replaced: tuple[Declared, ...] = ()
    backends: Mapping[str, tuple[Declared, ...]] = field(default_factory=dict)
    distributions: tuple[str, ...] = ()
    brings: tuple[str, ...] = ()
    brought_by: tuple[str, ...] = ()

    def replaced_on(self, backend: str) -> tuple[Declared, ...]:
        """The functions that are replaced where it computes with this."""
        return self.backends.get(backend, self.replaced)

    @property
    def observer(self) -> str:
        """The file of ``observed``, found without importing a framework; empty if there is none."""
        package, *parts = self.observed.split(".")
        if not package:
            return ""
        folder = importlib.import_module(package).__path__[0]
        return f"{os.path.join(folder, *parts)}.py"


def numbers(version: str) -> tuple[int, ...]:
    """Return the numbers that a version begins with: ``2.13.0+cpu`` is (2, 13, 0)."""
    found = []
    for part in version.split("."):
        digits = part[: len(part) - len(part.lstrip("0123456789"))]
        if digits:
            found.append(int(digits))
        if digits != part or not digits:
            break
    return tuple(found)


ALWAYS, SEARCH, STEP, CALL = Until.PROCESS_ENDS, Until.MODEL_IS_FOUND, Until.STEP_CLOSES, Until.CALL_RETURNS


def _named(prefix: str, names: str) -> tuple[str, ...]:
    return tuple(f"{prefix}.{name}" for name in names.split())


_LOSSES = (
    "cross_entropy_loss nll_loss_nd mse_loss l1_loss smooth_l1_loss huber_loss binary_cross_entropy multi_margin_loss "
    "multilabel_margin_loss soft_margin_loss"
)
_OTHER_LOSSES = (
    "binary_cross_entropy_with_logits poisson_nll_loss ctc_loss kl_div margin_ranking_loss hinge_embedding_loss "
    "cosine_embedding_loss triplet_margin_loss"
)
_MAKERS = "make_train_function make_test_function make_predict_function"
_ENTRIES = "fit evaluate predict train_on_batch test_on_batch predict_on_batch"

_PYTORCH = (
    Declared(("torch.optim.Optimizer.add_param_group",), "an optimizer knows what is trained", ALWAYS),
    Declared(
        ("torch.compile", "torch.nn.Module.compile"),
        "what is compiled must not hold functions of the agent",
        ALWAYS,
    ),
    Declared(
        ("torch.jit._recursive.create_script_module",), "TorchScript wants a type of all that a module has", ALWAYS
    ),
    Declared(
        ("torch.nn.Module.load_state_dict",), "a load that matches no name, and raises nothing, is told of", ALWAYS
    ),
    Declared(
        ("torch.nn.Module.state_dict",),
        "it is told of a state that is loaded, and has changed since it was taken",
        ALWAYS,
    ),
    Declared(
        _named("torch.optim.lr_scheduler", "LRScheduler.__init__ SequentialLR.__init__"),
        "it is told how far the schedule of an optimizer has come",
        ALWAYS,
    ),
    Declared(("torch.amp.GradScaler.step",), "a step ends also where a scaler skips the update", ALWAYS),
    Declared(("torch.autograd.backward", "torch.amp.GradScaler.scale"), "the loss of every step is taken", ALWAYS),
    Declared(("torch.nn.utils.clip_grad._get_total_norm",), "norms that the program computes are kept", ALWAYS),
    Declared(("torch._foreach_norm",), "norms that the program computes are kept", CALL),
    Declared(
        _named("torch.cuda.graphs.CUDAGraph", "capture_begin capture_end"),
        "nothing may be asked of an accelerator while a graph is captured",
        ALWAYS,
    ),
    Declared(("torch.nn.Module.__call__",), "the model is the module that is called", SEARCH),
    Declared(
        ("torch.autograd.backward", "torch.autograd.grad"),
        "a backward pass shows which parameters are trained",
        SEARCH,
    ),
    Declared(
        _named("torch.func", "grad grad_and_value vjp"),
        "models that are trained by gradients of torch.func are told of",
        SEARCH,
    ),
    Declared(("torch.autograd.backward",), "gradients and losses are saved", STEP),
    Declared(("torch.autograd.grad",), "gradients that it returns are saved", STEP),
    Declared(_named("torch.amp.GradScaler", "scale unscale_"), "gradients are saved without the loss scale", STEP),
    Declared(("torch.amp.GradScaler.step",), "loss scales and skipped updates are saved", STEP),
    Declared(
        _named("torch.nn.utils", "clip_grad_value_ clip_grad._clip_grads_with_norm_"),
        "gradients may be clipped while they are scaled",
        STEP,
    ),
    Declared(("torch.nn.modules.loss._Loss.__call__",), "what loss modules return is saved", STEP),
    Declared(
        (*_named("torch._C._nn", _LOSSES), *_named("torch", _OTHER_LOSSES)),
        "losses computed by functions are saved",
        STEP,
    ),
    Declared(_named("torch._VF", "dropout feature_dropout"), "dropout that stays on in evaluation is told of", STEP),
    Declared(("torch.nn.Module.__call__",), "what a model without steps computes is no part of the step", STEP),
    Declared(("torch.nn.Module.__call__", "torch.nn.Module.forward"), "inputs and outputs of layers are saved", CALL),
)

_KERAS = (
    Declared(_named("keras.Model", _MAKERS), "the functions that models make for their steps are counted", ALWAYS),
    Declared(_named("keras.Model", _ENTRIES), "a model may have a class that makes its own functions", ALWAYS),
    Declared(("keras.callbacks.History.on_epoch_end",), "the logs of an epoch are saved", ALWAYS),
    Declared(
        ("keras.callbacks.CallbackList.on_epoch_end",), "weights are looked at before a callback changes them", ALWAYS
    ),
)

_WATCHED = (
    (("keras.layers.Layer.__call__",), "it is seen what layers are given and return"),
    (("keras.Model.compute_loss",), "batch_loss and labels are saved"),
)

_TAPES = Declared(
    ("tensorflow.GradientTape.gradient",), "losses that a train_step works out itself are looked at", ALWAYS
)

_KERAS_ON_TENSORFLOW = (
    *_KERAS,
    *(Declared(functions, why, ALWAYS) for functions, why in _WATCHED),
    _TAPES,
    Declared(
        ("keras.optimizers.Optimizer._distributed_tf_update_step",),
        "the gradients that are applied are saved",
        ALWAYS,
    ),
    Declared(("keras.optimizers.Optimizer.apply",), "it is seen what optimizers update", ALWAYS),
    Declared(("keras.losses.Loss.__call__",), "it is seen what losses are given", ALWAYS),
    Declared(
        ("keras.src.backend.tensorflow.trainer.TFEpochIterator.__init__",),
        "it knows how many steps an epoch has",
        ALWAYS,
    ),
    Declared(
        ("keras.optimizers.Optimizer.scale_loss",), "losses and gradients are saved as they are without scaling", ALWAYS
    ),
)

_KERAS_2 = (
    *_KERAS,
    *(Declared(functions, why, ALWAYS) for functions, why in _WATCHED),
    _TAPES,
    Declared(
        (
            "keras.optimizers.Optimizer._distributed_apply_gradients_fn",
            "keras.optimizers.legacy.Optimizer._distributed_apply",
        ),
        "the gradients that are applied are saved",
        ALWAYS,
    ),
    Declared(("keras.optimizers.Optimizer.apply_gradients",), "it is seen what optimizers update", ALWAYS),
    Declared(("keras.losses.Loss.__call__",), "it is seen what losses are given", ALWAYS),
    Declared(
        ("keras.mixed_precision.LossScaleOptimizer.get_scaled_loss",),
        "losses and gradients are saved as they are without scaling",
        ALWAYS,
    ),
)

_KERAS_ON_TORCH = (
    *_KERAS,
    *(Declared(functions, why, STEP) for functions, why in _WATCHED),
    Declared(("keras.optimizers.Optimizer.apply",), "it is seen what optimizers update", STEP),
    Declared(("keras.optimizers.Optimizer._backend_update_step",), "the gradients that are applied are saved", STEP),
    Declared(("keras.losses.Loss.__call__",), "it is seen what losses are given", STEP),
)

_TENSORFLOW = (
    Declared(("tensorflow.GradientTape.__enter__",), "a gradient belongs to the step its tape was opened in", ALWAYS),
    Declared(("tensorflow.GradientTape.gradient",), "steps are counted by gradients, which are saved", ALWAYS),
    Declared(
        ("tensorflow.compat.v1.train.Optimizer.compute_gradients",), "losses and gradients are known by name", ALWAYS
    ),
    Declared(
        ("tensorflow.compat.v1.train.Optimizer.apply_gradients",),
        "a session's run that applies gradients is a step",
        ALWAYS,
    ),
    Declared(
        _named("tensorflow.compat.v1.train", "MonitoredSession.__init__ SingularMonitoredSession.__init__"),
        "a session that trains is given a hook",
        ALWAYS,
    ),
    Declared(
        ("tensorflow.estimator.Estimator._call_model_fn",), "a session's mode is that of the graph it runs", ALWAYS
    ),
)

_XGBOOST = (Declared(("xgboost.train", "xgboost.cv"), "the rounds of a training are saved by a callback", ALWAYS),)

_BACKWARD = "losses and gradients are seen in backward passes"
_BLOCKS = "blocks are found and saved as they are called"

_MXNET = (
    Declared(("mxnet.gluon.Trainer.__init__",), "a Trainer knows what is trained", ALWAYS),
    Declared(("mxnet.gluon.Trainer.__init__",), "a Trainer that is made may take turns in a step", ALWAYS),
    Declared(("mxnet.gluon.Trainer._update",), "an update ends a step", ALWAYS),
    Declared(
        ("mxnet.gluon.Parameter.set_data",),
        "weights that the program has set are not those that a training has left",
        ALWAYS,
    ),
    Declared(
        _named("mxnet.gluon.Parameter", "_load_init _finish_deferred_init set_data"),
        "what is loaded and initialized again is lost",
        ALWAYS,
    ),
    Declared(("mxnet.gluon.Block.load_parameters",), "a load that gives a block nothing is told of", ALWAYS),
    Declared(("mxnet.autograd.backward",), _BACKWARD, ALWAYS),
    Declared(("mxnet.nd.NDArray.backward",), _BACKWARD, ALWAYS),
    Declared(("mxnet.gluon.HybridBlock._get_graph",), "a traced graph shows where the inner blocks are in it", ALWAYS),
    Declared(("mxnet.gluon.Block.__call__",), _BLOCKS, SEARCH),
    Declared(("mxnet.gluon.Block.__call__",), _BLOCKS, STEP),
    Declared(("mxnet.gluon.Trainer._allreduce_grads",), "gradients are saved before a store has them", STEP),
    Declared(("mxnet.gluon.Trainer._update",), "gradients are saved as they are applied", STEP),
    Declared(("mxnet.gluon.Parameter._finish_deferred_init",), "weights are saved as they are initialized", STEP),
    Declared(
        ("mxnet.gluon.HybridBlock._build_cache",),
        "the operation of a hybridized block is tapped as soon as it is made",
        CALL,
    ),
    Declared(("mxnet.nd.CachedOp.__call__",), "the operation of a hybridized block shows what is inside of it", CALL),
    Declared(
        ("mxnet.optimizer.Optimizer._get_lrs",), "learning rates of a schedule are saved as an update uses them", CALL
    ),
    Declared(
        ("mxnet.contrib.amp.loss_scaler.LossScaler.has_overflow",),
        "a scaler tells in its update alone whether that is skipped",
        CALL,
    ),
)

_TOLD_OF_KERAS = (Declared(_named("keras.Model", _ENTRIES), "what is not captured is said when it is used", ALWAYS),)

DECLARED = {
    "torch": Framework(
        "PyTorch",
        "smd_agent.pytorch.observed",
        Range("2.1"),
        _PYTORCH,
        brought_by=(
            *("accelerate", "fastai", "lightning", "pytorch_lightning", "sentence_transformers"),
            *("timm", "torchvision", "transformers"),
        ),
    ),
    "xgboost": Framework(
        "XGBoost",
        "smd_agent.xgboost.observed",
        Range("1.7"),
        _XGBOOST,
        distributions=("xgboost", "xgboost-cpu"),
    ),
    "tensorflow": Framework(
        "TensorFlow",
        "smd_agent.tensorflow.observed",
        Range("2.13"),
        _TENSORFLOW,
        distributions=("tensorflow", "tensorflow-cpu", "tensorflow-macos", "tensorflow-intel", "tf-nightly"),
        brings=("keras",),
        brought_by=("tensorflow_probability",),
    ),
    "keras": Framework(
        "Keras",
        "smd_agent.framework.keras.observed",
        Range("2.13"),
        _TOLD_OF_KERAS,
        {"tensorflow": _KERAS_ON_TENSORFLOW, "torch": _KERAS_ON_TORCH},
    ),
    "tf_keras": Framework(
        "tf_keras",
        "smd_agent.framework.keras.observed",
        Range("2.15"),
        _KERAS_2,
        {"tensorflow": _KERAS_2},
        distributions=("tf-keras",),
    ),
    "mxnet": Framework(
        "MXNet",
        "smd_agent.mxnet.observed",
        Range("1.8", "1.9"),
        _MXNET,
        distributions=("mxnet", "mxnet-mkl", "mxnet-cu112", "mxnet-cu110", "mxnet-cu102"),
        brought_by=("gluoncv", "gluonnlp"),
    ),
}
"""The frameworks of this package, by the name they are imported by."""


def declared() -> dict[str, Framework]:
    """Return all frameworks that are captured, those of other packages too, by the name they are imported by."""
    return {name: DECLARED.get(name) or _outside(name, patch) for name, patch in known().items()}


def _outside(name: str, patch: str) -> Framework:
    """The declaration beside the patch of another package; where it cannot be read, one line says so."""
    found: list[object] = []
    failure = guard.attempt(lambda: found.append(importlib.import_module(patch).FRAMEWORK))
    for framework in found:
        if isinstance(framework, Framework):
            return framework
    reason = "its FRAMEWORK is none" if failure is None else guard.describe(failure)
    guard.say_once(("declaration", name), f"{patch} does not declare {name} ({reason})")
    return Framework(name)


def declared_for(module: str, version: str, backend: str = "tensorflow") -> tuple[Declared, ...]:
    """Return what is replaced of a framework.

    Args:
        module: the name it is imported by.
        version: its release.
        backend: what Keras 3 computes with.
    """
    if module == "keras" and version.startswith("2."):
        return _KERAS_2
    return declared()[module].replaced_on(backend)
