"""Patch of toytrain, and what it declares of it."""

from smd_agent.core.failure_domains import LOSSES, STEPS, WEIGHTS
from smd_agent.framework.hook_source import HookSource
from smd_agent.framework.replaced_functions import Until, replace
from smd_agent.framework.whole_or_off import whole_or_off
from smd_agent.patches.declared import Declared, Framework, Range
from smd_agent.patches.hook_from_settings import make_hook, wanted_settings
from smd_agent.patches.nothing_captured import warn_at_exit_if_nothing_captured

WHY = "weights and losses of a step are saved"
FRAMEWORK = Framework(
    "Toytrain",
    observed="smd_agent_toytrain.observed",
    supported=Range("1.0"),
    replaced=(Declared(("toytrain.Trainer.step",), WHY, Until.PROCESS_ENDS),),
)


@whole_or_off("toytrain")
def apply(toytrain):
    settings = wanted_settings()
    if settings is None:
        return
    from smd_agent_toytrain.hook import Hook

    source = HookSource(Hook, lambda: make_hook(Hook, settings, follow_calls=True))

    @STEPS.fence("beginning a step", again=True)
    def begin():
        hook = source.hook()
        if hook is not None:
            hook.next_step(hook.position.train)
        return hook

    @WEIGHTS.fence("saving weights")
    def save_weights(hook, trainer):
        if hook is not None and hook.position.open:
            hook.recorder.save_tensors(["weight"], [trainer.model.weight])

    @LOSSES.fence("saving a loss")
    def save_loss(hook, loss):
        if hook is not None and hook.position.open:
            hook.recorder.save_tensors(["loss"], [loss])

    def around(original):
        def step(trainer, *args, **kwargs):
            hook = begin()
            save_weights(hook, trainer)
            result = original(trainer, *args, **kwargs)
            save_loss(hook, result)
            return result

        return step

    replace(toytrain.Trainer, "step", around, why=WHY)
    warn_at_exit_if_nothing_captured("toytrain", "a step of a toytrain.Trainer", settings, lambda: False)
