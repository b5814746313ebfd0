"""How tests run scripts that know nothing of the agent."""
