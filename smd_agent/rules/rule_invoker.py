"""A rule asked about one step after the other."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from smd_agent.errors import RuleEvaluationConditionMet, StepUnavailable, TensorUnavailable, TensorUnavailableForStep

if TYPE_CHECKING:
    from smd_agent.rules.rule import Rule

logger = logging.getLogger("smd_agent")


def invoke_rule(
    rule_obj: Rule, start_step: int | None = 0, end_step: int | None = None, raise_eval_cond: bool = False
) -> None:
    """Invoke a rule at each step; one at which something was not saved is passed over.

    Args:
        rule_obj: the rule.
        start_step: the first step, counted over all modes; None is 0.
        end_step: the step before which to end; None goes on until the run has ended.
        raise_eval_cond: whether to raise the first `RuleEvaluationConditionMet` instead of going on.

    Raises:
        NoMoreData: the run has ended before ``end_step``; without one, that is how it ends.
        RuleEvaluationConditionMet: the condition is met, and that was asked for.
    """
    name = type(rule_obj).__name__
    step = start_step or 0
    logger.info("smd_agent: rule %s begins at step %d", name, step)
    while end_step is None or step < end_step:
        try:
            rule_obj.invoke(step)
        except (TensorUnavailableForStep, StepUnavailable, TensorUnavailable) as error:
            logger.debug("smd_agent: rule %s: %s", name, error)
        except RuleEvaluationConditionMet as met:
            if raise_eval_cond:
                raise
            logger.debug("smd_agent: %s", met)
            if met.end_of_rule:
                break
        step += 1
    logger.info("smd_agent: rule %s ends at step %d", name, step - 1)
