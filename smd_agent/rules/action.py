"""Actions of a rule whose condition is met, as old programs ask for them: a JSON string of one action or a list.

There are ``{"name": "stoptraining", "training_job_prefix": ...}`` and ``{"name": "sms" or "email", "endpoint": ...}``.
All of them need a service of the cloud, so they are accepted, and a line says that they do nothing here.
"""

from __future__ import annotations

import json
import logging
from typing import Any

from smd_agent.printable import shortened

logger = logging.getLogger("smd_agent")

# Of each action, what it cannot do without.
_NEEDED = {"stoptraining": "training_job_prefix", "sms": "endpoint", "email": "endpoint"}
ALLOWED_ACTIONS = [*_NEEDED]


class Actions:
    """The actions of one rule.

    ``names`` are those that were understood.

    Args:
        actions_str: JSON; None and an empty string are no action.
        rule_name: of the rule.

    Raises:
        ValueError: it is no JSON.
    """

    def __init__(self, actions_str: str | None, rule_name: str) -> None:
        self._rule_name = rule_name
        text = (actions_str or "").strip()
        # Values are made small letters too, as ever.
        found = json.loads(text.lower()) if text else []
        listed = found if isinstance(found, list) else [found]
        self.names = [str(one["name"]) for one in listed if self._is_known(one)]
        if self.names:
            logger.warning(
                "smd_agent: %s: not available here, as they need a service of the cloud: %s",
                rule_name,
                ", ".join(self.names),
            )

    def _is_known(self, action: Any) -> bool:
        if not isinstance(action, dict):
            problem = "is no action"
        elif action.get("name") not in _NEEDED:
            problem = f"has no name out of {', '.join(_NEEDED)}"
        elif action.get(_NEEDED[action["name"]]) is None:
            problem = f"needs {_NEEDED[action['name']]}"
        else:
            return True
        logger.warning("smd_agent: %s: %s %s", self._rule_name, shortened(repr(action)), problem)
        return False

    def invoke(self, message: str = "") -> None:
        """Say what would be done now."""
        for name in self.names:
            logger.info("smd_agent: %s: %s is not available here", self._rule_name, name)
