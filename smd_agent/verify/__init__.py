"""Verification of the agent: a script is run without it and with it, and what both did is compared bit by bit."""
