"""How right the rules are: trainings without and with a fault, run as a user runs them, and what `check` finds."""
