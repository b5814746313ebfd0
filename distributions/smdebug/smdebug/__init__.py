"""The import name ``smdebug``, handed over to smd_agent."""

import sys

from smd_agent.alias import hand_over

hand_over(sys.modules[__name__])
