"""Patches of PyTorch, which step aside while ``torch.compile`` traces the program."""

from __future__ import annotations

from typing import Any

from smd_agent.framework import captured_step, replaced_functions
from smd_agent.framework.error_boundary import Fallback, own_failure
from smd_agent.framework.replaced_functions import Function
from smd_agent.interpreter.hidden_frames import unseen
from smd_agent.interpreter.stack_room import has_room
from smd_agent.pytorch.torch_compile import compiler, is_dynamo_compiling, leave_uncompiled


class Patch(replaced_functions.Patch):
    """A function of PyTorch that is replaced for a while."""

    def _entrance(self, original: Function) -> Function:
        def patched(*args: Any, **kwargs: Any) -> Any:
            # First, so that a compiler that traces this folds it to True and sees nothing else.
            if is_dynamo_compiling() or compiler._is_compiling_flag:
                return original(*args, **kwargs)
            try:
                return self._present(original)(*args, **kwargs) if has_room() else original(*args, **kwargs)
            except BaseException as error:
                instead = own_failure(error)
                if instead is None:
                    raise
            return original(*args, **kwargs) if instead.is_call else instead.of(original)

        leave_uncompiled(unseen(patched))
        leave_uncompiled(Fallback.of)
        leave_uncompiled(has_room, with_callees=True)
        leave_uncompiled(self._replacement)
        return patched


leave_uncompiled(Patch._present)


class Installed(captured_step.Installed):
    """Changes to PyTorch that are undone together."""

    patch_class = Patch
