"""NothingLoaded: a load of which a module got nothing, or little, such as ``load_state_dict(strict=False)``."""

from __future__ import annotations

import json
from typing import Any

from smd_agent.framework.training_facts import LOADS
from smd_agent.rules.built_in import BuiltInRule, Severity, StepView

_NUMBERS = ("given", "own", "loaded")


class NothingLoaded(BuiltInRule):
    """A ``load_state_dict`` of which a module got nothing, or little.

    With ``strict=False`` names may differ. And a state that was kept without a copy is the module's own memory: that an
    optimizer of its has changed the values since ``state_dict`` returned them is exact, and a problem.

    Adapters of which all are taken, a head that differs, and a module that gets all that it has out of more, are none.
    Nor is a load that is followed by another one, of the same module or a part of it, by which it gets something.

    Of Gluon it is a ``load_parameters(allow_missing=True, ignore_extra=True)`` of which a block got nothing.
    """

    meaning = (
        "strict=False has loaded none of the names, or less than half both of the given and of the module's own; or the"
        " state is the module's own memory, which has been trained on since it was taken"
    )
    brings = {"parameters": {}}
    evidence = {
        "given": "how many names were given to load_state_dict, or are in the file of load_parameters",
        "own": "how many names the module has",
        "loaded": "how many of its own were loaded",
    }
    advice = "Load under the names that the module has; strict=True, or what load_state_dict returns, tells of others"
    short = "nothing loaded: {}"

    def take(self, step: StepView) -> None:
        """Look at the loads that a step tells of."""
        for name in step.names(patterns=(f"^{LOADS}",)):
            told = _parsed(str(step.single(name)))
            if told is None:
                continue
            numbers = {key: told[key] for key in _NUMBERS}
            nothing = not numbers["loaded"]
            if told["kept"]:
                self.found(step, name, {}, severity=Severity.PROBLEM, cause=_KEPT, advice=_COPY)
                continue
            self.found(
                step,
                name,
                numbers,
                severity=Severity.PROBLEM if nothing else Severity.WARNING,
                cause=_cause(told),
                advice=_advice(told) or (_GLUON if told["is_gluon"] else self.advice),
                short="" if nothing else "less than half loaded: {}",
            )


def _cause(told: dict[str, Any]) -> str:
    how_many = "None" if not told["loaded"] else f"Only {told['loaded']}"
    cause = f"{how_many} of the {told['own']} names of the module was among the {told['given']} that were loaded"
    if told["not_taken"] and told["missing"]:
        cause += f": they are such as {', '.join(told['not_taken'])}, and it has such as {', '.join(told['missing'])}"
    allowed = "allow_missing=True and ignore_extra=True" if told["is_gluon"] else "strict=False"
    return f"{cause}. With {allowed} that raises no error, and the rest keeps the values that it had"


def _advice(told: dict[str, Any]) -> str:
    """Return what to do about names that differ in what they begin with; else nothing."""
    for given in told["not_taken"]:
        for own in told["missing"]:
            if told["is_gluon"]:
                if own.endswith(f".{given}"):
                    return f"Load the file into the part {own.removesuffix(given)[:-1]} of the block; {_LEAVE_OUT}"
            elif given.endswith(f".{own}"):
                prefix = given.removesuffix(own)
                return f"Take {prefix} off the names first, as by name.removeprefix({prefix!r}); {_LOOK}"
            elif own.endswith(f".{given}"):
                return f"Put {own.removesuffix(given)} in front of the names, or load into that part; {_LOOK}"
    return ""


_KEPT = (
    "The state that was loaded is the module's own memory: state_dict returns no copies, and an optimizer has changed"
    " these tensors since then. So the weights of that time are lost, and the module keeps those that it has"
)
_COPY = "Keep a copy: copy.deepcopy(model.state_dict()), or a file by torch.save"
_LOOK = "and look at what load_state_dict returns"
_LEAVE_OUT = "without ignore_extra=True, names that do not fit raise an error"
_GLUON = f"Load a file that the same block has saved, or into the part that has saved it; {_LEAVE_OUT}"


def _parsed(text: str) -> dict[str, Any] | None:
    try:
        told = json.loads(text)
        numbers = {key: int(told[key]) for key in _NUMBERS}
        numbers["kept"] = int(told.get("kept", 0))
        names = {key: [str(name) for name in told[key]] for key in ("not_taken", "missing")}
        return {**numbers, **names, "is_gluon": told.get("by") == "load_parameters"}
    except (ValueError, KeyError, TypeError):
        return None
