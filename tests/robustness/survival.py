"""What a training that survived a failure inside of the agent has saved, and whether its run says what is missing."""

from __future__ import annotations

import contextlib
import io
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from smd_agent import cli
from smd_agent.analysis.trial import Trial
from smd_agent.core.modes import ModeKeys

COLLECTIONS = {"losses": ("losses", "metrics"), "weights": ("weights", "biases"), "gradients": ("gradients",)}
KINDS = (*COLLECTIONS, "all else")
# The parts of the sources that may fail without a loss, a weight or a gradient of a later step.
OPTIONAL = re.compile(
    r"framework/(?:training_facts|model_inputs|usage|step_events|loss_facts|loss_guesses|label_counts|parameter_facts|optimizer_settings|"
    r"weight_changes|input_digests|gradient_values|environment|restarts)|facts|channel|layer_modes|loss_(?:inputs|targets)|"
    r"fact_adapters|kept_gradients|discarded_gradients|sequence_layers|last_steps|target_(?:reach|copies)|activations|followed|unowned|"
    r"averaged_losses|loss_means|lost_loads|monitored_metrics|step_losses|own_losses|graph/loss_graph|untrained|"
    r"called_modules|class_axes|logit_scales|attended_padding|token_padding|idle_adapters|lasting_dropout|given_arguments|"
    r"schedule|clipped_gradients|program_lines|unregistered|plain_lists|partial_loads|kept_states|"
    r"baked_values|plain_reads|board|metrics_file|uploads|store|verdict|rules/|analysis/|cli/|forecast|state_|trainer_settings|broadcast_losses|"
    r"model_inputs|overhead|scaler_facts|core/(?:distribution|manual_values)|data_facts|shap|trees"
)


@dataclass(frozen=True)
class Survived:
    """How a run ended.

    place: the folder of the function that failed.
    optional: whether that is a part whose failure may cost no loss, weight or gradient of a later step.
    lost: the kinds of tensors of which later steps lack some.
    missing: whether any value is missing.
    said: whether `check` and `ls` say that something failed, if anything is missing; where there is no run, whether a
        line on stderr does.
    """

    place: str
    optional: bool
    lost: tuple[str, ...]
    missing: bool
    said: bool

    def __str__(self) -> str:
        words = [self.place, "optional" if self.optional else "needed", ",".join(self.lost) or "nothing"]
        return " | ".join([*words, "missing" if self.missing else "whole", "said" if self.said else "unsaid"])

    @classmethod
    def parse(cls, text: str) -> Survived | None:
        """Return what a text of this kind says; None for others."""
        words = text.split(" | ")
        if len(words) != 5:
            return None
        lost = () if words[2] == "nothing" else tuple(words[2].split(","))
        return cls(words[0], words[1] == "optional", lost, words[3] == "missing", words[4] == "said")


def survived(
    function: str,
    root: Path,
    whole: Mapping[Any, Any],
    found: Mapping[Any, Any],
    kinds: Mapping[str, str],
    order: Mapping[tuple[ModeKeys, int], int],
    lines: Sequence[str],
) -> Survived:
    """Return how a run ended.

    Args:
        function: that failed.
        root: the run's folder.
        whole: the values of the whole run, by name, mode and step.
        found: those of this one.
        kinds: of KINDS, by the names of tensors.
        order: numbers of steps over all modes, by mode and step.
        lines: what the agent has said of failures while the program ran.
    """
    missing = [(key[0], _at(key, order)) for key in whole if key not in found or not _same(found[key], whole[key])]
    # Several tensors are missing in the step in which it failed.
    first = min((step for _, step in missing), default=None)
    lost = {kinds[name] for name, step in missing if step != first}
    return Survived(
        place_of(function),
        bool(OPTIONAL.search(function)),
        tuple(kind for kind in KINDS if kind in lost),
        bool(missing),
        not missing or _is_said(root, lines),
    )


def place_of(function: str) -> str:
    """Return the folder of a function's file, as the table has it."""
    folders = function.partition(":")[0].split("/")[:-1]
    return "/".join(folders[:2]) if folders[:1] == ["pytorch"] else "/".join(folders[:1]) or "smd_agent"


def _at(key: tuple[str, ModeKeys, int], order: Mapping[tuple[ModeKeys, int], int]) -> int:
    return key[2] if key[1] is ModeKeys.GLOBAL else order[key[1:]]


def _same(one: np.ndarray, other: np.ndarray) -> bool:
    return one.dtype == other.dtype and one.tobytes() == other.tobytes()


def kinds_of(trial: Trial) -> dict[str, str]:
    """Return of which kind each tensor of a run is."""
    found = dict.fromkeys(trial.tensor_names(), "all else")
    for kind, collections in COLLECTIONS.items():
        for name in collections:
            if name in trial.collections():
                found.update(dict.fromkeys(trial.tensor_names(collection=name), kind))
    return found


def order_of(trial: Trial) -> dict[tuple[ModeKeys, int], int]:
    """Return the numbers of a run's steps over all modes, by mode and step."""
    steps = trial.steps(show_incomplete_steps=True)
    return {trial.mode_modestep(step): step for step in steps}


def _is_said(root: Path, lines: Sequence[str]) -> bool:
    return bool(lines) if not root.exists() else _says_so("check", root) and _says_so("ls", root)


def _says_so(command: str, root: Path) -> bool:
    return any(line.startswith(("Failed ", "Lost ")) for line in said_by(command, root))


def said_by(command: str, root: Path) -> list[str]:
    """Return what a command prints of a run, by lines."""
    output = io.StringIO()
    with contextlib.redirect_stdout(output), contextlib.redirect_stderr(io.StringIO()), contextlib.suppress(SystemExit):
        cli.main([command, str(root)])
    return output.getvalue().splitlines()
