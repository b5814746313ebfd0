"""What the tapes of a step give: its names in the run, and the optimizer's variables beside it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from smd_agent.core.collection_keys import CollectionKeys
from smd_agent.tensorflow.hook import TensorflowHook
from smd_agent.tensorflow.naming import VariableNames, gradient_name, loss_name, weight_name


class TapeValues:
    """Names what a step's tapes give, and hands it to the hook."""

    def __init__(self, hook: TensorflowHook) -> None:
        self._hook = hook
        self._names = VariableNames()
        self._step = -1
        self._losses = 0
        self._optimizers_saved = False
        self._weights: set[str] = set()
        self._gradients: dict[str, int] = {}

    def weights(self, variables: Sequence[Any]) -> None:
        """Save variables as they are now; each once a step."""
        self._turn()
        names = [self._names.of(variable) for variable in variables]
        new = [(name, variable) for name, variable in zip(names, variables, strict=True) if name not in self._weights]
        self._weights.update(name for name, _ in new)
        self._hook.save_tensors([weight_name(name) for name, _ in new], [variable for _, variable in new])
        self._optimizers()

    def gradients(self, losses: Sequence[Any], pairs: Sequence[tuple[Any, Any]]) -> None:
        """Save what one call of ``tape.gradient`` differentiated, and what it gave for which variable."""
        self._turn()
        for loss in losses:
            self._hook.save_tensor_now(loss_name(self._losses), loss)
            self._losses += 1
        names, values = [], []
        for variable, gradient in pairs:
            if gradient is None:
                continue
            name = self._names.of(variable)
            number = self._gradients.get(name, 0)
            self._gradients[name] = number + 1
            names.append(gradient_name(name, number))
            values.append(gradient)
        self._hook.save_tensors(names, values)

    def _optimizers(self) -> None:
        """Save the variables of the optimizers that the user has wrapped, as they are now; once a step."""
        if self._optimizers_saved or not self._hook.optimizers:
            return
        self._optimizers_saved = True
        if not self._hook.ever_wants_collection(CollectionKeys.OPTIMIZER_VARIABLES):
            return
        found = {}
        for optimizer in filter(None, (reference() for reference in self._hook.optimizers)):
            variables = optimizer.variables
            for variable in variables() if callable(variables) else variables:
                name = f"{self._names.of(variable)}:0"
                self._hook.place(CollectionKeys.OPTIMIZER_VARIABLES, name)
                found[name] = variable
        self._hook.save_tensors(list(found), list(found.values()))

    def _turn(self) -> None:
        if self._step != self._hook.pulse.step:
            self._step = self._hook.pulse.step
            self._losses = 0
            self._optimizers_saved = False
            self._weights.clear()
            self._gradients.clear()
